/* How a pointwise operator is written.
 *
 * An operator is a loop over dense arrays, made by one of the TNC_LOOP macros from an expression in
 * a, b, c and d, and a record that names the loop and its dtypes. Everything else (strides,
 * broadcasting, scalars, half precision, threads) is tnc_pointwise_run's.
 */
#ifndef TNI_PLUGINS_CPU_POINTWISE_H
#define TNI_PLUGINS_CPU_POINTWISE_H

#include "plugins/cpu/element.h"
#include "plugins/cpu/iterate.h"

/* out[k][i] = f(in[0][i], in[1][i], ...; attributes) for i < n. Arrays are dense, of the computing
 * type; `attrs` are the arguments after the tensors. */
typedef void (*tnc_loop)(int64_t n, void *const *out, const void *const *in, const tn_cell *attrs);

typedef struct tnc_pointwise {
    tnc_loop loop;
    tnc_loop
        stored; /* of bf16: the same on what is stored, where no operand is a scalar, which is f32 */
    uint8_t n_in, n_out;
    uint8_t dtype;     /* of all operands but the next */
    uint8_t bool_in;   /* this many leading inputs are bool */
    uint8_t bool_out;  /* the outputs are bool */
    uint8_t expensive; /* worth threads at an eighth of the usual size */
} tnc_pointwise;

/* tn_kernel.run for records whose user pointer is a tnc_pointwise. The first two are the last with
 * the number of inputs known to the compiler. */
#define tnc_pointwise_run_1 TNC_ISA(tnc_pointwise_run_1)
#define tnc_pointwise_run_2 TNC_ISA(tnc_pointwise_run_2)
#define tnc_pointwise_run_any TNC_ISA(tnc_pointwise_run_any)
tn_status tnc_pointwise_run_1(const tn_call *call);
tn_status tnc_pointwise_run_2(const tn_call *call);
tn_status tnc_pointwise_run_any(const tn_call *call);

/* ---- loops: TNC_LOOPn(name, output type, input type, declarations, expression) ----------- */

#define TNC_LOOP_HEAD(name) \
    static void name(int64_t n, void *const *out, const void *const *in, const tn_cell *attrs)

#define TNC_LOOP1(name, R, T, prepare, expression) \
    TNC_LOOP_HEAD(name) { \
        prepare; \
        TNC_INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            T a = tnc_read_##T(in[0], i); \
            tnc_write_##R(out[0], i, (R)(expression)); \
        } \
    }

#define TNC_LOOP2(name, R, T, prepare, expression) \
    TNC_LOOP_HEAD(name) { \
        prepare; \
        TNC_INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            T a = tnc_read_##T(in[0], i), b = tnc_read_##T(in[1], i); \
            tnc_write_##R(out[0], i, (R)(expression)); \
        } \
    }

#define TNC_LOOP3(name, R, T, prepare, expression) \
    TNC_LOOP_HEAD(name) { \
        prepare; \
        TNC_INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            T a = tnc_read_##T(in[0], i), b = tnc_read_##T(in[1], i), c = tnc_read_##T(in[2], i); \
            tnc_write_##R(out[0], i, (R)(expression)); \
        } \
    }

/* No declarations before the loop. */
#define TNC_NOTHING (void)0

/* Attribute k of the operator as a number of type T. */
#define TNC_ATTR_F(T, k) ((T)attrs[k].v.f64)
#define TNC_ATTR_I(T, k) ((T)attrs[k].v.i64)

/* ---- records ----------------------------------------------------------------------------- */

/* TNC_POINTWISE(op, DTYPE, loop, inputs, outputs, run, further members of tnc_pointwise) */
#define TNC_POINTWISE(op, DT, loop_, n_in_, n_out_, run_, ...) \
    TNC_KERNEL(op, TN_DTYPE_BIT(TN_##DT), TNC_FLAGS_POINTWISE, run_, \
               .user = (void *)&(const tnc_pointwise){ \
                   .loop = loop_, .n_in = n_in_, .n_out = n_out_, .dtype = TN_##DT, __VA_ARGS__})

#define TNC_UNARY(op, DT, loop, ...) \
    TNC_POINTWISE(op, DT, loop, 1, 1, tnc_pointwise_run_1, __VA_ARGS__)
#define TNC_BINARY(op, DT, loop, ...) \
    TNC_POINTWISE(op, DT, loop, 2, 1, tnc_pointwise_run_2, __VA_ARGS__)
#define TNC_TERNARY(op, DT, loop, ...) \
    TNC_POINTWISE(op, DT, loop, 3, 1, tnc_pointwise_run_any, __VA_ARGS__)

/* The four floating dtypes of an operator with loops op_f32 and op_f64, halves in blocks of f32. */
#define TNC_FLOATS_IN_BLOCKS(KIND, op, ...) \
    KIND(op, F32, op##_f32, __VA_ARGS__), KIND(op, F64, op##_f64, __VA_ARGS__), \
        KIND(op, F16, op##_f32, __VA_ARGS__), KIND(op, BF16, op##_f32, __VA_ARGS__)

/* The same where there is a loop op_bf16. */
#define TNC_FLOATS(KIND, op, ...) \
    KIND(op, F32, op##_f32, __VA_ARGS__), KIND(op, F64, op##_f64, __VA_ARGS__), \
        KIND(op, F16, op##_f32, __VA_ARGS__), \
        KIND(op, BF16, op##_f32, .stored = op##_bf16, __VA_ARGS__)

/* The five integer dtypes of an operator with loops op_i8 and so on. */
#define TNC_INTS(KIND, op, ...) \
    KIND(op, I8, op##_i8, __VA_ARGS__), KIND(op, I16, op##_i16, __VA_ARGS__), \
        KIND(op, I32, op##_i32, __VA_ARGS__), KIND(op, I64, op##_i64, __VA_ARGS__), \
        KIND(op, U8, op##_u8, __VA_ARGS__)

#define TNC_NUMBERS(KIND, op, ...) \
    TNC_FLOATS(KIND, op, __VA_ARGS__), TNC_INTS(KIND, op, __VA_ARGS__)

#endif
