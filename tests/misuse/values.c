/* The values that misuse.h lists: good ones of each kind, and those that are wrong. */
#define _GNU_SOURCE
#include "tests/misuse/misuse.h"

/* ---- good values ------------------------------------------------------------------------- */

tn_device cpu(void) {
    return tn_device_parse("cpu:0");
}

tn_device sim(void) {
    tn_device device = tn_device_parse("sim:0");
    return device.type ? device : cpu();
}

const char *sim_path(void) {
    return getenv("MISUSE_PLUGIN");
}

const char *idx_path(void) {
    return getenv("MISUSE_IDX");
}

static int64_t count_of(tn_ints shape) {
    int64_t n = 1;
    for (int64_t i = 0; i < shape.n; i++)
        n *= shape.data[i];
    return n;
}

tn_tensor *sample(fill how, int64_t limit, tn_ints shape) {
    enum { MOST = 4096 };
    static float reals[MOST];
    static int64_t whole[MOST];
    static uint8_t flags[MOST];
    int64_t n = count_of(shape);
    for (int64_t i = 0; i < n && i < MOST; i++) {
        float apart = 0.1f * (float)((i * 7 + 3) % (n + (n % 7 == 0)) - n / 2) + 0.03f;
        reals[i] = how == FILL_POSITIVE || how == FILL_AWAY ? 0.5f + 0.1f * (float)(i % 15)
                   : how == FILL_UNIT                       ? 0.1f + 0.1f * (float)(i % 8)
                   : how == FILL_ABOVE                      ? 1.5f + 0.1f * (float)(i % 15)
                                                            : apart;
        whole[i] = limit ? i % limit : 0;
        flags[i] = i % 3 == 0;
    }
    const void *data = how == FILL_MASK ? (void *)flags : how == FILL_INDEX ? (void *)whole : reals;
    return n > MOST ? NULL
                    : tn_from_data(data, shape,
                                   how == FILL_MASK    ? TN_BOOL
                                   : how == FILL_INDEX ? TN_I64
                                                       : TN_F32,
                                   cpu());
}

tn_tensor *of_shape(tn_ints shape) {
    return sample(FILL_ANY, 0, shape);
}

tn_tensor *huge(void) {
    return tn_expand(tn_ones(TN_SHAPE(2, 1), TN_F32, tn_device_parse("meta")),
                     TN_SHAPE(2, INT64_C(1) << 60));
}

tn_tensor *gone(void) {
    TN_SCOPE;
    return is_watched() ? plain() : NULL;
}

tn_tensor *of_dtype(tn_dtype dtype, tn_device device) {
    return tn_ones(TN_SHAPE(2, 3), dtype, device);
}

tn_tensor *plain(void) {
    return of_shape(TN_SHAPE(2, 3));
}

tn_tensor *number(void) {
    return of_shape(TN_SCALAR_SHAPE);
}

tn_tensor *leaf(void) {
    return tn_set_requires_grad(plain(), true);
}

/* The scope is emptied behind each call, so the leaf of the last one may be gone. */
tn_tensor *shared_leaf(void) {
    static tn_tensor *t;
    static unsigned of = UINT32_MAX;
    if (of != n_calls())
        t = leaf();
    of = n_calls();
    return t;
}

tn_tensor *made_by_operator(void) {
    return tn_mul(leaf(), plain());
}

tn_tensor *loss(void) {
    return tn_sum(made_by_operator());
}

tn_tensor *check_input(void) {
    return tn_set_requires_grad(tn_to_dtype(plain(), TN_F64), true);
}

tn_status check_fn(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                   uint64_t *n_outputs, void *user) {
    outputs[0] = tn_mul(inputs[0], inputs[0]);
    *n_outputs = 1;
    return outputs[0] ? TN_OK : tn_error_status();
}

tn_tensor *const *list_of(tn_tensor *t) {
    static tn_tensor *lists[4][N_MANY];
    static unsigned next;
    tn_tensor **list = lists[next++ % 4];
    for (int i = 0; i < N_MANY; i++)
        list[i] = t;
    return list;
}

tn_tensor *const *list_with(tn_tensor *t) {
    tn_tensor **list = (tn_tensor **)list_of(plain());
    list[1] = t;
    return list;
}

tn_event *recorded_event(void) {
    tn_event *event = tn_event_create(cpu(), true);
    tn_event_record(event, tn_current_stream(cpu()));
    return event;
}

tn_tensor *good_tensor(void) {
    return plain();
}

tn_tensor *const *good_tensors(void) {
    return list_of(plain());
}

tn_tensor **good_outs(void) {
    static tn_tensor *outs[8][N_MANY];
    static unsigned next;
    return outs[next++ % 8];
}

int64_t good_i64(void) {
    return 0;
}

uint64_t good_u64(void) {
    return 0;
}

uint64_t good_length(void) {
    return 1;
}

int32_t good_i32(void) {
    return 0;
}

uint32_t good_u32(void) {
    return 1;
}

double good_f64(void) {
    return 0.5;
}

bool good_flag(void) {
    return false;
}

tn_dtype good_dtype(void) {
    return TN_F32;
}

tn_scope good_scope(void) {
    return tn_scope_open();
}

tn_device good_device(void) {
    return cpu();
}

tn_ints good_ints(void) {
    return tn_ints_of(numbers(1), 2);
}

tn_scalar good_scalar(void) {
    return tn_float(1.5);
}

tn_keyset good_keyset(void) {
    return (tn_keyset){UINT64_C(1) << (cpu().type - 1), TN_KEY_BIT(TN_KEY_BACKEND), 0};
}

tn_thread_keys good_thread_keys(void) {
    return tn_thread_keys_get();
}

const char *good_text(void) {
    return "add.Tensor";
}

char *good_buffer(void) {
    return tn_to_string(plain());
}

/* Of 64 bytes and more. */
void *good_address(void) {
    static _Alignas(64) char memory[4096];
    return memory;
}

tn_stream *good_stream(void) {
    return tn_stream_create(cpu(), 0);
}

tn_event *good_event(void) {
    return tn_event_create(cpu(), true);
}

tn_storage *good_storage(void) {
    return tn_storage_of(plain());
}

static tn_status add_one(void *t) {
    return tn_add_(t, t) ? TN_OK : tn_error_status();
}

tn_graph *good_graph(void) {
    tn_graph *graph = NULL;
    tn_graph_capture(sim(), add_one, tn_keep(of_dtype(TN_F32, sim())), &graph);
    return graph;
}

tn_optimizer *good_optimizer(void) {
    tn_tensor *param = leaf();
    return tn_adamw_create(&param, 1, NULL);
}

tn_grad_scaler *good_scaler(void) {
    return tn_grad_scaler_create(NULL);
}

tn_grad_scaler *scaler_after_a_step(void) {
    tn_grad_scaler *scaler = good_scaler();
    tn_grad_scaler_step(scaler, good_optimizer(), NULL);
    return scaler;
}

tn_one_cycle_options *ten_steps(void) {
    static tn_one_cycle_options options;
    options = tn_one_cycle_defaults();
    options.total_steps = 10;
    return &options;
}

static tn_tensor *pass(tn_tensor *grad, void *user) {
    return grad;
}

tn_registration *good_registration(void) {
    return tn_register_hook(tn_keep(leaf()), pass, NULL, NULL);
}

const tn_op *good_op(void) {
    return tn_op_find("add.Tensor");
}

const tn_cell *cells_with(tn_cell second) {
    static tn_cell cells[N_MANY];
    cells[0] = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = plain()};
    cells[1] = second;
    cells[2] = tn_int(1);
    return cells;
}

const tn_cell *good_cells(void) {
    return cells_with((tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = plain()});
}

tn_cell *good_result_cells(void) {
    static tn_cell cells[N_MANY];
    memset(cells, 0, sizeof cells);
    return cells;
}

void *good_out(void) {
    static uint64_t outs[8];
    static unsigned next;
    return &outs[next++ % 8];
}

DLManagedTensorVersioned *good_dlpack(void) {
    DLManagedTensorVersioned *managed = NULL;
    tn_to_dlpack(plain(), 0, &managed);
    return managed;
}

DLManagedTensor *good_dlpack_legacy(void) {
    DLManagedTensor *managed = NULL;
    tn_to_dlpack_legacy(plain(), &managed);
    return managed;
}

tn_status no_backward(tn_function_context *c, tn_tensor *const *output_grads, uint64_t n_outputs,
                      tn_tensor **grads, uint64_t n_inputs, void *user) {
    return TN_OK;
}

static tn_status copy_forward(tn_function_context *c, tn_tensor *const *inputs, uint64_t n_inputs,
                              tn_tensor **outputs, uint64_t n_outputs, void *user) {
    outputs[0] = n_inputs ? tn_clone(inputs[0]) : plain();
    return outputs[0] ? TN_OK : tn_error_status();
}

const tn_function *good_function(void) {
    return function_without(-1);
}

static tn_status kernel_run(const tn_call *call) {
    return TN_ERR_UNSUPPORTED;
}

const tn_kernel *good_kernel(void) {
    return kernel_without(-1);
}

/* ---- datasets and loaders ---------------------------------------------------------------- */

const char *const *list_of_text(const char *text) {
    static const char *list[N_MANY];
    for (int i = 0; i < N_MANY; i++)
        list[i] = text;
    return list;
}

const char *const *good_texts(void) {
    return list_of_text(idx_path());
}

static tn_status read_zero(void *user, int64_t index, void *const *out) {
    memset(out[0], 0, 2 * sizeof(float));
    return TN_OK;
}

tn_dataset *good_dataset(void) {
    static tn_dataset d;
    d = (tn_dataset){.length = 5, .n_fields = 1, .read = read_zero};
    d.fields[0] = tn_data_field_of(TN_F32, TN_SHAPE(2));
    return &d;
}

tn_dataset *dataset_with(int fault) {
    tn_dataset *d = good_dataset();
    static const int64_t lengths[] = {[2] = 0, [3] = -5, [4] = INT64_C(1) << 62};
    if (fault == 0)
        *d = (tn_dataset){0};
    if (fault == 1)
        d->read = NULL;
    if (fault >= 2 && fault <= 4)
        d->length = lengths[fault];
    if (fault == 5)
        d->n_fields = 99;
    if (fault == 6)
        d->fields[0].dtype = (tn_dtype)99;
    if (fault == 7)
        d->fields[0].rank = 99;
    if (fault == 8)
        d->fields[0].sizes[0] = -2;
    if (fault == 9)
        d->fields[0].sizes[0] = INT64_C(1) << 58;
    return d;
}

/* Of the labels' file: 8 bytes, then one each. */
tn_data_records *good_records(void) {
    static tn_data_records r;
    r = (tn_data_records){.record_bytes = 1, .n_fields = 1};
    r.fields[0] = tn_data_field_of(TN_U8, TN_SCALAR_SHAPE);
    return &r;
}

tn_data_records *records_with(int fault) {
    tn_data_records *r = good_records();
    if (fault < 2)
        r->record_bytes = fault ? UINT64_MAX : 0;
    if (fault == 2)
        r->header_bytes = UINT64_MAX;
    if (fault == 3 || fault == 4)
        r->n_fields = fault == 3 ? 0 : 99;
    if (fault == 5)
        r->offsets[0] = UINT64_MAX;
    return r;
}

tn_data_random *good_random(void) {
    static tn_data_random r;
    r = tn_data_random_of(1, 2, 3);
    return &r;
}

tn_data_loader *good_loader(void) {
    return tn_data_loader_create(good_dataset(), good_loader_options());
}

tn_data_loader_options *good_loader_options(void) {
    static tn_data_loader_options o;
    o = (tn_data_loader_options){.batch_size = 2, .shuffle = true, .n_workers = 1};
    return &o;
}

tn_data_loader_options *loader_options_with(int fault) {
    tn_data_loader_options *o = good_loader_options();
    if (fault == 0)
        *o = (tn_data_loader_options){0};
    if (fault == 1 || fault == 2)
        o->batch_size = fault == 1 ? -1 : INT64_MAX;
    if (fault == 3)
        o->n_workers = UINT32_MAX;
    if (fault == 4)
        o->prefetch = UINT32_MAX;
    if (fault == 5)
        o->n_fields = 99;
    if (fault == 6)
        o->device = (tn_device){99, 0};
    if (fault == 7)
        o->device = tn_device_parse("meta");
    if (fault == 8) {
        o->batch_size = 6;
        o->drop_last = true;
    }
    return o;
}

tn_data_batch *batch_out(void) {
    static tn_data_batch batch;
    return &batch;
}

tn_data_loader_state *good_loader_state(void) {
    return loader_state_with(1, 2);
}

tn_data_loader_state *loader_state_with(int64_t epoch, int64_t position) {
    static tn_data_loader_state state;
    state = (tn_data_loader_state){7, epoch, position};
    return &state;
}

/* ---- wrong values ------------------------------------------------------------------------ */

const int64_t *numbers(int64_t value) {
    static int64_t all[8][100];
    static unsigned next;
    int64_t *some = all[next++ % 8];
    for (int i = 0; i < 100; i++)
        some[i] = value;
    return some;
}

const char *long_text(void) {
    static char text[70000];
    memset(text, 'x', sizeof text - 1);
    return text;
}

DLManagedTensorVersioned *dlpack_with(int what) {
    static int64_t negative[] = {-1, -1};
    DLManagedTensorVersioned *m = good_dlpack();
    DLTensor *t = &m->dl_tensor;
    m->deleter = NULL; /* what is changed here is not the deleter's to free */
    switch (what) {
    case 0:
        m->version.major = 2;
        break;
    case 1:
        t->shape = NULL;
        break;
    case 2:
        t->ndim = -1;
        break;
    case 3:
        t->ndim = 99;
        break;
    case 4:
        t->dtype.lanes = 3;
        break;
    case 5:
        t->dtype = (DLDataType){77, 3, 1};
        break;
    case 6:
        t->device.device_type = 99;
        break;
    case 7:
        t->data = NULL;
        break;
    case 8:
        t->shape = negative;
        break;
    case 9:
        t->strides = negative;
        break;
    default:
        t->byte_offset = UINT64_MAX - 3;
    }
    return m;
}

const tn_function *function_without(int member) {
    static tn_function f;
    f = (tn_function){member == 0 ? NULL : "MisuseBackward", member == 1 ? NULL : copy_forward,
                      member == 2 ? NULL : no_backward, NULL};
    return &f;
}

const tn_kernel *kernel_without(int member) {
    static tn_kernel k;
    k = (tn_kernel){.struct_size = member == 2 ? 0 : sizeof k,
                    .op = member == 0   ? NULL
                          : member == 3 ? "misuse::nosuch"
                                        : TN_KERNEL_add,
                    .schema_hash = member == 4 ? 1 : TN_KERNEL_HASH_add,
                    .dtypes = {TN_DTYPE_BIT(TN_F32)},
                    .run = member == 1 ? NULL : kernel_run};
    return &k;
}

void *sized(void *good, uint64_t bytes) {
    memcpy(good, &bytes, sizeof bytes);
    return good;
}

#define CHOOSE(name, value) \
    if (i-- == 0) \
        return (value);
#define NAME(name, value) name,
#define DEFINE(kind, type) \
    type wrong_##kind(unsigned i) { \
        WRONG_##kind(CHOOSE) abort(); \
    } \
    const char *const names_##kind[] = {WRONG_##kind(NAME)};
MISUSE_KINDS(DEFINE)

void *wrong_sized(void *good, unsigned i) {
    WRONG_sized(CHOOSE) abort();
}
const char *const names_sized[] = {WRONG_sized(NAME)}, *const names_callback[] = {
                                                           WRONG_callback(NAME)};
