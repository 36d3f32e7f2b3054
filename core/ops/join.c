/* cat and stack, and the gradients of what joins and splits. */
#include "base/alloc.h"
#include "core/ops/functions.h"

#include <string.h>

/* An old custom: empty tensors of rank 1 are passed over. */
static bool passed_over(const tn_tensor *t) {
    return t->view.rank == 1 && t->sizes[0] == 0;
}

tn_status tni_run_cat(const tn_cell *args, tn_cell *rets) {
    tn_tensor *const *list = args[0].v.pointer;
    uint32_t n = args[0].n;
    tn_tensor *first = NULL;
    tni_promotion promotion = TNI_NO_PROMOTION;
    if (n == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_cat: there is no tensor to join");
    for (uint32_t i = 0; i < n; i++) {
        tn_cell cell = tni_cell_tensor(list[i]);
        tni_promotion_add(&promotion, &cell);
        if (list[i]->device != list[0]->device)
            return tni_fail(TN_ERR_DEVICE,
                            "tn_cat: tensors on %s and on %s cannot be mixed; move one "
                            "with tn_to_device",
                            list[0]->device->name, list[i]->device->name);
        if (!first && !passed_over(list[i]))
            first = list[i];
    }
    tn_dtype dtype = tni_promotion_result(&promotion);
    if (dtype == TN_DTYPE_NONE)
        return tni_fail(TN_ERR_DTYPE,
                        "tn_cat: the tensors' dtypes promote to none; convert them to one with"
                        " tn_to_dtype");
    if (!first)
        return tni_return(rets, tni_to_copy(list[0], dtype, tn_no_device()));
    if (first->view.rank == 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_cat: tensors without dimensions cannot be joined; use tn_stack");
    int32_t dim = tni_wrap_dim(args[1].v.i64, first->view.rank, "tn_cat: dim");
    if (dim < 0)
        return tni_failed();
    int64_t sizes[TN_MAX_RANK];
    memcpy(sizes, first->sizes, (size_t)first->view.rank * sizeof *sizes);
    sizes[dim] = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (passed_over(list[i]) && first->view.rank != 1)
            continue;
        bool fits = list[i]->view.rank == first->view.rank;
        for (int32_t d = 0; fits && d < first->view.rank; d++)
            fits = d == dim || list[i]->sizes[d] == first->sizes[d];
        if (!fits)
            return tni_fail(TN_ERR_SHAPE,
                            "tn_cat: tensor %u is %s, but another is %s; sizes must be "
                            "equal except along dimension %d",
                            i, TNI_SHAPE_OF(list[i]), TNI_SHAPE_OF(first), dim);
        if (!tni_add_i64(sizes[dim], list[i]->sizes[dim], &sizes[dim]))
            return tni_fail(TN_ERR_SHAPE, "tn_cat: more elements along dimension %d than 2^63",
                            dim);
    }
    tn_tensor *result = tni_tensor_new(first->device, dtype, first->view.rank, sizes);
    int64_t start = 0;
    for (uint32_t i = 0; result && i < n; i++) {
        if (list[i]->view.numel == 0)
            continue;
        tn_tensor *place = tni_tensor_view(result, list[i]->view.rank, list[i]->sizes,
                                           result->strides, start * result->strides[dim]);
        tn_status status = place ? tni_copy_data(place, list[i]) : tni_failed();
        tni_drop(place);
        start += list[i]->sizes[dim];
        if (status != TN_OK) {
            tni_drop(result);
            result = NULL;
        }
    }
    return tni_return(rets, result);
}

tn_status tni_run_stack(const tn_cell *args, tn_cell *rets) {
    tn_tensor *const *list = args[0].v.pointer;
    uint32_t n = args[0].n, made = 0;
    if (n == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_stack: there is no tensor to stack");
    for (uint32_t i = 1; i < n; i++)
        if (!tni_same_shape(list[i], list[0]))
            return tni_fail(TN_ERR_SHAPE,
                            "tn_stack: tensor %u is %s, but tensor 0 is %s; shapes must be equal",
                            i, TNI_SHAPE_OF(list[i]), TNI_SHAPE_OF(list[0]));
    int32_t dim = tni_wrap_dim(args[1].v.i64, list[0]->view.rank + 1, "tn_stack: dim");
    if (dim < 0)
        return tni_failed();
    tn_tensor **rows = tni_calloc(n, sizeof *rows);
    if (!rows)
        return tni_fail_memory("a list of tensors");
    while (made < n && (rows[made] = tni_unsqueeze(list[made], dim)))
        made++;
    tn_tensor *result = made == n ? tni_cat(rows, n, dim) : NULL;
    tni_drop_list(rows, made);
    return tni_return(rets, result);
}

/* ---- gradients --------------------------------------------------------------------------- */

/* attrs: length of each input along dim, dim */
tn_status tni_backward_cat(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    tn_tensor *grad = grads[0];
    if (!grad)
        return TN_OK;
    tn_ints lengths = tni_node_ints(node, 0);
    int64_t start = 0;
    for (uint32_t i = 0; i < node->n_edges; start += lengths.data[i++]) {
        if (!tni_node_needs(node, i) || lengths.data[i] == 0)
            continue;
        out[i] = tni_narrow(grad, node->attrs[1].v.i64, start, lengths.data[i]);
        if (!out[i]) {
            tni_drop_all(out, node->n_edges);
            return tni_failed();
        }
    }
    return TN_OK;
}

/* Joins the gradients of all outputs, with zeros in the place of those that have none. */
static tn_status join_grads(tni_node *node, tn_tensor *const *grads, tn_tensor **out, int64_t dim,
                            bool stack) {
    uint32_t n = node->n_outputs, given = 0, made = 0;
    for (uint32_t i = 0; i < n; i++)
        given += grads[i] != NULL;
    if (given == 0 || !tni_node_needs(node, 0))
        return TN_OK;
    tn_tensor **list = tni_calloc(n, sizeof *list);
    if (!list)
        return tni_fail_memory("a list of gradients");
    for (; made < n; made++) {
        const tni_output_meta *piece = &node->outputs[made];
        list[made] = grads[made] ? tni_keep(grads[made])
                                 : tni_zeros(tn_ints_of(piece->sizes, piece->rank), piece->dtype,
                                             piece->device->id);
        if (!list[made])
            break;
    }
    if (made == n)
        out[0] = stack ? tni_stack(list, n, dim) : tni_cat(list, n, dim);
    tni_drop_list(list, made);
    return out[0] ? TN_OK : tni_failed();
}

/* attrs: sizes of self, dim, dtype */
tn_status tni_backward_unbind(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    int64_t dim = node->attrs[1].v.i64;
    return join_grads(node, grads, out, dim < 0 ? dim + node->attrs[0].n : dim, true);
}

/* attrs: sizes of self, dim */
tn_status tni_backward_split(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    return join_grads(node, grads, out, node->attrs[1].v.i64, false);
}
