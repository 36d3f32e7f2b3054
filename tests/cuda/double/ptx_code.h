/* Code as the interpreter's own files know it: what the reader makes of PTX and the warps go through.
 *
 * A register is a row: its values in the 32 lanes side by side, 2, 4 or 8 bytes each; a predicate is
 * one word with a bit for each lane. Constants are rows, too, so that an instruction finds all its
 * operands in the same way. One PTX instruction may become several here: those that flush or saturate
 * get steps of their own, between which no lane can be anywhere else. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_CODE_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_CODE_H

#include "tests/cuda/double/ptx.h"

#define PTX_LANES 32
#define PTX_ALL UINT32_MAX
#define PTX_OPERANDS 10

/* ---- rows -------------------------------------------------------------------------------- */

/* Where a row lies: in units of 64 bytes, among the registers or, with the top bit, the constants. */
typedef uint32_t ptx_place;
#define PTX_UNIT 64u
#define PTX_CONSTANT 0x80000000u
#define PTX_NOWHERE UINT32_MAX
/* Of PTX_SCRATCH rows each 4 units; then words, the carry and special registers, which all
 * functions share. */
enum {
    PTX_SCRATCH = 0,
    PTX_SCRATCHES = 6,
    PTX_SCRATCH_WORD = PTX_SCRATCHES * 4,
    PTX_CARRY = PTX_SCRATCH_WORD + 2,
    PTX_SPECIAL = PTX_CARRY + 1, /* two units each, in the order of ptx_special */
};

/* Values of 32 bits that do not change while a warp lives. X(name, PTX's name) */
#define PTX_SPECIALS(X) \
    X(TID_X, "%tid.x") \
    X(TID_Y, "%tid.y") \
    X(TID_Z, "%tid.z") \
    X(NTID_X, "%ntid.x") \
    X(NTID_Y, "%ntid.y") \
    X(NTID_Z, "%ntid.z") \
    X(CTAID_X, "%ctaid.x") \
    X(CTAID_Y, "%ctaid.y") \
    X(CTAID_Z, "%ctaid.z") \
    X(NCTAID_X, "%nctaid.x") \
    X(NCTAID_Y, "%nctaid.y") \
    X(NCTAID_Z, "%nctaid.z") \
    X(LANEID, "%laneid") \
    X(WARPID, "%warpid") \
    X(NWARPID, "%nwarpid") \
    X(SMID, "%smid") \
    X(NSMID, "%nsmid") \
    X(LANEMASK_EQ, "%lanemask_eq") \
    X(LANEMASK_LT, "%lanemask_lt") \
    X(LANEMASK_LE, "%lanemask_le") \
    X(LANEMASK_GT, "%lanemask_gt") \
    X(LANEMASK_GE, "%lanemask_ge") \
    X(DYNAMIC_SMEM_SIZE, "%dynamic_smem_size") \
    X(TOTAL_SMEM_SIZE, "%total_smem_size")
typedef enum ptx_special {
#define PTX_SPECIAL_ENUM(name, text) PTX_##name,
    PTX_SPECIALS(PTX_SPECIAL_ENUM)
#undef PTX_SPECIAL_ENUM
        PTX_N_SPECIALS
} ptx_special;
enum { PTX_FIRST_REGISTER = (PTX_SPECIAL + 2 * PTX_N_SPECIALS + 3) / 4 * 4 };

/* ---- addresses --------------------------------------------------------------------------- */

/* Which memory a generic address is of stands in its highest byte: no device has addresses so high.
 * Those of .shared and .local begin at 0 where the instruction names the space. */
enum { PTX_GENERIC, PTX_SHARED, PTX_LOCAL, PTX_PARAM, PTX_MODULE, PTX_GLOBAL };
#define PTX_WINDOW(space) ((uint64_t)(space) << 56)
#define PTX_SPACE_OF(address) ((address) >> 56)
#define PTX_OFFSET_OF(address) ((address)&0xffffffffffffffu)

/* ---- instructions ------------------------------------------------------------------------ */

typedef struct ptx_warp ptx_warp;
typedef struct ptx_instruction ptx_instruction;
typedef void ptx_operation(const ptx_warp *warp, const ptx_instruction *at, uint32_t lanes);

typedef enum ptx_kind {
    PTX_ALU,
    PTX_LOAD,
    PTX_STORE,
    PTX_ATOMIC,
    PTX_ASYNC, /* cp.async and its waits */
    PTX_BRANCH,
    PTX_BRANCH_INDEXED,
    PTX_CALL,
    PTX_RETURN, /* of a kernel, too */
    PTX_EXIT,
    PTX_TRAP,
    PTX_CLOCK,
    PTX_ADDRESS,  /* of a local variable */
    PTX_COPY,     /* parameters and results of calls */
    PTX_TOGETHER, /* waits for lanes of the warp */
    PTX_BARRIER,
} ptx_kind;

typedef enum ptx_together {
    PTX_SHUFFLE_UP,
    PTX_SHUFFLE_DOWN,
    PTX_SHUFFLE_BUTTERFLY,
    PTX_SHUFFLE_INDEX,
    PTX_VOTE_ALL,
    PTX_VOTE_ANY,
    PTX_VOTE_UNIFORM,
    PTX_VOTE_BALLOT,
    PTX_MATCH_ANY,
    PTX_MATCH_ALL,
    PTX_REDUCE_ADD,
    PTX_REDUCE_MIN,
    PTX_REDUCE_MAX,
    PTX_REDUCE_AND,
    PTX_REDUCE_OR,
    PTX_REDUCE_XOR,
    PTX_MEET, /* bar.warp.sync */
    PTX_ACTIVE_MASK,
    PTX_ELECT,
} ptx_together;

typedef enum ptx_barrier_kind {
    PTX_BARRIER_SYNC,
    PTX_BARRIER_ARRIVE,
    PTX_BARRIER_POPC,
    PTX_BARRIER_AND,
    PTX_BARRIER_OR,
} ptx_barrier_kind;

typedef enum ptx_atomic {
    PTX_ATOMIC_ADD,
    PTX_ATOMIC_EXCHANGE,
    PTX_ATOMIC_CAS,
    PTX_ATOMIC_AND,
    PTX_ATOMIC_OR,
    PTX_ATOMIC_XOR,
    PTX_ATOMIC_MIN,
    PTX_ATOMIC_MAX,
    PTX_ATOMIC_INC,
    PTX_ATOMIC_DEC,
} ptx_atomic;

typedef enum ptx_number {
    PTX_BITS,
    PTX_UNSIGNED,
    PTX_SIGNED,
    PTX_FLOAT,  /* by its bytes: f16, f32, f64 */
    PTX_FLOAT2, /* f16x2 */
    PTX_BFLOAT,
    PTX_BFLOAT2,
    PTX_PRED,
} ptx_number;

/* What an offset is added to: a function's part of local memory, which the linker knows; and of a
 * kernel's shared memory that which is the module's, and the dynamic. */
typedef enum ptx_base {
    PTX_BASE_NONE,
    PTX_BASE_FRAME,
    PTX_BASE_COMMON,
    PTX_BASE_DYNAMIC,
} ptx_base;

typedef enum ptx_async {
    PTX_ASYNC_COPY,
    PTX_ASYNC_COMMIT,
    PTX_ASYNC_WAIT,
    PTX_ASYNC_WAIT_ALL,
} ptx_async;

struct ptx_instruction {
    ptx_operation *run; /* of PTX_ALU */
    uint8_t kind;       /* ptx_kind */
    uint8_t what;       /* ptx_together, ptx_barrier_kind, ptx_atomic or ptx_async */
    uint8_t negated;    /* the guard */
    uint8_t option;     /* sign extension, a negated operand, alignment of a barrier */
    uint8_t space;
    uint8_t bytes;  /* of one element in memory, or of the value */
    uint8_t count;  /* elements of a vector */
    uint8_t row;    /* bytes of a register's elements */
    uint8_t number; /* ptx_number */
    uint8_t base;   /* ptx_base: what `offset` counts from, where the reader does not know it */
    ptx_place guard;
    uint32_t line;
    uint32_t target; /* an instruction, or of PTX_CALL a function; of PTX_BRANCH_INDEXED a table */
    int64_t offset;  /* added to an address */
    /* Results first. Of memory: registers of the vector, the address, more. */
    ptx_place o[PTX_OPERANDS];
};

/* What an instruction is found by: its name without what has steps of its own, and its operands.
 * A digit is a row of such elements, p a predicate. Results come first; `/` ends them. */
typedef struct ptx_form {
    const char *name;
    const char *operands;
    ptx_operation *run;
} ptx_form;

/* Lists, each ended by a form without a name; of a processor's instruction set. */
typedef const ptx_form *ptx_forms[4];
extern const ptx_forms ptx_forms_base;
#ifdef PTX_WIDE
extern const ptx_forms ptx_forms_wide;
#endif

/* ---- modules ----------------------------------------------------------------------------- */

typedef struct ptx_parameter {
    char *name;
    uint32_t offset, bytes;
} ptx_parameter;

struct ptx_kernel {
    ptx_module *module;
};

typedef struct ptx_function {
    ptx_kernel kernel;
    char *name;
    bool is_kernel, is_defined;
    uint64_t signature;    /* of where parameters lie; 0: not declared yet */
    ptx_instruction *code; /* until it is linked */
    uint32_t n_code, room_code;
    uint32_t begin; /* in the module's code */
    ptx_parameter *parameters;
    uint32_t n_parameters, room_parameters;
    ptx_parameter result; /* name NULL: none */
    uint32_t parameter_bytes;
    uint32_t units;       /* of registers, PTX_FIRST_REGISTER and on */
    uint32_t back;        /* register: where a call goes back to */
    uint32_t local_bytes; /* with parameters of a device function and of calls */
    uint32_t shared_bytes, max_threads;
    bool uses_common;                  /* the module's shared memory, */
    uint32_t common;                   /* which begins here */
    uint32_t base_units, base_local;   /* where its registers and local memory begin */
    uint32_t total_units, total_local; /* with what it calls */
    uint32_t *calls;                   /* functions */
    uint32_t n_calls, room_calls;
    uint8_t mark; /* of the linker */
} ptx_function;

/* Targets of brx.idx. */
typedef struct ptx_targets {
    uint32_t function;
    uint32_t *places;
    uint32_t n_places, room_places;
} ptx_targets;

struct ptx_module {
    ptx_function **functions;
    uint32_t n_functions, room_functions;
    ptx_instruction *code;
    uint32_t n_code;
    ptx_targets *targets;
    uint32_t n_targets, room_targets;
    unsigned char *constants;             /* aligned to PTX_UNIT */
    size_t n_constants, room_constants;   /* units */
    unsigned char *variables;             /* .global and .const */
    uint32_t n_variables, room_variables; /* bytes */
    uint32_t shared_bytes;                /* of variables that are no kernel's own */
};

/* ---- warps ------------------------------------------------------------------------------- */

typedef struct ptx_block ptx_block;

/* A copy that a lane did not yet wait for. */
typedef struct ptx_copy_ahead {
    unsigned char *to;
    const unsigned char *from;
    uint32_t lane, group;
    uint8_t bytes, n_read;
} ptx_copy_ahead;

struct ptx_warp {
    unsigned char *rows[2];   /* registers, constants */
    uint32_t live;            /* lanes that have not exited */
    uint32_t together;        /* lanes that wait for lanes of the warp */
    uint32_t barred;          /* lanes that wait for the block */
    uint32_t favoured;        /* lanes that run first in this turn */
    uint32_t pc[PTX_LANES];   /* of all lanes that are not running */
    uint32_t mask[PTX_LANES]; /* what lanes in `together` wait for */
    uint32_t index;           /* in the block */
    unsigned char *local;     /* of lane 0; each has block->local_bytes */
    ptx_copy_ahead *copies;
    uint32_t n_copies, room_copies;
    uint32_t groups[PTX_LANES]; /* of copies, that a lane has closed */
    /* Numbers of the last barriers that a lane passed: of the block, and of the warp. */
    uint64_t barrier[PTX_LANES], meeting[PTX_LANES];
};

static inline void *ptx_row(const ptx_warp *warp, ptx_place place) {
    return warp->rows[place >> 31] + (size_t)(place & ~PTX_CONSTANT) * PTX_UNIT;
}

#endif
