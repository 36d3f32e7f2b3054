/* What the generated calls are made of: good and wrong values of each kind, and where what came
 * of a call is judged. */
#ifndef TNI_TESTS_MISUSE_MISUSE_H
#define TNI_TESTS_MISUSE_MISUSE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/data.h>
#include <tenon/dlpack.h>
#include <tenon/kernels.h>
#include <tenon/tenon.h>
#include <tenon/validation.h>

/* ---- the calls -------------------------------------------------------------------------- */

/* Which argument is wrong, and how; argument -1: none. */
typedef struct place {
    const struct called *function;
    int argument;
    unsigned value;
} place;

typedef struct parameter {
    const char *name;
    const char *const *values; /* names of the wrong ones */
    unsigned n_values;
} parameter;

typedef struct called {
    const char *name;
    void (*call)(const place *at);
    const parameter *parameters;
    unsigned n_parameters;
    bool in_forward;  /* called inside the forward of a custom function */
    bool is_operator; /* leaves nothing behind, so that a process may call many */
} called;

extern const called functions[];
extern const unsigned n_functions;

/* A call is to succeed, or to fail with an error that says something. */
void gave_status(const place *at, tn_status status);
void gave_pointer(const place *at, const volatile void *result, bool may_be_null);
void came_back(const place *at);

/* ---- good values ------------------------------------------------------------------------ */

enum { N_MANY = 16 };

typedef enum fill {
    FILL_ANY,
    FILL_POSITIVE,
    FILL_AWAY,
    FILL_APART,
    FILL_UNIT,
    FILL_ABOVE,
    FILL_MASK, /* bool */
    FILL_INDEX /* i64 below a limit */
} fill;

tn_tensor *sample(fill how, int64_t limit, tn_ints shape);

tn_device cpu(void);
tn_device sim(void); /* another device; the CPU where there is none */
const char *sim_path(void);
const char *idx_path(void);

tn_tensor *plain(void);            /* f32 [2, 3] */
tn_tensor *number(void);           /* f32 [] */
tn_tensor *leaf(void);             /* that requires a gradient, and has none */
tn_tensor *shared_leaf(void);      /* the same each time within one call */
tn_tensor *made_by_operator(void); /* requires one, too */
tn_tensor *loss(void);
tn_tensor *check_input(void); /* f64 */
tn_tensor *const *list_of(tn_tensor *t);
tn_event *recorded_event(void);
tn_status check_fn(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                   uint64_t *n_outputs, void *user);

tn_tensor *good_tensor(void);
tn_tensor *const *good_tensors(void); /* N_MANY */
tn_tensor **good_outs(void);          /* room for N_MANY */
int64_t good_i64(void);
uint64_t good_u64(void);
uint64_t good_length(void);
int32_t good_i32(void);
uint32_t good_u32(void);
double good_f64(void);
bool good_flag(void);
tn_dtype good_dtype(void);
tn_scope good_scope(void);
tn_device good_device(void);
tn_ints good_ints(void);
tn_scalar good_scalar(void);
tn_keyset good_keyset(void);
tn_thread_keys good_thread_keys(void);
const char *good_text(void);
char *good_buffer(void);
void *good_address(void);
tn_stream *good_stream(void);
tn_event *good_event(void);
tn_storage *good_storage(void);
tn_graph *good_graph(void);
tn_optimizer *good_optimizer(void);
tn_grad_scaler *good_scaler(void);
tn_grad_scaler *scaler_after_a_step(void);
tn_one_cycle_options *ten_steps(void);
tn_registration *good_registration(void);
const tn_op *good_op(void);
const tn_cell *good_cells(void);
tn_cell *good_result_cells(void);
void *good_out(void);
DLManagedTensorVersioned *good_dlpack(void);
DLManagedTensor *good_dlpack_legacy(void);
/* TENON_SCOPE_DEBUG=1: tensors that are gone are known. */
bool is_watched(void);
/* So far; the scope is emptied behind each. */
unsigned n_calls(void);
tn_function_context *good_context(void);
tn_status no_backward(tn_function_context *c, tn_tensor *const *output_grads, uint64_t n_outputs,
                      tn_tensor **grads, uint64_t n_inputs, void *user);
const tn_function *good_function(void);
const tn_kernel *good_kernel(void);
const char *const *list_of_text(const char *text);
const char *const *good_texts(void);
tn_dataset *good_dataset(void);
tn_data_records *good_records(void);
tn_data_random *good_random(void);
tn_data_loader *good_loader(void);
tn_data_loader_options *good_loader_options(void);
tn_data_loader_state *good_loader_state(void);
tn_data_batch *batch_out(void);

/* ---- wrong values ----------------------------------------------------------------------- */

tn_tensor *of_dtype(tn_dtype dtype, tn_device device);
tn_tensor *of_shape(tn_ints shape);
tn_tensor *huge(void);                     /* of 2^61 elements, and no data */
tn_tensor *gone(void);                     /* whose scope is closed; NULL where nobody could tell */
tn_tensor *const *list_with(tn_tensor *t); /* at its second place */
const char *long_text(void);

#define GONE "no longer there"

/* X(what is said of it, the value) */

#define WRONG_tensor(X) \
    X("NULL", NULL) \
    X("TN_NONE", TN_NONE) \
    X("bool", of_dtype(TN_BOOL, cpu())) \
    X("i64", of_dtype(TN_I64, cpu())) \
    X("u8", of_dtype(TN_U8, cpu())) \
    X("f16", of_dtype(TN_F16, cpu())) \
    X("on sim", of_dtype(TN_F32, sim())) \
    X("i64 on sim", of_dtype(TN_I64, sim())) \
    X("on meta", of_dtype(TN_F32, tn_device_parse("meta"))) \
    X("rank 0", number()) \
    X("[0]", of_shape(TN_SHAPE(0))) \
    X("[3, 0, 2]", of_shape(TN_SHAPE(3, 0, 2))) \
    X("[7]", of_shape(TN_SHAPE(7))) \
    X("rank 12", of_shape(TN_SHAPE(1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2))) \
    X("expanded", tn_expand(of_shape(TN_SHAPE(1, 3)), TN_SHAPE(2, 3))) \
    X("huge, on meta", huge()) \
    X("huge and empty", tn_expand(of_shape(TN_SHAPE(0, 1)), TN_SHAPE(0, INT64_MAX / 4))) \
    X("transposed", tn_t(of_shape(TN_SHAPE(3, 2)))) \
    X("a leaf", leaf()) \
    X("NaN", tn_full(TN_SHAPE(2, 3), tn_float(NAN))) \
    X("-1", tn_full(TN_SHAPE(2, 3), tn_int(-1), TN_I64)) \
    X("2^40", tn_full(TN_SHAPE(2, 3), tn_int(INT64_C(1) << 40), TN_I64)) \
    X(GONE, gone())
#define WRONG_tensors(X) \
    X("NULL", NULL) \
    X("with NULL", list_with(NULL)) \
    X("with TN_NONE", list_with(TN_NONE)) \
    X("with bool", list_with(of_dtype(TN_BOOL, cpu()))) \
    X("with one on sim", list_with(of_dtype(TN_F32, sim()))) \
    X("with one on meta", list_with(of_dtype(TN_F32, tn_device_parse("meta")))) \
    X("with rank 0", list_with(number())) \
    X("of bool", list_of(of_dtype(TN_BOOL, cpu()))) \
    X("on sim", list_of(of_dtype(TN_F32, sim()))) \
    X("of TN_NONE", list_of(TN_NONE)) \
    X("huge, on meta", list_of(huge())) \
    X("[3, 0, 2]", list_of(of_shape(TN_SHAPE(3, 0, 2)))) \
    X(GONE, list_of(gone()))
#define WRONG_outs(X) X("NULL", NULL)
#define WRONG_i64(X) \
    X("-1", -1) \
    X("0", 0) \
    X("-3", -3) \
    X("INT64_MIN", INT64_MIN) \
    X("INT64_MAX", INT64_MAX) \
    X("2^31", INT64_C(1) << 31) \
    X("2^32 + 1", (INT64_C(1) << 32) + 1) \
    X("2^62", INT64_C(1) << 62)
#define WRONG_u64(X) \
    X("0", 0) \
    X("UINT64_MAX", UINT64_MAX) \
    X("2^63", UINT64_C(1) << 63) \
    X("2^32", UINT64_C(1) << 32) \
    X("7", 7)
#define WRONG_length(X) X("0", 0)
#define WRONG_i32(X) \
    X("-1", -1) \
    X("99", 99) \
    X("INT32_MIN", INT32_MIN) \
    X("INT32_MAX", INT32_MAX)
#define WRONG_u32(X) \
    X("0", 0) \
    X("UINT32_MAX", UINT32_MAX) \
    X("2^31", UINT32_C(1) << 31) \
    X("99", 99)
#define WRONG_f64(X) \
    X("NaN", NAN) \
    X("inf", INFINITY) \
    X("-inf", -INFINITY) \
    X("-1", -1) \
    X("0", 0) \
    X("1e300", 1e300) \
    X("1e-300", 1e-300)
#define WRONG_flag(X) X("the other", true)
#define WRONG_dtype(X) \
    X("-2", -2) \
    X("13", 13) \
    X("16", TN_DTYPE_END) \
    X("u16", TN_U16) \
    X("c128", TN_C128) \
    X("99", 99) \
    X("1000000", 1000000) \
    X("INT32_MIN", INT32_MIN) \
    X("TN_DTYPE_NONE", TN_DTYPE_NONE) \
    X("bool", TN_BOOL) \
    X("i8", TN_I8) \
    X("f16", TN_F16) \
    X("i64", TN_I64)
#define WRONG_scope(X) \
    X("0", 0) \
    X("-1", UINT64_MAX) \
    X("another", UINT64_C(77) << 32 | 3)
#define WRONG_device(X) \
    X("{0, 0}", ((tn_device){0, 0})) \
    X("{0, 5}", ((tn_device){0, 5})) \
    X("{99, 0}", ((tn_device){99, 0})) \
    X("{64, 0}", ((tn_device){64, 0})) \
    X("{65, 0}", ((tn_device){65, 0})) \
    X("{-1, 0}", ((tn_device){-1, 0})) \
    X("{INT32_MIN, 0}", ((tn_device){INT32_MIN, 0})) \
    X("cpu:-5", ((tn_device){cpu().type, -5})) \
    X("cpu:2^31-1", ((tn_device){cpu().type, INT32_MAX})) \
    X("sim", sim()) \
    X("meta", tn_device_parse("meta"))
#define WRONG_ints(X) \
    X("left out", tn_no_ints()) \
    X("3 at NULL", tn_ints_of(NULL, 3)) \
    X("[]", TN_SCALAR_SHAPE) \
    X("-2^63 ints", tn_ints_of(numbers(0), INT64_MIN)) \
    X("2^32 + 1 ints", tn_ints_of(numbers(0), (INT64_C(1) << 32) + 1)) \
    X("2^40 ints", tn_ints_of(numbers(0), INT64_C(1) << 40)) \
    X("100 zeros", tn_ints_of(numbers(0), 100)) \
    X("13 ones", tn_ints_of(numbers(1), 13)) \
    X("[-1]", tn_ints_of(numbers(-1), 1)) \
    X("[-1, -1]", tn_ints_of(numbers(-1), 2)) \
    X("[-7, -7]", tn_ints_of(numbers(-7), 2)) \
    X("[2^31]", tn_ints_of(numbers(INT64_C(1) << 31), 1)) \
    X("[2^62, 2^62]", tn_ints_of(numbers(INT64_C(1) << 62), 2)) \
    X("[INT64_MAX] * 3", tn_ints_of(numbers(INT64_MAX), 3)) \
    X("[INT64_MIN, INT64_MIN]", tn_ints_of(numbers(INT64_MIN), 2)) \
    X("[0, 0]", tn_ints_of(numbers(0), 2)) \
    X("[1, 1]", tn_ints_of(numbers(1), 2))
#define WRONG_scalar(X) \
    X("left out", tn_no_scalar()) \
    X("a cell of tag 77", ((tn_scalar){.tag = 77})) \
    X("a list", ((tn_scalar){.tag = TN_CELL_INTS, .n = 5})) \
    X("a text", ((tn_scalar){.tag = TN_CELL_STRING})) \
    X("NaN", tn_float(NAN)) \
    X("inf", tn_float(INFINITY)) \
    X("1e300", tn_float(1e300)) \
    X("INT64_MIN", tn_int(INT64_MIN)) \
    X("INT64_MAX", tn_int(INT64_MAX)) \
    X("-1", tn_int(-1)) \
    X("0", tn_int(0)) \
    X("bool", tn_bool(true))
#define WRONG_keyset(X) \
    X("empty", ((tn_keyset){0, 0, 0})) \
    X("all", ((tn_keyset){UINT64_MAX, UINT32_MAX, UINT32_MAX}))
#define WRONG_thread_keys(X) \
    X("all included", ((tn_thread_keys){UINT32_MAX, 0})) \
    X("all excluded", ((tn_thread_keys){0, UINT32_MAX}))
#define WRONG_text(X) \
    X("NULL", NULL) \
    X("\"\"", "") \
    X("no UTF-8", "\xff\xfe%n%s\x1b[2J") \
    X("another", "nosuch") \
    X("70,000 letters", long_text())
#define WRONG_buffer(X) X("NULL", NULL)
#define WRONG_address(X) X("NULL", NULL)
#define WRONG_stream(X) \
    X("NULL", NULL) \
    X("of sim", tn_stream_create(sim(), 0))
#define WRONG_event(X) \
    X("NULL", NULL) \
    X("of sim", tn_event_create(sim(), false)) \
    X("of sim, with time", tn_event_create(sim(), true))
#define WRONG_storage(X) \
    X("NULL", NULL) \
    X("on sim", tn_storage_of(of_dtype(TN_F32, sim()))) \
    X("on meta", tn_storage_of(of_dtype(TN_F32, tn_device_parse("meta"))))
#define WRONG_graph(X) X("NULL", NULL)
#define WRONG_optimizer(X) X("NULL", NULL)
#define WRONG_scaler(X) X("NULL", NULL)
#define WRONG_registration(X) X("NULL", NULL)
#define WRONG_op(X) \
    X("NULL", NULL) \
    X("another", tn_op_find("neg"))
#define WRONG_cells(X) \
    X("NULL", NULL) \
    X("left out", cells_with((tn_cell){0})) \
    X("a tensor at NULL", cells_with((tn_cell){.tag = TN_CELL_TENSOR})) \
    X("tensors at NULL", cells_with((tn_cell){.tag = TN_CELL_TENSORS, .n = 3})) \
    X("ints at NULL", cells_with((tn_cell){.tag = TN_CELL_INTS, .n = 3})) \
    X("a text at NULL", cells_with((tn_cell){.tag = TN_CELL_STRING})) \
    X("a cell of tag 77", cells_with((tn_cell){.tag = 77})) \
    X("a number", cells_with(tn_int(5)))
#define WRONG_result_cells(X) X("NULL", NULL)
#define WRONG_out(X) X("NULL", NULL)
#define WRONG_dlpack(X) \
    X("NULL", NULL) \
    X("of version 2", dlpack_with(0)) \
    X("without a shape", dlpack_with(1)) \
    X("of rank -1", dlpack_with(2)) \
    X("of rank 99", dlpack_with(3)) \
    X("of 3 lanes", dlpack_with(4)) \
    X("of no dtype", dlpack_with(5)) \
    X("on no device", dlpack_with(6)) \
    X("at NULL", dlpack_with(7)) \
    X("of negative sizes", dlpack_with(8)) \
    X("of negative strides", dlpack_with(9)) \
    X("behind its memory", dlpack_with(10))
#define WRONG_dlpack_legacy(X) X("NULL", NULL)
#define WRONG_context(X) X("NULL", NULL)
#define WRONG_function(X) \
    X("NULL", NULL) \
    X("without a name", function_without(0)) \
    X("without forward", function_without(1)) \
    X("without backward", function_without(2))
#define WRONG_kernel(X) \
    X("NULL", NULL) \
    X("without a name", kernel_without(0)) \
    X("without run", kernel_without(1)) \
    X("of no size", kernel_without(2)) \
    X("of no operator", kernel_without(3)) \
    X("of another schema", kernel_without(4))
#define WRONG_texts(X) \
    X("NULL", NULL) \
    X("of NULL", list_of_text(NULL)) \
    X("of \"\"", list_of_text("")) \
    X("of no UTF-8", list_of_text("\xff\xfe%n%s\x1b[2J")) \
    X("of 70,000 letters", list_of_text(long_text())) \
    X("of a folder", list_of_text("/"))
#define WRONG_dataset(X) \
    X("NULL", NULL) \
    X("zeros", dataset_with(0)) \
    X("without read", dataset_with(1)) \
    X("of no samples", dataset_with(2)) \
    X("of -5 samples", dataset_with(3)) \
    X("of 2^62 samples", dataset_with(4)) \
    X("of 99 fields", dataset_with(5)) \
    X("of no dtype", dataset_with(6)) \
    X("of rank 99", dataset_with(7)) \
    X("of negative sizes", dataset_with(8)) \
    X("of 2^60 bytes", dataset_with(9))
#define WRONG_records(X) \
    X("NULL", NULL) \
    X("of no bytes", records_with(0)) \
    X("of 2^64 - 1 bytes", records_with(1)) \
    X("behind 2^64 - 1 bytes", records_with(2)) \
    X("of no fields", records_with(3)) \
    X("of 99 fields", records_with(4)) \
    X("with a field beyond", records_with(5))
#define WRONG_random(X) X("NULL", NULL)
#define WRONG_loader(X) X("NULL", NULL)
#define WRONG_loader_options(X) \
    X("NULL", NULL) \
    X("zeros", loader_options_with(0)) \
    X("batches of -1", loader_options_with(1)) \
    X("batches of 2^63 - 1", loader_options_with(2)) \
    X("2^32 - 1 workers", loader_options_with(3)) \
    X("2^32 - 1 batches ahead", loader_options_with(4)) \
    X("99 fields", loader_options_with(5)) \
    X("device {99, 0}", loader_options_with(6)) \
    X("device meta", loader_options_with(7)) \
    X("no last batch", loader_options_with(8))
#define WRONG_loader_state(X) \
    X("NULL", NULL) \
    X("epoch -1", loader_state_with(-1, 0)) \
    X("epoch 2^31", loader_state_with(INT64_C(1) << 31, 0)) \
    X("position -1", loader_state_with(0, -1)) \
    X("position 2^63 - 1", loader_state_with(0, INT64_MAX))
#define WRONG_callback(X) X("NULL", NULL)
/* Structs that begin with their size. */
#define WRONG_sized(X) \
    X("NULL", NULL) \
    X("of size 0", sized(good, 0)) \
    X("of size 4", sized(good, 4)) \
    X("of size 8", sized(good, 8))

const int64_t *numbers(int64_t value); /* 100 of them */
const tn_cell *cells_with(tn_cell second);
DLManagedTensorVersioned *dlpack_with(int fault);
const tn_function *function_without(int member);
const tn_kernel *kernel_without(int member);
void *sized(void *good, uint64_t bytes);
tn_dataset *dataset_with(int fault);
tn_data_records *records_with(int fault);
tn_data_loader_options *loader_options_with(int fault);
tn_data_loader_state *loader_state_with(int64_t epoch, int64_t position);

/* A tn_fallback_policy and its like are numbers here. */
#define MISUSE_KINDS(X) \
    X(tensor, tn_tensor *) \
    X(tensors, tn_tensor *const *) \
    X(outs, tn_tensor **) \
    X(i64, int64_t) \
    X(u64, uint64_t) \
    X(length, uint64_t) \
    X(i32, int32_t) \
    X(u32, uint32_t) \
    X(f64, double) \
    X(flag, bool) \
    X(dtype, tn_dtype) \
    X(scope, tn_scope) \
    X(device, tn_device) \
    X(ints, tn_ints) \
    X(scalar, tn_scalar) \
    X(keyset, tn_keyset) \
    X(thread_keys, tn_thread_keys) \
    X(text, const char *) \
    X(buffer, char *) \
    X(address, void *) \
    X(stream, tn_stream *) \
    X(event, tn_event *) \
    X(storage, tn_storage *) \
    X(graph, tn_graph *) \
    X(optimizer, tn_optimizer *) \
    X(scaler, tn_grad_scaler *) \
    X(registration, tn_registration *) \
    X(op, const tn_op *) \
    X(cells, const tn_cell *) \
    X(result_cells, tn_cell *) \
    X(out, void *) \
    X(dlpack, DLManagedTensorVersioned *) \
    X(dlpack_legacy, DLManagedTensor *) \
    X(context, tn_function_context *) \
    X(function, const tn_function *) \
    X(kernel, const tn_kernel *) \
    X(texts, const char *const *) \
    X(dataset, tn_dataset *) \
    X(records, tn_data_records *) \
    X(random, tn_data_random *) \
    X(loader, tn_data_loader *) \
    X(loader_options, tn_data_loader_options *) \
    X(loader_state, tn_data_loader_state *)

#define MISUSE_DECLARE(kind, type) \
    type wrong_##kind(unsigned i); \
    extern const char *const names_##kind[]; \
    enum { N_##kind = 0 WRONG_##kind(MISUSE_COUNT) };
#define MISUSE_COUNT(name, value) +1
MISUSE_KINDS(MISUSE_DECLARE)

void *wrong_sized(void *good, unsigned i);
extern const char *const names_sized[], *const names_callback[];
enum { N_sized = 0 WRONG_sized(MISUSE_COUNT), N_callback = 0 WRONG_callback(MISUSE_COUNT) };

#endif
