/* Bmm and addmm as products. Either factor may be the one that is packed, the other then
 * being read where it lies: whichever is sooner done. */
#include "plugins/shared/gpu/gemm.h"

/* Dimensions of a view from the last: 0 columns, 1 rows, 2 batch. */
static int64_t stride(const tn_tensor_view *v, int from_last) {
    int d = v->rank - 1 - from_last;
    return d < 0 || v->sizes[d] == 1 ? 0 : v->strides[d];
}

/* [rows, columns] of a view as an operand: of which `along` (0 columns, 1 rows) is k. */
static gpu_operand factor(const tn_tensor_view *v, int along) {
    return (gpu_operand){.memory = v->memory,
                         .dtype = v->dtype,
                         .offset = gpu_offset(v),
                         .batch = stride(v, 2),
                         .m = {0, 0, stride(v, !along)},
                         .k = {0, 0, stride(v, along)},
                         .n = stride(v, !along)};
}

/* C or S, its m along rows (1) or columns (0). */
static gpu_operand result(const tn_tensor_view *v, int m) {
    return (gpu_operand){.memory = v->memory,
                         .dtype = v->dtype,
                         .offset = gpu_offset(v),
                         .batch = stride(v, 2),
                         .m = {0, 0, stride(v, m)},
                         .n = stride(v, !m)};
}

/* out = x y, or with `turned` out^T = y^T x^T. */
static gpu_gemm product_of(const tn_tensor_view *x, const tn_tensor_view *y,
                           const tn_tensor_view *s, const tn_tensor_view *out, bool turned) {
    int last = out->rank - 1;
    int64_t rows = out->sizes[last - 1], columns = out->sizes[last];
    gpu_gemm p = {.n_batch = last == 2 ? out->sizes[0] : 1,
                  .m = {1, 1, turned ? columns : rows},
                  .k = {1, 1, x->sizes[last]},
                  .n = turned ? rows : columns,
                  .a = turned ? factor(y, 1) : factor(x, 0),
                  .b = turned ? factor(x, 0) : factor(y, 1),
                  .c = result(out, !turned)};
    if (s)
        p.s = result(s, !turned);
    return p;
}

static void make(const tn_call *call, const tn_tensor_view *x, const tn_tensor_view *y,
                 const tn_tensor_view *s, gpu_gemm_job *out) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    tn_dtype dtype = x->dtype, type = gpu_computed(dtype);
    gpu_gemm p = product_of(x, y, s, call->outs[0], false),
             turned = product_of(x, y, s, call->outs[0], true);
    p.a.dtype = turned.a.dtype = type;
    if (gpu_gemm_cost(traits, &turned) < gpu_gemm_cost(traits, &p))
        p = turned;
    out->product = p;
    if (dtype != type) { /* a copy of the left factor */
        gpu_operand *a = &out->product.a;
        int64_t m = p.m[2], k = p.k[2], n = a->batch ? p.n_batch : 1;
        out->pad = (gpu_pad){.memory = a->memory,
                             .dtype = dtype,
                             .offset = a->offset,
                             .strides = {a->batch, 0, a->m[2], a->k[2]},
                             .inside = {m, k},
                             .sizes = {n, 1, m, k}};
        out->pad.at = gpu_bump_take(&out->bump, (uint64_t)(n * m * k) * gpu_dtype_sizes[type]);
        *a = (gpu_operand){.memory = call->workspace,
                           .dtype = type,
                           .offset = gpu_piece(call, out->pad.at, type),
                           .batch = a->batch ? m * k : 0,
                           .m = {0, 0, k},
                           .k = {0, 0, 1}};
    }
    gpu_gemm_prepare(traits, &out->product, &out->bump);
}

static void make_bmm(const tn_call *call, gpu_gemm_job *job) {
    make(call, gpu_arg(call, TN_ARG_bmm_self), gpu_arg(call, TN_ARG_bmm_mat2), NULL, job);
    job->product.alpha = gpu_number_i(call->outs[0]->dtype, 1);
}

static void make_addmm(const tn_call *call, gpu_gemm_job *job) {
    const tn_cell *beta = &call->args[TN_ARG_addmm_beta];
    tn_dtype dtype = call->outs[0]->dtype;
    bool is_zero = beta->tag == TN_CELL_F64 ? beta->v.f64 == 0 : beta->v.i64 == 0;
    make(call, gpu_arg(call, TN_ARG_addmm_mat1), gpu_arg(call, TN_ARG_addmm_mat2),
         is_zero ? NULL : gpu_arg(call, TN_ARG_addmm_self), job);
    job->product.alpha = gpu_number(dtype, &call->args[TN_ARG_addmm_alpha]);
    job->product.beta = gpu_number(dtype, beta);
}

static const gpu_gemm_maker bmm = {make_bmm}, addmm = {make_addmm};

#define RECORDS(name_) \
    GPU_KERNEL(name_, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED, gpu_gemm_job_run, GPU_GEMM_JOB(name_))

static const tn_kernel records[] = {RECORDS(bmm), RECORDS(addmm)};
GPU_PUBLISH(matmul, records);
