/* A device whose driver only writes down what it is asked for. */
#include "tests/cuda/launches.h"
#include "plugins/shared/gpu/gpu.h"

#include <mini_host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CELLS = 16, MAX_OUTS = 4, TEXT = 256 };

const gpu_traits large_gpu = {.has_f64 = true,
                              .compute_units = 132,
                              .unit_items = 2048,
                              .max_group = 1024,
                              .warp = 32,
                              .local_bytes = GPU_LOCAL,
                              .vector_bytes = 16};

const described hot_calls[] = {
    {"add f32", "add", "f32[67108864]", "f32[67108864] f32[67108864] 1.0"},
    {"add bf16", "add", "bf16[134217728]", "bf16[134217728] bf16[134217728] 1.0"},
    {"add f32, a row to each", "add", "f32[65536,1024]", "f32[65536,1024] f32[65536,1024]/0,1 1.0"},
    {"gelu f32", "gelu", "f32[67108864]", "f32[67108864] none"},
    {"gelu bf16", "gelu", "bf16[134217728]", "bf16[134217728] none"},
    {"fused_adamw f32", "fused_adamw", "f32[67108864] f32[67108864] f32[67108864]",
     "f32[67108864] f32[67108864] f32[67108864] f32[67108864] 0.001 0.9 0.99 0.1 0.1 1 false"},
    {"fused_adamw_from f32", "fused_adamw_from", "f32[67108864] f32[67108864] f32[67108864]",
     "f32[67108864] f32[67108864] f32[67108864] f32[67108864] f32[3] 0.9 0.99 0.1 false"},
    {"copy f32 to bf16", "copy", "bf16[67108864]", "f32[67108864]"},
    {"copy f32, turned", "copy", "f32[8192,8192]", "f32[8192,8192]/1,8192"},
    {"copy f16, turned", "copy", "f16[8192,8192]", "f16[8192,8192]/1,8192"},
    {"fill f32", "fill", "f32[67108864]", "1.0"},
    {"random_bits i32", "random_bits", "i32[67108864]", "1 0"},
    {"sum f32, rows", "sum", "f32[16384,1]", "f32[16384,4096] (1)"},
    {"sum f32, columns", "sum", "f32[1,4096]", "f32[16384,4096] (0)"},
    {"sum f32, all", "sum", "f32[1]", "f32[67108864] (0)"},
    {"sum bf16, rows", "sum", "bf16[16384,1]", "bf16[16384,4096] (1)"},
    {"sum f64, rows", "sum", "f64[16384,1]", "f64[16384,4096] (1)"},
    {"var f32, columns", "var", "f32[1,1024]", "f32[65536,1024] (0) 1.0"},
    {"argmax f32, rows", "argmax", "i64[16384,1]", "f32[16384,4096] 1"},
    {"softmax f32, 1000", "softmax", "f32[16384,1000]", "f32[16384,1000] 1"},
    {"softmax f32, 4096", "softmax", "f32[16384,4096]", "f32[16384,4096] 1"},
    {"softmax f32, 50257", "softmax", "f32[1024,50257]", "f32[1024,50257] 1"},
    {"softmax bf16, 4096", "softmax", "bf16[16384,4096]", "bf16[16384,4096] 1"},
    {"log_softmax f32, 4096", "log_softmax", "f32[16384,4096]", "f32[16384,4096] 1"},
    {"softmax_backward f32, 4096", "softmax_backward", "f32[16384,4096]",
     "f32[16384,4096] f32[16384,4096] 1"},
    {"nll_loss f32", "nll_loss", "f32[1] i64[1]", "f32[16384,4096] i64[16384] true -100"},
    {"nll_loss bf16", "nll_loss", "bf16[1] i64[1]", "bf16[16384,4096] i64[16384] true -100"},
    {"nll_loss_backward f32", "nll_loss_backward", "f32[16384,4096]",
     "f32[1] i64[16384] i64[1] 4096 true -100"},
    {"nll_loss_backward bf16", "nll_loss_backward", "bf16[16384,4096]",
     "bf16[1] i64[16384] i64[1] 4096 true -100"},
    {"layer_norm f32, 1024", "layer_norm", "f32[65536,1024] f32[65536,1] f32[65536,1]",
     "f32[65536,1024] f32[1024] f32[1024] 1 0.00001"},
    {"layer_norm f32, 4096", "layer_norm", "f32[16384,4096] f32[16384,1] f32[16384,1]",
     "f32[16384,4096] f32[4096] f32[4096] 1 0.00001"},
    {"layer_norm bf16, 4096", "layer_norm", "bf16[16384,4096] bf16[16384,1] bf16[16384,1]",
     "bf16[16384,4096] bf16[4096] bf16[4096] 1 0.00001"},
    {"layer_norm_backward f32, 1024", "layer_norm_backward", "f32[65536,1024]",
     "f32[65536,1024] f32[65536,1024] f32[65536,1] f32[65536,1] f32[1024] 1"},
    {"cumsum f32, rows", "cumsum", "f32[16384,4096]", "f32[16384,4096] 1"},
    {"cumsum f32, columns", "cumsum", "f32[4096,16384]", "f32[4096,16384] 0"},
    {"sort f32", "sort", "f32[1024,65536] i64[1024,65536]", "f32[1024,65536] 1 false"},
    {"index_select f32", "index_select", "f32[65536,1024]", "f32[50257,1024] 0 i64[65536]"},
    {"index_add f32", "index_add", "f32[50257,1024]",
     "f32[50257,1024] 0 i64[65536] f32[65536,1024] 1.0"},
    {"scatter_add f32", "scatter_add", "f32[65536,1024]",
     "f32[65536,1024] 1 i64[65536,64] f32[65536,64]"},
    {"max_pool2d f32", "max_pool2d", "f32[256,64,56,56] i64[256,64,56,56]",
     "f32[256,64,112,112] (3,3) (2,2) (1,1) (1,1) false"},
    {"max_pool2d_backward f32", "max_pool2d_backward", "f32[256,64,112,112]",
     "f32[256,64,56,56] i64[256,64,56,56] (256,64,112,112)"},
    {"avg_pool2d f32", "avg_pool2d", "f32[256,64,56,56]",
     "f32[256,64,112,112] (2,2) (2,2) (0,0) false true"},
    {"bmm f32", "bmm", "f32[16,1024,1024]", "f32[16,1024,1024] f32[16,1024,1024]"},
    {"bmm bf16", "bmm", "bf16[16,1024,1024]", "bf16[16,1024,1024] bf16[16,1024,1024]"},
    {"bmm f64", "bmm", "f64[16,1024,1024]", "f64[16,1024,1024] f64[16,1024,1024]"},
    {"bmm f32, deep", "bmm", "f32[1,64,64]", "f32[1,64,65536] f32[1,65536,64]"},
    {"flash_attention f32, 64", "flash_attention", "f32[8,16,1024,64] f32[8,16,1024]",
     "f32[8,16,1024,64] f32[8,16,1024,64] f32[8,16,1024,64] - true 0.125"},
    {"flash_attention f32, 128", "flash_attention", "f32[8,16,1024,128] f32[8,16,1024]",
     "f32[8,16,1024,128] f32[8,16,1024,128] f32[8,16,1024,128] - true 0.125"},
    {"flash_attention bf16, 128", "flash_attention", "bf16[8,16,1024,128] f32[8,16,1024]",
     "bf16[8,16,1024,128] bf16[8,16,1024,128] bf16[8,16,1024,128] - true 0.125"},
    {"flash_attention_backward f32, 64", "flash_attention_backward",
     "f32[8,16,1024,64] f32[8,16,1024,64] f32[8,16,1024,64]",
     "f32[8,16,1024,64] f32[8,16,1024,64] f32[8,16,1024,64] f32[8,16,1024,64] "
     "f32[8,16,1024,64] f32[8,16,1024] - true 0.125"},
    {"flash_attention_backward f32, 128", "flash_attention_backward",
     "f32[8,16,1024,128] f32[8,16,1024,128] f32[8,16,1024,128]",
     "f32[8,16,1024,128] f32[8,16,1024,128] f32[8,16,1024,128] f32[8,16,1024,128] "
     "f32[8,16,1024,128] f32[8,16,1024] - true 0.125"},
    {"convolution f32", "convolution", "f32[64,64,56,56]",
     "f32[64,64,56,56] f32[64,64,3,3] f32[64] (1,1) (1,1) (1,1) 1"},
    {NULL, NULL, NULL, NULL},
};

/* ---- the device -------------------------------------------------------------------------- */

struct tn_device_impl {
    gpu_device gpu;
    seen *out;
    int n;
};

struct gpu_kernel {
    char entry[64], file[32], options[GPU_OPTIONS];
};

static tn_status build(tn_device_impl *device, const gpu_variant *v, gpu_kernel **out) {
    gpu_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return TN_ERR_OUT_OF_MEMORY;
    snprintf(k->entry, sizeof k->entry, "%s", v->entry);
    snprintf(k->file, sizeof k->file, "%s", v->source->name);
    snprintf(k->options, sizeof k->options, "%s", v->options);
    *out = k;
    return TN_OK;
}

static void release(tn_device_impl *device, gpu_kernel *kernel) {
    free(kernel);
}

/* The stream is the device. */
static tn_status launch(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    tn_device_impl *device = (tn_device_impl *)stream;
    if (device->n == MAX_LAUNCHES)
        return TN_ERR_INTERNAL;
    seen *s = &device->out[device->n++];
    memcpy(s->entry, k->entry, sizeof s->entry);
    memcpy(s->file, k->file, sizeof s->file);
    memcpy(s->options, k->options, sizeof s->options);
    s->launch = *l;
    s->launch.parameters = NULL;
    return TN_OK;
}

static const gpu_driver driver = {.build = build, .release = release, .launch = launch};

/* ---- text -------------------------------------------------------------------------------- */

typedef struct cell {
    tn_cell value;
    tn_tensor_view view;
    int64_t numbers[TN_MAX_RANK], strides[TN_MAX_RANK];
    char text[16];
} cell;

static uint32_t read_list(const char *text, int64_t *out) {
    uint32_t n = 0;
    for (char *end; n < TN_MAX_RANK; text = end + 1) {
        out[n++] = strtoll(text, &end, 10);
        if (*end != ',')
            break;
    }
    return n;
}

static tn_dtype read_dtype(const char *word, size_t n) {
    for (tn_dtype t = 0; t < TN_DTYPE_COUNT; t++)
        if (strlen(gpu_dtype_names[t]) == n && strncmp(gpu_dtype_names[t], word, n) == 0)
            return t;
    fprintf(stderr, "no dtype: %s\n", word);
    exit(1);
}

static void read_tensor(const char *word, cell *out) {
    const char *sizes = strchr(word, '['), *strides = strchr(word, '/');
    int32_t rank = (int32_t)read_list(sizes + 1, out->numbers);
    int64_t numel = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        out->strides[d] = numel;
        numel *= out->numbers[d];
    }
    if (strides)
        read_list(strides + 1, out->strides);
    out->view = (tn_tensor_view){.struct_size = sizeof out->view,
                                 .memory = 1,
                                 .numel = numel,
                                 .dtype = read_dtype(word, (size_t)(sizes - word)),
                                 .rank = rank,
                                 .sizes = out->numbers,
                                 .strides = out->strides};
    out->value = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &out->view};
}

static void read_cell(const char *word, cell *out) {
    if (strchr(word, '['))
        read_tensor(word, out);
    else if (*word == '(')
        out->value = mini_ints(out->numbers, read_list(word + 1, out->numbers));
    else if (strcmp(word, "-") == 0)
        out->value = mini_none();
    else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        out->value = mini_bool(*word == 't');
    else if (*word < '0' || *word > '9')
        out->value = mini_string(strcpy(out->text, word));
    else if (strchr(word, '.'))
        out->value = mini_f64(strtod(word, NULL));
    else
        out->value = mini_i64(strtoll(word, NULL, 10));
}

static uint32_t read_cells(const char *line, cell *out, uint32_t room) {
    char text[TEXT], *rest = text;
    uint32_t n = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word; n < room && (word = strtok_r(rest, " ", &rest));)
        read_cell(word, &out[n++]);
    return n;
}

/* ---- calls ------------------------------------------------------------------------------- */

/* The first type variable is that of the first tensor among the arguments, else of the output. */
static const tn_kernel *find(const char *op, const tn_call *call) {
    uint64_t n;
    const tn_kernel *const *all = gpu_records(&n);
    tn_dtype dtype = call->outs[0]->dtype;
    if (call->n_args && call->args[0].tag == TN_CELL_TENSOR)
        dtype = call->args[0].v.view->dtype;
    for (uint64_t i = 0; i < n; i++)
        if (strcmp(all[i]->op, op) == 0 && all[i]->dtypes[0] & TN_DTYPE_BIT(dtype))
            return all[i];
    fprintf(stderr, "no kernel: %s\n", op);
    exit(1);
}

int launches_of(const described *d, const gpu_traits *traits, seen out[MAX_LAUNCHES],
                tn_status *out_status) {
    tn_device_impl device = {.out = out};
    cell args[MAX_CELLS], outs[MAX_OUTS];
    tn_cell values[MAX_CELLS];
    const tn_tensor_view *views[MAX_OUTS];
    tn_call call = {.struct_size = sizeof call, .args = values, .outs = views, .workspace = 1};
    call.n_args = read_cells(d->args, args, MAX_CELLS);
    call.n_outs = read_cells(d->outs, outs, MAX_OUTS);
    for (uint32_t i = 0; i < call.n_args; i++)
        values[i] = args[i].value;
    for (uint32_t i = 0; i < call.n_outs; i++)
        views[i] = &outs[i].view;
    *out_status = gpu_device_init(&device.gpu, mini_host_table(), &driver, traits);
    if (*out_status != TN_OK)
        return 0;
    call.device = &device;
    call.stream = (tn_stream_impl *)&device;
    const tn_kernel *kernel = find(d->op, &call);
    call.user = kernel->user;
    tn_plan plan = {.struct_size = sizeof plan};
    if (kernel->supports)
        *out_status = kernel->supports(&call);
    if (*out_status == TN_OK && kernel->prepare)
        *out_status = kernel->prepare(&call, &plan);
    call.workspace_bytes = plan.workspace_bytes;
    if (*out_status == TN_OK)
        *out_status = kernel->run(&call);
    gpu_device_finish(&device.gpu);
    return device.n;
}
