/* Pointwise operators: promote, broadcast, allocate, adapt to the kernel, call it.
 *
 * Most calls are of the plain kind (contiguous operands of one shape and dtype) and take the short
 * way, which touches nothing it does not need. The long way handles everything and decides what the
 * kernel's flags require: contiguous copies, materialised broadcasts, filled scalars, temporaries,
 * splits. */
#include "core/call/call.h"
#include "core/call/operands.h"
#include "core/profile/profile.h"

#include <string.h>

/* The argument that fills kernel argument i. */
static const tn_cell *source(const tni_op_info *info, const tn_cell *args, uint32_t i) {
    uint8_t from = info->kernel_args[i];
    return from < TNI_ARG_CONSTANT ? &args[from] : &info->constants[from - TNI_ARG_CONSTANT];
}

/* A scalar as an element of the dtype: F64 for a floating one, else I64 (BOOL for bool). */
static tn_cell scalar_for(tn_dtype dtype, const tn_cell *cell) {
    if (tni_is_float(dtype))
        return tni_cell_f64(tni_scalar_f64(*cell));
    if (dtype == TN_BOOL)
        return tni_cell_bool(cell->tag == TN_CELL_F64 ? cell->v.f64 != 0 : cell->v.i64 != 0);
    return tni_cell_i64(tni_scalar_i64(*cell));
}

/* A Scalar attribute as kernels get it: never BOOL; one that was left out stays so. */
static tn_cell attribute_for(tn_dtype dtype, const tn_cell *cell) {
    tn_cell c = cell->tag == TN_CELL_NONE ? *cell : scalar_for(dtype, cell);
    return c.tag == TN_CELL_BOOL ? tni_cell_i64(c.v.boolean) : c;
}

/* A scalar in a tensor's place is an element of the tensors' dtype, on every device and whichever
 * kernel runs: integers wrap. Of halves, which are computed in f32, it is rounded where it is
 * compared. */
static tn_cell operand_for(const tni_kernel_types *kt, tn_dtype dtype, const tn_cell *cell) {
    tn_cell c = scalar_for(dtype, cell);
    bool compared = kt->outs[0] < 0;
    switch (dtype) {
    case TN_I8:
        c.v.i64 = (int8_t)c.v.i64;
        break;
    case TN_U8:
        c.v.i64 = (uint8_t)c.v.i64;
        break;
    case TN_I16:
        c.v.i64 = (int16_t)c.v.i64;
        break;
    case TN_I32:
        c.v.i64 = (int32_t)c.v.i64;
        break;
    case TN_F16:
        if (compared)
            c.v.f64 = (double)tni_f16_to_f32(tni_f32_to_f16((float)c.v.f64));
        break;
    case TN_BF16:
        if (compared)
            c.v.f64 = (double)tni_bf16_to_f32(tni_f32_to_bf16((float)c.v.f64));
        break;
    default:
        break;
    }
    return c;
}

/* May the scalar join a computation in `dtype` without changing it? */
static bool scalar_fits(tn_dtype dtype, const tn_cell *cell) {
    return cell->tag == TN_CELL_F64   ? tni_is_float(dtype)
           : cell->tag == TN_CELL_I64 ? dtype != TN_BOOL
                                      : true;
}

static tn_dtype out_dtype(const tni_kernel_types *kt, tn_dtype type) {
    return tni_coded_dtype(kt->outs[0], &type);
}

/* ---- the long way ------------------------------------------------------------------------ */

typedef struct long_call {
    tni_build b;
    tni_choice choice;
    tn_dtype type;                     /* that the operator's rule gives */
    tn_tensor *dst;                    /* of an in-place or out form */
    tn_tensor *inputs[TNI_MAX_ARGS];   /* by kernel argument; NULL where it is a cell */
    bool operand_scalar[TNI_MAX_ARGS]; /* a cell in a tensor's place */
    bool begun;                        /* a piece has been run for this record */
    tni_operands operands;
    uint32_t slot[TNI_MAX_ARGS]; /* of each input in operands */
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
} long_call;

/* Sorts arguments into tensors and cells, and finds T. */
static tn_status collect(long_call *c) {
    tni_build *b = &c->b;
    const tni_kernel_types *kt = b->types_of;
    tni_promotion promotion = TNI_NO_PROMOTION;
    for (uint32_t i = 0; i < kt->n_args; i++) {
        b->kargs[i] = *source(b->info, b->args, i);
        if (kt->args[i] >= TN_KERNEL_SCALAR)
            continue;
        if (kt->args[i] >= 0)
            tni_promotion_add(&promotion, &b->kargs[i]);
        if (b->kargs[i].tag == TN_CELL_TENSOR) {
            tn_tensor *t = b->kargs[i].v.pointer;
            c->inputs[i] = t;
            if (t->device != b->device && !b->device->is_meta) {
                /* a 0-dim CPU tensor beside tensors of another device is a scalar */
                TNI_TRY(tni_tensor_scalar(t, &b->kargs[i], b->info->call));
                c->inputs[i] = NULL;
            }
        }
        c->operand_scalar[i] = !c->inputs[i];
    }
    c->type = tni_promotion_result(&promotion);
    if (b->info->type_rule == TNI_TYPES_FLOAT && !tni_is_float(c->type))
        c->type = TN_F32;
    if (!(kt->dtypes[0] & TN_DTYPE_BIT(c->type)))
        return tni_build_fail(b, TN_ERR_DTYPE,
                              "not defined for %s; cast the operands with tn_to_dtype",
                              tn_dtype_name(c->type));
    for (uint32_t i = 0; i < kt->n_args; i++) {
        tn_cell *cell = &b->kargs[i];
        if (c->operand_scalar[i] && kt->args[i] >= 0)
            *cell = operand_for(kt, c->type, cell);
        if (kt->args[i] != TN_KERNEL_SCALAR || cell->tag == TN_CELL_NONE)
            continue;
        if (!scalar_fits(c->type, cell) && c->type != TN_BOOL)
            return tni_build_fail(b, TN_ERR_DTYPE,
                                  "a floating factor or bound does not go with a result of %s; "
                                  "give an integer, or cast the tensors",
                                  tn_dtype_name(c->type));
        *cell = attribute_for(c->type, cell);
    }
    return TN_OK;
}

static tn_status broadcast_inputs(long_call *c) {
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        tn_tensor *t = c->inputs[i];
        if (!t)
            continue;
        int32_t rank = c->rank;
        int64_t sizes[TN_MAX_RANK];
        if (!tni_broadcast(rank, c->sizes, t->view.rank, t->sizes, &c->rank, sizes))
            return tni_build_fail(&c->b, TN_ERR_SHAPE,
                                  "shapes %s and %s do not broadcast; sizes must be equal or 1, "
                                  "counted from the last dimension",
                                  TNI_SHAPE_OF_SIZES(rank, c->sizes), TNI_SHAPE_OF(t));
        memcpy(c->sizes, sizes, (size_t)c->rank * sizeof *sizes);
    }
    return TN_OK;
}

static tn_status check_dst(const long_call *c, tn_dtype result_type) {
    const tn_tensor *dst = c->dst;
    if (!tni_has_shape(dst, c->rank, c->sizes))
        return tni_build_fail(&c->b, TN_ERR_SHAPE, "%s has shape %s, but the result has %s",
                              c->b.info->form == TNI_FORM_INPLACE ? "self" : "out",
                              TNI_SHAPE_OF(dst), TNI_SHAPE_OF_SIZES(c->rank, c->sizes));
    if (!tni_can_cast(result_type, dst->view.dtype))
        return tni_build_fail(&c->b, TN_ERR_DTYPE,
                              "the result is %s and cannot be stored as %s; cast the operands, or "
                              "use the functional form",
                              tn_dtype_name(result_type), tn_dtype_name(dst->view.dtype));
    if (tni_may_overlap(&dst->view))
        return tni_build_fail(&c->b, TN_ERR_SHAPE,
                              "several elements of the tensor to write share memory (an expanded "
                              "tensor); write to tn_clone of it");
    return TN_OK;
}

/* A full-size contiguous tensor with `src` (or a scalar) in it, owned by the build. */
static tn_tensor *materialise(long_call *c, tn_dtype dtype, tn_tensor *src, const tn_cell *scalar) {
    tn_tensor *full = tni_own(&c->b.temps, tni_tensor_new(c->b.device, dtype, c->rank, c->sizes));
    if (!full)
        return NULL;
    tn_status status = src ? tni_copy_data(full, src) : tni_fill_data(full, *scalar);
    return status == TN_OK ? full : NULL;
}

/* Casts inputs and scalars to the kernel's dtypes, as every record for them needs it. */
static tn_status cast_inputs(long_call *c) {
    const tni_kernel_types *kt = c->b.types_of;
    for (uint32_t i = 0; i < kt->n_args; i++) {
        if (!c->inputs[i] && !c->operand_scalar[i])
            continue;
        tn_dtype dtype = tni_coded_dtype(kt->args[i], c->choice.types);
        if (c->operand_scalar[i])
            c->b.kargs[i] = scalar_for(dtype, &c->b.kargs[i]);
        if (!c->inputs[i] || c->inputs[i]->view.dtype == dtype)
            continue;
        c->inputs[i] = tni_own(&c->b.temps, tni_cast_data(c->inputs[i], dtype));
        if (!c->inputs[i])
            return tni_failed();
    }
    return TN_OK;
}

/* The scalars that are operands, for a record that does not take them as they are: tensors. */
static tn_status fill_scalars(long_call *c) {
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        if (!c->operand_scalar[i] || c->inputs[i])
            continue;
        tn_dtype dtype = tni_coded_dtype(c->b.types_of->args[i], c->choice.types);
        c->inputs[i] = materialise(c, dtype, NULL, &c->b.kargs[i]);
        if (!c->inputs[i])
            return tni_failed();
        c->b.adapted = true;
    }
    return TN_OK;
}

/* Does the record take the operands that are scalars? */
static bool takes_scalars(const long_call *c) {
    uint32_t n_scalars = 0, n_tensors = 0;
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        n_scalars += c->operand_scalar[i] && !c->inputs[i];
        n_tensors += c->inputs[i] != NULL;
    }
    return n_scalars == 0 ||
           ((c->choice.kernel->flags & TN_KERNEL_SCALARS) && n_scalars == 1 && n_tensors > 0);
}

/* The strides of a fresh result: those of the first full-size dense input, so that a transposed
 * tensor stays transposed; else row-major. */
static tn_tensor *new_result(long_call *c, tn_dtype dtype) {
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        const tn_tensor *t = c->inputs[i];
        if (t && tni_has_shape(t, c->rank, c->sizes) && tni_is_dense(&t->view))
            return tni_tensor_new_strided(c->b.device, dtype, c->rank, c->sizes, t->strides);
    }
    return tni_tensor_new(c->b.device, dtype, c->rank, c->sizes);
}

/* Can the record write straight into dst; could any? */
static bool writes_directly(const long_call *c, tn_dtype kernel_out, bool *out_any_could) {
    *out_any_could = false;
    if (!c->dst || c->dst->view.dtype != kernel_out)
        return false;
    bool in_place = false;
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        const tn_tensor *t = c->inputs[i];
        if (!t || t->storage != c->dst->storage)
            continue;
        bool same =
            t->view.offset == c->dst->view.offset && t->view.rank == c->dst->view.rank &&
            t->view.dtype == c->dst->view.dtype &&
            memcmp(t->strides, c->dst->strides, (size_t)t->view.rank * sizeof(int64_t)) == 0;
        if (!same && tni_partial_overlap(t, c->dst))
            return false;
        in_place = in_place || same;
    }
    *out_any_could = true;
    return !in_place || (c->choice.kernel->flags & TN_KERNEL_IN_PLACE);
}

static tn_status call_piece(void *user) {
    long_call *c = user;
    tni_operands *o = &c->operands;
    const tni_kernel_types *kt = c->b.types_of;
    tn_cell cells[TNI_MAX_ARGS];
    for (uint32_t i = 0; i < kt->n_args; i++) {
        cells[i] = c->b.kargs[i];
        if (c->inputs[i])
            cells[i] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &o->views[c->slot[i]]};
    }
    const tn_tensor_view *outs[1] = {&o->views[0]};
    tni_note_kernel(c->choice.kernel);
    tn_status status =
        tni_invoke(c->b.device, c->choice.kernel, c->b.info->call, cells, kt->n_args, outs, 1);
    if (status == TNI_NOT_SUPPORTED && c->begun) /* what is written may have been an input */
        return tni_build_fail(
            &c->b, TN_ERR_INTERNAL,
            "the kernel of %s took a part of a large tensor and declined the next; "
            "TENON_KERNELS_DISABLE leaves it out",
            c->choice.kernel->origin);
    c->begun = true;
    return status;
}

static void line_up(long_call *c, tn_tensor *out) {
    tni_operands *o = &c->operands;
    tni_operands_init(o, c->rank, c->sizes);
    tni_operands_add(o, out);
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        if (c->inputs[i]) {
            c->slot[i] = o->n;
            tni_operands_add(o, c->inputs[i]);
        }
    }
    tni_operands_coalesce(o);
}

/* Mask of the inputs that are to be copied for the record, as they are lined up now. */
static uint32_t unsuited(const long_call *c) {
    uint64_t flags = c->choice.kernel->flags;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        if (!c->inputs[i])
            continue;
        bool broadcast = tni_operand_is_broadcast(&c->operands, c->slot[i]);
        bool plain = !broadcast && tni_operand_is_contiguous(&c->operands, c->slot[i]);
        bool suits = plain || (c->choice.adaptation != TNI_PLAIN && (flags & TN_KERNEL_STRIDED) &&
                               (!broadcast || (flags & TN_KERNEL_BROADCAST)));
        mask |= (uint32_t)!suits << i;
    }
    return mask;
}

/* One record's turn with this output, which may stand in for the one that was given: lines the
 * operands up with it, copies what does not suit, calls. TNI_NOT_SUPPORTED: not so. */
static tn_status run_on(long_call *c, tn_tensor *out, bool stands_in) {
    bool strided_ok = (c->choice.kernel->flags & TN_KERNEL_STRIDED) != 0;
    bool far_ok = (c->choice.kernel->flags & TN_KERNEL_INDEX64) != 0;
    line_up(c, out);
    if (!strided_ok && !tni_operand_is_contiguous(&c->operands, 0))
        return TNI_NOT_SUPPORTED;
    uint32_t copied = unsuited(c);
    bool as_is = copied == 0 && !c->b.adapted && !stands_in &&
                 (far_ok || !tni_operands_are_far(&c->operands));
    if (c->choice.adaptation == TNI_PLAIN ? copied == 0
                                          : as_is != (c->choice.adaptation == TNI_AS_IS))
        return TNI_NOT_SUPPORTED; /* another turn's, or had already */
    for (uint32_t m = copied; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m);
        const tn_tensor *t = c->inputs[i];
        /* with the output's strides, so that the two coalesce into one run */
        tn_tensor *copy = tni_own(
            &c->b.temps, tni_is_dense(&out->view)
                             ? tni_tensor_new_strided(c->b.device, t->view.dtype, c->rank, c->sizes,
                                                      out->strides)
                             : tni_tensor_new(c->b.device, t->view.dtype, c->rank, c->sizes));
        if (!copy || tni_copy_data(copy, c->inputs[i]) != TN_OK)
            return tni_failed();
        c->inputs[i] = copy;
        c->b.adapted = true;
    }
    if (copied)
        line_up(c, out);
    c->begun = false;
    return tni_operands_in_pieces(&c->operands, far_ok, call_piece, c);
}

/* Rounding of what is whole already: a copy. */
static tn_status copy_whole(long_call *c, tn_tensor *self, tn_cell *rets) {
    c->type = self->view.dtype;
    c->inputs[0] = self;
    TNI_TRY(broadcast_inputs(c));
    if (c->dst)
        TNI_TRY(check_dst(c, c->type));
    if (c->dst == self)
        return tni_return(rets, tni_keep(self));
    tn_tensor *result = c->dst ? tni_keep(c->dst) : new_result(c, c->type);
    if (result && tni_copy_data(result, self) != TN_OK) {
        tni_drop(result);
        return tni_failed();
    }
    return tni_return(rets, result);
}

/* Would a scalar be rounded by becoming a tensor of this half, though the device can compute in f32? A
 * record that takes no scalars is passed over then. */
static bool rounds_scalar(const long_call *c) {
    tn_dtype dtype = c->choice.types[0];
    if (!tni_is_half(dtype) || !tni_kernel_lookup(c->choice.table, (uint32_t)c->choice.op, TN_F32))
        return false;
    for (uint32_t i = 0; i < c->b.types_of->n_args; i++) {
        if (!c->operand_scalar[i] || c->b.types_of->args[i] < 0)
            continue;
        float f = (float)tni_scalar_f64(c->b.kargs[i]);
        float half = dtype == TN_F16 ? tni_f16_to_f32(tni_f32_to_f16(f))
                                     : tni_bf16_to_f32(tni_f32_to_bf16(f));
        if (half != f)
            return true;
    }
    return false;
}

/* One record's turn. TNI_NOT_SUPPORTED: the next one's. */
static tn_status attempt(long_call *c, tn_dtype result_type, tn_cell *rets) {
    tni_build *b = &c->b;
    bool is_first = c->choice.adaptation == TNI_AS_IS;
    tn_status status = cast_inputs(c);
    if (status != TN_OK)
        return status;
    if (!takes_scalars(c)) {
        if (is_first || rounds_scalar(c))
            return TNI_NOT_SUPPORTED;
        if ((status = fill_scalars(c)) != TN_OK)
            return status;
    }
    tn_dtype kernel_out = out_dtype(b->types_of, c->choice.types[0]);
    bool any_could, direct = writes_directly(c, kernel_out, &any_could);
    if (direct) {
        status = run_on(c, c->dst, false);
        if (status != TNI_NOT_SUPPORTED)
            return status == TN_OK ? tni_return(rets, tni_keep(c->dst)) : status;
    }
    if (is_first && any_could)
        return TNI_NOT_SUPPORTED;
    tn_tensor *result = c->dst ? tni_tensor_new(b->device, kernel_out, c->rank, c->sizes)
                               : new_result(c, kernel_out);
    if (!result)
        return tni_failed();
    status = run_on(c, result, any_could);
    if (status == TN_OK && kernel_out != result_type) {
        tn_tensor *narrowed = tni_cast_data(result, result_type);
        tni_drop(result);
        result = narrowed;
        status = result ? TN_OK : tni_failed();
    }
    if (status != TN_OK) {
        tni_drop(result);
        return status;
    }
    return tni_store(b->info, c->dst, result, rets);
}

static tn_status long_way(long_call *c, tn_cell *rets) {
    tni_build *b = &c->b;
    if (b->info->type_rule == TNI_TYPES_WHOLE) {
        tn_tensor *self = tni_build_tensor(b, 0);
        if (TN_DTYPES_INT & TN_DTYPE_BIT(self->view.dtype))
            return copy_whole(c, self, rets);
    }
    tn_status status = collect(c);
    if (status != TN_OK)
        return status;
    TNI_TRY(broadcast_inputs(c));
    tn_dtype result_type = out_dtype(b->types_of, c->type);
    if (c->dst && (status = check_dst(c, result_type)) != TN_OK)
        return status;
    int64_t numel;
    if (!tni_numel(c->rank, c->sizes, 8, &numel))
        return tni_build_fail(b, TN_ERR_SHAPE, "the result has more elements than can be counted");
    if (numel == 0 || b->device->is_meta)
        return tni_return(rets, c->dst ? tni_keep(c->dst) : new_result(c, result_type));

    tn_dtype types[TN_KERNEL_MAX_TYPES] = {c->type};
    tni_choice *choice = &c->choice;
    for (tni_choose(choice, b->device, b->info->kernel, types); choice->kernel;
         tni_choose_next(choice)) {
        status = attempt(c, result_type, rets);
        if (status != TNI_NOT_SUPPORTED)
            return status;
    }
    return tni_without_kernel(b->op, b->device, c->type, b->args, rets);
}

/* Kept out of the short way, whose frame would be as large. */
static __attribute__((noinline)) tn_status go_long_way(const tn_op *op, const tn_cell *args,
                                                       tn_cell *rets) {
    const tni_op_info *info = tni_info(op);
    long_call c;
    memset(c.inputs, 0, sizeof c.inputs);
    memset(c.operand_scalar, 0, sizeof c.operand_scalar);
    c.b.op = op;
    c.b.info = info;
    c.b.types_of = &tni_kernel_types_of[info->kernel];
    c.b.args = args;
    c.b.adapted = false;
    c.b.temps.n = c.b.n_ints = 0;
    c.b.temps.before = NULL;
    c.dst = tni_written_arg(info, op, args);
    c.rank = 0;
    c.b.device = tni_call_device(op, args);
    if (!c.b.device)
        return tni_failed();
    tn_status status = long_way(&c, rets);
    tni_temps_finish(&c.b.temps);
    return status;
}

/* ---- the short way ----------------------------------------------------------------------- */

static inline bool is_contiguous(const tn_tensor *t) {
    return TNI_LIKELY(t->view.rank == 1 && t->strides[0] == 1) || tni_is_contiguous(&t->view);
}

/* Beside the contiguous tensor a: is t of its sizes, on its device, and contiguous too? */
static inline bool alike(const tn_tensor *a, const tn_tensor *t) {
    if (a->view.rank != t->view.rank || a->device != t->device)
        return false;
    int64_t sizes = 0, strides = 0;
    for (int32_t d = 0; d < a->view.rank; d++) {
        sizes |= a->sizes[d] ^ t->sizes[d];
        strides |= a->strides[d] ^ t->strides[d];
    }
    return sizes == 0 && (TNI_LIKELY(strides == 0) || tni_is_contiguous(&t->view));
}

/* A contiguous tensor in one dimension: its own view where that says so already, else `room`. */
static inline const tn_tensor_view *flat_view(tn_tensor_view *room, const tn_tensor *t) {
    static const int64_t one = 1;
    if (TNI_LIKELY(t->view.rank == 1 && t->strides[0] == 1))
        return &t->view;
    *room = t->view;
    room->rank = 1;
    room->sizes = &t->view.numel;
    room->strides = &one;
    return room;
}

/* The scalar as the kernel gets it; false where it does not fit. */
static inline bool set_scalar(tn_dtype type, tn_cell *cell) {
    if (TNI_LIKELY(tni_is_float(type))) {
        if (cell->tag != TN_CELL_F64 && cell->tag != TN_CELL_NONE)
            *cell = tni_cell_f64((double)cell->v.i64);
        return true;
    }
    if (cell->tag == TN_CELL_NONE)
        return true;
    if (!scalar_fits(type, cell))
        return false;
    *cell = scalar_for(type, cell);
    return true;
}

/* May the kernel write into `result`, whose memory an operand may be? */
static bool writes_plainly(const tni_kernel *kernel, const tn_tensor *result, const tn_tensor *like,
                           tn_dtype dtype, const tn_cell *cells, uint32_t tensors) {
    if (!(kernel->flags & TN_KERNEL_IN_PLACE) || result->view.dtype != dtype ||
        !alike(like, result))
        return false;
    for (uint32_t m = tensors; m; m &= m - 1) {
        const tn_tensor *t = cells[__builtin_ctz(m)].v.pointer;
        if (t->storage == result->storage &&
            (t->view.offset != result->view.offset || t->view.dtype != dtype))
            return false;
    }
    return true;
}

tn_status tni_pointwise(const tn_op *op, const tn_cell *args, tn_cell *rets) {
    const tni_op_info *info = tni_info(op);
    const tni_kernel_types *kt = &tni_kernel_types_of[info->kernel];
    tn_cell cells[TNI_MAX_ARGS];
    uint32_t scalars = 0, operands = 0, tensors = 0; /* masks of kernel arguments */
    tn_dtype type = TN_DTYPE_NONE;                   /* T */
    const tn_tensor *like = NULL;                    /* they all are */
    for (uint32_t i = 0; i < kt->n_args; i++) {
        int8_t of = kt->args[i];
        cells[i] = *source(info, args, i);
        if (of < TN_KERNEL_SCALAR && TNI_LIKELY(cells[i].tag == TN_CELL_TENSOR)) {
            const tn_tensor *t = cells[i].v.pointer;
            if (like ? !alike(like, t) : !is_contiguous(t))
                return go_long_way(op, args, rets);
            like = t;
            if (of < 0) {
                if (t->view.dtype != TN_KERNEL_FIXED(of))
                    return go_long_way(op, args, rets);
            } else if (type == TN_DTYPE_NONE) {
                type = t->view.dtype;
            } else if (type != t->view.dtype) {
                return go_long_way(op, args, rets);
            }
            tensors |= 1u << i;
        } else if (of != TN_KERNEL_NO_TENSOR) {
            scalars |= 1u << i;
            operands |= (uint32_t)(of != TN_KERNEL_SCALAR) << i;
        }
    }
    if (type == TN_DTYPE_NONE || like->view.numel == 0 || like->view.numel > INT32_MAX ||
        like->device->is_meta || (info->type_rule == TNI_TYPES_FLOAT && !tni_is_float(type)))
        return go_long_way(op, args, rets);
    tni_device *device = like->device;
    const tni_kernel_table *table =
        atomic_load_explicit(&device->kernels.table, memory_order_acquire);
    const tni_kernel *kernel = tni_kernel_lookup(table, (uint32_t)info->kernel, type);
    if (!kernel || kernel->supports || kernel->next ||
        (operands && !(kernel->flags & TN_KERNEL_SCALARS)))
        return go_long_way(op, args, rets);
    for (uint32_t m = scalars; m; m &= m - 1)
        if (!set_scalar(type, &cells[__builtin_ctz(m)]))
            return go_long_way(op, args, rets);
    if (type == TN_BOOL)
        for (uint32_t m = scalars & ~operands; m; m &= m - 1)
            cells[__builtin_ctz(m)] = attribute_for(type, &cells[__builtin_ctz(m)]);
    if (type != TN_F32 && type != TN_F64)
        for (uint32_t m = operands; m; m &= m - 1)
            cells[__builtin_ctz(m)] = operand_for(kt, type, &cells[__builtin_ctz(m)]);

    tn_dtype result_type = out_dtype(kt, type);
    tn_tensor *result = tni_written_arg(info, op, args);
    if (result) {
        if (!writes_plainly(kernel, result, like, result_type, cells, tensors))
            return go_long_way(op, args, rets);
        tni_keep(result);
    } else {
        result = tni_tensor_new_like(like, result_type);
        if (TNI_UNLIKELY(!result))
            return tni_failed();
    }
    tn_tensor_view room[TNI_MAX_ARGS + 1];
    for (uint32_t m = tensors; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m);
        cells[i].v.view = flat_view(&room[i], cells[i].v.pointer);
    }
    const tn_tensor_view *outs[1] = {flat_view(&room[TNI_MAX_ARGS], result)};
    tni_note_kernel(kernel);
    tn_status status = tni_invoke(device, kernel, info->call, cells, kt->n_args, outs, 1);
    if (TNI_UNLIKELY(status != TN_OK)) {
        tni_drop(result);
        result = NULL;
        if (status == TNI_NOT_SUPPORTED)
            return go_long_way(op, args, rets);
    }
    rets[0] = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = result};
    return status;
}
