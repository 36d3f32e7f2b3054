/* See product.h. */
#include "plugins/cuda/product.h"

#include "plugins/cuda/plans.h"

#include <stdint.h>
#include <tenon/kernels.h>

/* The last two dimensions of a view; the strides of what there is once are 0. */
typedef struct plane {
    int64_t rows, columns, row_stride, column_stride, step;
    uint64_t address;
} plane;

static int64_t stride(const tn_tensor_view *v, int32_t d) {
    return d >= 0 && v->sizes[d] > 1 ? v->strides[d] : 0;
}

static plane plane_of(const tn_tensor_view *v) {
    int32_t r = v->rank;
    return (plane){.rows = v->sizes[r - 2],
                   .columns = v->sizes[r - 1],
                   .row_stride = stride(v, r - 2),
                   .column_stride = stride(v, r - 1),
                   .step = stride(v, r - 3),
                   .address = v->memory + v->offset};
}

static plane transpose(plane p) {
    return (plane){p.columns, p.rows, p.column_stride, p.row_stride, p.step, p.address};
}

/* Do the columns lie one behind the other, each in a row? */
static bool by_columns(plane p, cuda_matrix *out) {
    bool lies = (p.rows == 1 || p.row_stride == 1) && (p.columns == 1 || p.column_stride >= p.rows);
    *out = (cuda_matrix){.ld = p.columns > 1 ? p.column_stride : p.rows,
                         .step = p.step,
                         .alignment = cuda_alignment(p.address)};
    return lies;
}

static bool factor(plane p, cuda_matrix *out) {
    if (by_columns(p, out))
        return true;
    bool lies = by_columns(transpose(p), out);
    out->is_transposed = 1;
    return lies;
}

/* A vector that is added to every column? */
static bool is_bias(plane p) {
    return p.columns > 1 && p.column_stride == 0 && (p.rows == 1 || p.row_stride == 1);
}

static bool addend(plane p, double beta, cuda_product *out) {
    if (beta == 1 && is_bias(p)) {
        out->adds = CUDA_ADDS_BIAS;
        out->c = (cuda_matrix){.alignment = cuda_alignment(p.address)};
        return true;
    }
    out->adds = CUDA_ADDS_MATRIX;
    return by_columns(p, &out->c);
}

/* Would the library take the number, which is not 0, for 0, and not look at what it multiplies? */
static bool vanishes(const cuda_terms *t, double x) {
    return t->out->dtype != TN_F64 && x != 0 && (float)x == 0;
}

/* out = x y; or, where the output's rows lie in a row, out^T = y^T x^T. */
bool cuda_product_of(const cuda_terms *t, cuda_product *p) {
    if (vanishes(t, t->beta))
        return false;
    plane a = plane_of(t->x), b = plane_of(t->y), d = plane_of(t->out),
          c = t->s ? plane_of(t->s) : d;
    *p = (cuda_product){.dtype = t->out->dtype, .batch = t->out->rank == 3 ? t->out->sizes[0] : 1};
    p->is_turned = by_columns(transpose(d), &p->d);
    if (p->is_turned) {
        plane first = a;
        a = transpose(b);
        b = transpose(first);
        c = transpose(c);
        d = transpose(d);
    } else if (!by_columns(d, &p->d)) {
        return false;
    }
    p->m = d.rows;
    p->n = d.columns;
    p->k = a.columns;
    return factor(a, &p->a) && factor(b, &p->b) && (!t->s || addend(c, t->beta, p)) &&
           p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX && p->batch <= INT32_MAX;
}

static double number(const tn_cell *cell) {
    return cell->tag == TN_CELL_F64 ? cell->v.f64 : (double)cell->v.i64;
}

cuda_terms cuda_terms_of_bmm(const tn_call *call) {
    return (cuda_terms){.x = call->args[TN_ARG_bmm_self].v.view,
                        .y = call->args[TN_ARG_bmm_mat2].v.view,
                        .out = call->outs[0],
                        .alpha = 1};
}

cuda_terms cuda_terms_of_addmm(const tn_call *call) {
    double beta = number(&call->args[TN_ARG_addmm_beta]);
    return (cuda_terms){.x = call->args[TN_ARG_addmm_mat1].v.view,
                        .y = call->args[TN_ARG_addmm_mat2].v.view,
                        .s = beta == 0 ? NULL : call->args[TN_ARG_addmm_self].v.view,
                        .out = call->outs[0],
                        .alpha = number(&call->args[TN_ARG_addmm_alpha]),
                        .beta = beta};
}
