/* Kernel calls: of kernels that do something wrong, and wrong ones of kernels that do not. */
#include "tests/validation/findings.h"

#include <string.h>

static int64_t sizes[2] = {2, 4}, strides[2] = {4, 1};
static tn_tensor_view in, out, third;
static tn_cell args[3];
static const tn_tensor_view *outs[2] = {&out, &out};
static tn_call call;

/* f32 tensors of 2 x 4 at 0, 64 and 128 of the allocation. */
static tn_tensor_view view_at(uint64_t offset) {
    return (tn_tensor_view){.struct_size = sizeof in,
                            .memory = memory,
                            .offset = offset,
                            .numel = 8,
                            .dtype = TN_F32,
                            .rank = 2,
                            .sizes = sizes,
                            .strides = strides};
}

static void begin(uint32_t kernel) {
    open_all();
    sizes[0] = 2, sizes[1] = 4, strides[0] = 4, strides[1] = 1;
    in = view_at(0), out = view_at(64), third = view_at(128);
    memset(args, 0, sizeof args);
    args[0] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &in};
    call = (tn_call){.struct_size = sizeof call,
                     .device = device,
                     .stream = stream,
                     .user = p->table->kernels[kernel]->user,
                     .args = args,
                     .outs = outs,
                     .n_args = 1,
                     .n_outs = 1};
    if (kernel == BRITTLE_ADD) {
        args[1] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &third};
        args[2] = (tn_cell){.tag = TN_CELL_F64, .v.f64 = 1};
        call.n_args = 3;
    }
}

static tn_status run_it(uint32_t kernel) {
    return p->table->kernels[kernel]->run(&call);
}

static void run_neg(void) {
    begin(BRITTLE_NEG);
    run_it(BRITTLE_NEG);
    close_all();
}

/* The work that queued nothing keeps no memory. */
void run_and_free(void) {
    begin(BRITTLE_NEG);
    char bytes[8];
    run_it(BRITTLE_NEG);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    tn_allocation other = request(TN_SPACE_DEVICE, 64);
    p->devices->memory->alloc(device, &other);
    p->devices->memory->fill(device, stream, other.memory, 0, 1, 8);
    p->devices->memory->copy_to_host(device, stream, bytes, 0, other.memory, 0, 8);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, other.memory);
    close_all();
}

static void prepare_it(uint32_t kernel) {
    tn_plan plan = {.struct_size = sizeof plan};
    p->table->kernels[kernel]->prepare(&call, &plan);
    call.cookie = plan.cookie;
    call.workspace = memory;
    call.workspace_offset = 192;
    call.workspace_bytes = plan.workspace_bytes;
}

static void abandon_it(uint32_t kernel) {
    p->table->kernels[kernel]->abandon(&call);
}

static void ask_neg(void) {
    begin(BRITTLE_NEG);
    p->table->kernels[BRITTLE_NEG]->supports(&call);
    prepare_it(BRITTLE_NEG);
    abandon_it(BRITTLE_NEG);
    close_all();
}

void use_plans(void) {
    begin(BRITTLE_NEG);
    for (int i = 0; i < 2; i++) {
        prepare_it(BRITTLE_NEG);
        run_it(BRITTLE_NEG);
        prepare_it(BRITTLE_NEG);
        abandon_it(BRITTLE_NEG);
    }
    close_all();
}

static void leave_plan(void) {
    begin(BRITTLE_NEG);
    prepare_it(BRITTLE_NEG);
    prepare_it(BRITTLE_NEG);
    abandon_it(BRITTLE_NEG);
    close_all();
}

/* What the layer refuses to run it abandons, since the caller takes it for run. */
static void refuse_plan(void) {
    begin(BRITTLE_NEG);
    prepare_it(BRITTLE_NEG);
    in.offset = 240;
    assert_int_equal(run_it(BRITTLE_NEG), TN_ERR_STATE);
    assert_int_equal(brittle.n_abandoned, 1);
    close_all();
}

static tn_allocation pinned;

static void begin_with_pinned(void) {
    begin(BRITTLE_NEG);
    pinned = request(TN_SPACE_PINNED, 256);
    assert_int_equal(p->devices->memory->alloc(device, &pinned), TN_OK);
}

static void run_with_pinned(void) {
    assert_int_equal(run_it(BRITTLE_NEG), TN_ERR_STATE);
    p->devices->memory->dealloc(device, TN_SPACE_PINNED, pinned.memory);
    close_all();
}

static void view_pinned(void) {
    begin_with_pinned();
    in.memory = pinned.memory;
    run_with_pinned();
}

static void workspace_pinned(void) {
    begin_with_pinned();
    call.workspace = pinned.memory;
    call.workspace_bytes = 64;
    run_with_pinned();
}

static void ask_device(void) {
    open_all();
    for (uint64_t i = 0; i < p->table->n_kernels; i++)
        p->devices->accepts(device, p->table->kernels[i]);
    close_all();
}

/* NEG with one line that makes the call wrong. */
#define WRONG(name, kernel, ...) \
    static void name(void) { \
        begin(kernel); \
        __VA_ARGS__; \
        run_it(kernel); \
        close_all(); \
    }
#define REFUSED(name, kernel, ...) \
    static void name(void) { \
        begin(kernel); \
        __VA_ARGS__; \
        assert_int_equal(run_it(kernel), TN_ERR_STATE); \
        close_all(); \
    }
REFUSED(view_past_end, BRITTLE_NEG, in.offset = 240)
REFUSED(view_in_freed, BRITTLE_NEG, in.memory += 1)
REFUSED(view_negative, BRITTLE_NEG, strides[0] = -4)
REFUSED(view_rank, BRITTLE_NEG, in.rank = 13)
REFUSED(view_far, BRITTLE_NEG, strides[0] = INT64_C(1) << 31)
REFUSED(view_null, BRITTLE_NEG, args[0].v.view = NULL)
REFUSED(workspace_outside, BRITTLE_NEG, call.workspace = memory; call.workspace_bytes = 512)
WRONG(workspace_misaligned, BRITTLE_NEG, call.workspace = memory; call.workspace_bytes = 8;
      call.workspace_offset = 136)
WRONG(workspace_short, BRITTLE_NEG, prepare_it(BRITTLE_NEG); call.workspace_bytes = 32)
WRONG(another_cookie, BRITTLE_NEG, prepare_it(BRITTLE_NEG); call.cookie = 6)
WRONG(view_numel, BRITTLE_NEG, in.numel = 7)
WRONG(view_offset, BRITTLE_NEG, in.offset = 2)
WRONG(view_layout, BRITTLE_NEG, in.layout = 3)
WRONG(dtype_outside, BRITTLE_NEG, in.dtype = TN_I32)
WRONG(strided, BRITTLE_NEG, sizes[1] = 2; in.numel = out.numel = 4)
WRONG(broadcast, BRITTLE_WHERE, strides[0] = 0; out.strides = (int64_t[]){4, 1};
      args[1] = args[2] = args[0]; third.dtype = TN_BOOL; third.strides = out.strides;
      args[0].v.view = &third; call.n_args = 3)
WRONG(output_broadcast, BRITTLE_NEG, strides[0] = 0; in.strides = (int64_t[]){4, 1})
WRONG(in_place, BRITTLE_PLAIN_NEG, out.offset = 0)
WRONG(partly_in_place, BRITTLE_NEG, out.offset = 16)
WRONG(two_scalars, BRITTLE_ADD, args[0] = args[1] = args[2])
WRONG(a_scalar, BRITTLE_NEG, args[0] = (tn_cell){.tag = TN_CELL_F64})
WRONG(a_tag, BRITTLE_ADD, args[2].tag = 77)
WRONG(n_outs_, BRITTLE_NEG, call.n_outs = 2; out = view_at(64))

const finding_case kernel_cases[] = {
    {"device is moody", ask_device, TNP_DEVICE_SUPPORTS, "devices->accepts", "same question", SYNC,
     1},
    {"silent", run_neg, TNP_FAIL_MESSAGE, "kernel->run", "no message", SYNC, 1},
    {"declines late", run_neg, TNP_SUPPORTED_RUNS, "kernel->run", "output 0", SYNC, 2},
    {"moody", ask_neg, TNP_SUPPORTS_ANSWER, "kernel->supports", "same question", SYNC, 1},
    {"answers shape", ask_neg, TNP_SUPPORTS_ANSWER, "kernel->supports", "SHAPE", SYNC, 1},
    {"greedy", ask_neg, TNP_KERNEL_WORKSPACE, "kernel->prepare", "more than", SYNC, 1},
    {"changes plan", ask_neg, TNP_HOST_STRUCT_SIZE, "kernel->prepare", "struct_size", SYNC, 1},
    {"writes inputs", run_neg, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "kernel->run", "argument 0", SYNC,
     2},
    {"writes beside", run_neg, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "kernel->run", "behind output 0",
     SYNC, 2},
    {"writes inputs", run_neg, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "kernel->run", "argument 0", ASYNC,
     2},
    {"writes beside", run_neg, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "kernel->run", "behind output 0",
     ASYNC, 2},
    {"declines late", run_neg, TNP_SUPPORTED_RUNS, "kernel->run", "output 0", ASYNC, 2},
    {"keeps the call", run_neg, TNP_CALL_BORROWED, "kernel->run", "borrowed", SYNC, 2},
    {"rounds", run_neg, TNP_PROCESS_STATE_KEPT, "kernel->run", "floating-point", SYNC, 2},
    {"masks files", run_neg, TNP_PROCESS_STATE_KEPT, "kernel->run", "umask", SYNC, 2},
    {"goes away", run_neg, TNP_PROCESS_STATE_KEPT, "kernel->run", "working directory", SYNC, 2},
    {"blocks signals", run_neg, TNP_PROCESS_STATE_KEPT, "kernel->run", "signal mask", SYNC, 2},
    {NULL, view_past_end, 0, "kernel->run", "leave allocation", SYNC, 1},
    {NULL, view_in_freed, 0, "kernel->run", "not alive", SYNC, 1},
    {NULL, view_negative, 0, "kernel->run", "stride -4", SYNC, 1},
    {NULL, view_rank, 0, "kernel->run", "rank 13", SYNC, 1},
    {NULL, view_far, 0, "kernel->run", "TN_KERNEL_INDEX64", SYNC, 1},
    {NULL, view_pinned, 0, "kernel->run", "argument 0: memory", SYNC, 1},
    {NULL, view_null, 0, "kernel->run", "view is NULL", SYNC, 1},
    {NULL, view_numel, 0, "kernel->run", "numel is 7", SYNC, 1},
    {NULL, view_offset, 0, "kernel->run", "no multiple of the element", SYNC, 1},
    {NULL, view_layout, 0, "kernel->run", "layout 3", SYNC, 1},
    {NULL, workspace_outside, 0, "kernel->run", "leaves its allocation", SYNC, 1},
    {NULL, workspace_misaligned, 0, "kernel->run", "workspace_offset 136", SYNC, 1},
    {NULL, workspace_pinned, 0, "kernel->run", "in no device memory", SYNC, 1},
    {NULL, workspace_short, 0, "kernel->run", "prepare asked for 64", SYNC, 1},
    {NULL, another_cookie, 0, "kernel->run", "the cookie is 0x6", SYNC, 1},
    {NULL, leave_plan, 0, "kernel->prepare", "neither run nor abandon", SYNC, 1},
    {NULL, refuse_plan, 0, "kernel->run", "leave allocation", SYNC, 1},
    {NULL, run_and_free, 0, "memory->dealloc", "nobody waited", ASYNC, 1},
    {NULL, dtype_outside, 0, "kernel->run", "dtype", SYNC, 1},
    {NULL, strided, 0, "kernel->run", "TN_KERNEL_STRIDED", SYNC, 1},
    {NULL, broadcast, 0, "kernel->run", "TN_KERNEL_BROADCAST", SYNC, 1},
    {NULL, output_broadcast, 0, "kernel->run", "output one", SYNC, 1},
    {NULL, in_place, 0, "kernel->run", "TN_KERNEL_IN_PLACE", SYNC, 1},
    {NULL, partly_in_place, 0, "kernel->run", "share memory", SYNC, 1},
    {NULL, two_scalars, 0, "kernel->run", "2 tensor arguments", SYNC, 1},
    {NULL, a_scalar, 0, "kernel->run", "TN_KERNEL_SCALARS", SYNC, 1},
    {NULL, a_tag, 0, "kernel->run", "tag 77", SYNC, 1},
    {NULL, n_outs_, 0, "kernel->run", "2 outputs", SYNC, 1},
};
const int n_kernel_cases = sizeof kernel_cases / sizeof *kernel_cases;
