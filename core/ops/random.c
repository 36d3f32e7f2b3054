/* Random tensors, all from the words of one kernel (random_bits, Philox 4x32-10) and plain
 * arithmetic.
 *
 * The words are the same on every device, so integers, masks and uniform numbers are too; normal
 * numbers differ by the rounding of log, sqrt and cos. Each element uses words of its own, counted
 * by its logical index: neither strides nor threads change what it gets. */
#include "core/ops/functions.h"
#include "core/graph/graph.h"
#include "core/ops/halves.h"
#include "core/random/generator.h"

#include <math.h>

/* size and dtype are the arguments 0 and 3 of both. */
static tn_status infer_words(tni_build *b) {
    tn_ints size = tni_arg_ints(&b->args[0]);
    tn_dtype dtype = tni_arg_dtype(&b->args[3]);
    int64_t numel;
    if ((uint64_t)size.n > TN_MAX_RANK || !tni_numel((int32_t)size.n, size.data, 8, &numel))
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "size is left out or negative, or has too many elements or "
                              "dimensions");
    if (dtype != TN_DTYPE_NONE && dtype != TN_I32 && dtype != TN_I64)
        return tni_build_fail(b, TN_ERR_DTYPE, "words come as i32 or i64, not as %s",
                              tn_dtype_name(dtype));
    b->types[0] = dtype == TN_DTYPE_NONE ? TN_I64 : dtype;
    tni_build_out(b, 0, (int32_t)size.n, size.data);
    return TN_OK;
}

/* random_bits(size, seed, offset, dtype, device) */
tn_status tni_infer_random_bits(tni_build *b) {
    return infer_words(b);
}

/* random_bits_from(size, state, offset, dtype) */
tn_status tni_infer_random_bits_from(tni_build *b) {
    const tn_tensor *state = tni_build_tensor(b, 1);
    if (state->view.dtype != TN_I64 || state->view.rank != 1 || state->view.numel != 2)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "state is %s of %s; it must be i64 of [2]: seed and offset",
                              tn_dtype_name(state->view.dtype), TNI_SHAPE_OF(state));
    return infer_words(b);
}

/* For a device without the kernel: the state is read here, which waits for the device. */
tn_status tni_run_random_bits_from(const tn_cell *args, tn_cell *rets) {
    tn_tensor *state = tni_arg_tensor(&args[1]);
    int64_t value[2];
    if (tn_to_host(state, value, sizeof value) != TN_OK)
        return tni_failed();
    int64_t offset = (int64_t)((uint64_t)value[1] + (uint64_t)args[2].v.i64);
    return tni_return(rets, tni_random_bits(tni_arg_ints(&args[0]), value[0], offset,
                                            tni_arg_dtype(&args[3]), state->device->id));
}

/* Captured: the generator's state is read when the work runs, which the kernel must be able to. */
static tn_tensor *draw_captured(const char *call, tn_ints size, tn_dtype dtype, uint64_t n_words) {
    int64_t offset;
    tni_draw noted;
    tn_graph *g = tni_capturing;
    tni_drawing *drawing = tni_drawing_now;
    bool again = drawing && drawing->again;
    if (again && tni_draw_again(drawing, g, &noted) != TN_OK)
        return NULL;
    tn_tensor *state = tni_graph_random_state(g, again ? 0 : n_words, &offset);
    if (again)
        offset = (int64_t)noted.offset;
    else if (drawing && tni_draw_note(drawing, (tni_draw){.offset = (uint64_t)offset, .graph = g}))
        return NULL;
    tn_dtype types[TN_KERNEL_MAX_TYPES] = {dtype};
    tni_choice c;
    tni_choose(&c, g->device, TNI_KERNEL_random_bits_from, types);
    if (!c.kernel) {
        tni_fail(TN_ERR_UNSUPPORTED,
                 "%s: cannot be captured: %s has no kernel random_bits_from, which reads where the "
                 "generator stands when it runs; draw before each replay, into a tensor that the "
                 "capture reads",
                 call, g->device->name);
        tni_capture_note_failure(g->device);
        return NULL;
    }
    return state ? tni_random_bits_from(size, state, offset, dtype) : NULL;
}

/* Where the device's generator is, n_words before where it will be; or where it was, in a function
 * that runs again. */
static tn_status take(tni_device *device, uint64_t n_words, uint64_t *out_seed,
                      uint64_t *out_offset) {
    tni_drawing *drawing = tni_drawing_now;
    tni_draw d = {0};
    if (TNI_UNLIKELY(drawing && drawing->again)) {
        TNI_TRY(tni_draw_again(drawing, NULL, &d));
    } else {
        tni_generator_take(device, n_words, &d.seed, &d.offset);
        if (TNI_UNLIKELY(drawing))
            TNI_TRY(tni_draw_note(drawing, d));
    }
    *out_seed = d.seed;
    *out_offset = d.offset;
    return TN_OK;
}

/* Fresh words for `size`, from the device's generator. */
static tn_tensor *draw(const char *call, tn_ints size, tn_dtype dtype, tni_device *device) {
    int64_t numel;
    if ((uint64_t)size.n > TN_MAX_RANK)
        return tni_fail_null(TN_ERR_SHAPE, "%s: size must have 0 to %d dimensions, but has %lld",
                             call, TN_MAX_RANK, (long long)size.n);
    if (!tni_numel((int32_t)size.n, size.data, 8, &numel))
        return tni_fail_null(TN_ERR_SHAPE, "%s: size %s is negative or too large", call,
                             TNI_SHAPE_OF_INTS(size));
    uint64_t seed, offset, n_words = (uint64_t)numel * (dtype == TN_I64 ? 2 : 1);
    if (tni_capturing && tni_capturing->device == device)
        return draw_captured(call, size, dtype, n_words);
    if (take(device, n_words, &seed, &offset) != TN_OK)
        return NULL;
    return tni_random_bits(size, (int64_t)seed, (int64_t)offset, dtype, device->id);
}

static bool check_floating(const char *call, tn_dtype dtype) {
    if (dtype >= 0 && dtype < TN_DTYPE_COUNT && tni_is_float(dtype))
        return true;
    tni_fail(TN_ERR_DTYPE, "%s: %s is not floating; use tn_randint, or cast the result", call,
             tn_dtype_name(dtype));
    return false;
}

/* Uniform on [0, 1), a multiple of 2^-bits, so that no value rounds to 1: 24 bits in f32, 53 in
 * f64, 11 in f16, 8 in bf16. */
static tn_tensor *uniform(const char *call, tn_ints size, tn_dtype dtype, tni_device *device) {
    tni_temps tmp = {0};
    int bits = dtype == TN_F64 ? 53 : dtype == TN_F16 ? 11 : dtype == TN_BF16 ? 8 : 24;
    if (!check_floating(call, dtype))
        return NULL;
    tn_tensor *words = tni_own(&tmp, draw(call, size, dtype == TN_F64 ? TN_I64 : TN_I32, device));
    tn_tensor *low = tni_own(&tmp, tni_bitwise_and_scalar(words, tn_int(((int64_t)1 << bits) - 1)));
    tn_tensor *real = tni_own(&tmp, tni_to_dtype(low, dtype));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul_scalar(real, tn_float(ldexp(1.0, -bits)))));
}

/* Box and Muller, "A note on the generation of random normal deviates", 1958: sqrt(-2 ln u) cos(2
 * pi v) with u in (0, 1]. In f64 for f64, else in f32. */
static tn_tensor *normal(const char *call, tn_ints size, tn_dtype dtype, tni_device *device) {
    tni_temps tmp = {0};
    tn_dtype in = dtype == TN_F64 ? TN_F64 : TN_F32;
    if (!check_floating(call, dtype))
        return NULL;
    tn_tensor *u = tni_own(&tmp, uniform(call, size, in, device));
    tn_tensor *v = u ? tni_own(&tmp, uniform(call, size, in, device)) : NULL;
    u = tni_own(&tmp, tni_rsub_scalar(u, tn_int(1), tn_int(1)));
    tn_tensor *radius = tni_own(
        &tmp, tni_sqrt(tni_own(&tmp, tni_mul_scalar(tni_own(&tmp, tni_log(u)), tn_float(-2)))));
    tn_tensor *angle =
        tni_own(&tmp, tni_cos(tni_own(&tmp, tni_mul_scalar(v, tn_float(6.283185307179586)))));
    tn_tensor *result = tni_own(&tmp, tni_mul(radius, angle));
    return tni_temps_keep(&tmp, dtype == in ? result : tni_own(&tmp, tni_to_dtype(result, dtype)));
}

static tn_dtype dtype_or_f32(const tn_cell *cell) {
    return cell->tag == TN_CELL_NONE ? TN_F32 : tni_arg_dtype(cell);
}

tn_status tni_run_rand(const tn_cell *args, tn_cell *rets) {
    tni_device *device = tni_factory_device(tni_arg_device(&args[2]));
    return tni_return(
        rets,
        device ? uniform("tn_rand", tni_arg_ints(&args[0]), dtype_or_f32(&args[1]), device) : NULL);
}

tn_status tni_run_randn(const tn_cell *args, tn_cell *rets) {
    tni_device *device = tni_factory_device(tni_arg_device(&args[2]));
    return tni_return(
        rets,
        device ? normal("tn_randn", tni_arg_ints(&args[0]), dtype_or_f32(&args[1]), device) : NULL);
}

/* self, dtype, device: what is left out is self's */
tn_status tni_run_made_like(const char *call, const tn_cell *args, tn_cell *rets, bool is_normal) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_dtype dtype = tni_arg_dtype(&args[1]);
    tn_device where = tni_arg_device(&args[2]);
    tni_device *device = where.type == 0 ? self->device : tni_device_get(where);
    if (dtype == TN_DTYPE_NONE)
        dtype = self->view.dtype;
    if (!device)
        return tni_failed();
    return tni_return(rets, (is_normal ? normal : uniform)(call, tni_sizes(self), dtype, device));
}

static bool holds(tn_dtype dtype, int64_t value) {
    switch (dtype) {
    case TN_BOOL:
        return value >= 0 && value <= 1;
    case TN_U8:
        return value >= 0 && value <= UINT8_MAX;
    case TN_I8:
        return value >= INT8_MIN && value <= INT8_MAX;
    case TN_I16:
        return value >= INT16_MIN && value <= INT16_MAX;
    case TN_I32:
        return value >= INT32_MIN && value <= INT32_MAX;
    default:
        return true;
    }
}

/* randint(low, high, size): 63 random bits modulo the range; the bias is below range / 2^63. */
tn_status tni_run_randint(const tn_cell *args, tn_cell *rets) {
    int64_t low = args[0].v.i64, high = args[1].v.i64, range;
    tni_device *device = tni_factory_device(tni_arg_device(&args[4]));
    if (!device)
        return tni_failed();
    if (high <= low || __builtin_sub_overflow(high, low, &range))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_randint: [%lld, %lld) is empty or too wide",
                        (long long)low, (long long)high);
    tn_dtype dtype = tni_arg_dtype(&args[3]);
    if (!holds(dtype, low) || !holds(dtype, high - 1))
        return tni_fail(TN_ERR_DTYPE, "tn_randint: %s does not hold every number of [%lld, %lld)",
                        tn_dtype_name(dtype), (long long)low, (long long)high);
    tni_temps tmp = {0};
    tn_tensor *words = tni_own(&tmp, draw("tn_randint", tni_arg_ints(&args[2]), TN_I64, device));
    tn_tensor *positive = tni_own(&tmp, tni_bitwise_and_scalar(words, tn_int(INT64_MAX)));
    tn_tensor *modulus =
        tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_int(range), TN_I64, device->id));
    tn_tensor *offset = tni_own(&tmp, tni_remainder(positive, modulus));
    tn_tensor *result = tni_own(&tmp, tni_add_scalar(offset, tn_int(low), tn_int(1)));
    return tni_temps_return(
        &tmp, dtype == TN_DTYPE_NONE ? result : tni_own(&tmp, tni_to_dtype(result, dtype)), rets);
}

/* The order in which n random keys sort. */
tn_status tni_run_randperm(const tn_cell *args, tn_cell *rets) {
    int64_t n = args[0].v.i64;
    tni_device *device = tni_factory_device(tni_arg_device(&args[2]));
    if (!device)
        return tni_failed();
    if (n < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_randperm: n is %lld; it must not be negative",
                        (long long)n);
    tn_dtype dtype = tni_arg_dtype(&args[1]);
    if (n > 0 && !holds(dtype, n - 1))
        return tni_fail(TN_ERR_DTYPE, "tn_randperm: %s does not hold every number below %lld",
                        tn_dtype_name(dtype), (long long)n);
    tni_temps tmp = {0};
    tn_tensor *order =
        tni_own(&tmp, tni_argsort(tni_own(&tmp, draw("tn_randperm", TN_SHAPE(n), TN_I64, device)),
                                  0, false));
    return tni_temps_return(
        &tmp, dtype == TN_DTYPE_NONE ? order : tni_own(&tmp, tni_to_dtype(order, dtype)), rets);
}

static tn_status store(tn_tensor *self, tn_tensor *values, tni_temps *temps, tn_cell *rets) {
    tn_status status = values ? tni_copy_data(self, values) : tni_failed();
    tni_temps_finish(temps);
    return status == TN_OK ? tni_return(rets, tni_keep(self)) : status;
}

/* Rounding may lift low + u (high - low) to high: such a one becomes low. */
tn_status tni_run_uniform_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    double low = args[1].v.f64, high = args[2].v.f64;
    if (!(low <= high) || !isfinite(high - low))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_uniform_: [%g, %g) is no range; low must not be above high, and both "
                        "be finite",
                        low, high);
    if (!tni_check_distinct("tn_uniform_", self))
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *u =
        tni_own(&tmp, uniform("tn_uniform_", tni_sizes(self), self->view.dtype, self->device));
    u = tni_own(&tmp, tni_mul_scalar(tni_widened(&tmp, u), tn_float(high - low)));
    u = tni_own(&tmp, tni_add_scalar(u, tn_float(low), tn_int(1)));
    u = tni_as_dtype(&tmp, u, self->view.dtype);
    tn_tensor *lowest =
        u ? tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_float(low), u->view.dtype, self->device->id))
          : NULL;
    u = tni_own(&tmp, tni_where(tni_own(&tmp, tni_lt_scalar(u, tn_float(high))), u, lowest));
    return store(self, u, &tmp, rets);
}

tn_status tni_run_normal_(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    double mean = args[1].v.f64, std = args[2].v.f64;
    if (!(std >= 0))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_normal_: std is %g; it must not be negative",
                        std);
    if (!tni_check_distinct("tn_normal_", self))
        return tni_failed();
    tni_temps tmp = {0};
    tn_dtype in = tni_is_half(self->view.dtype) ? TN_F32 : self->view.dtype;
    tn_tensor *z = tni_own(&tmp, normal("tn_normal_", tni_sizes(self), in, self->device));
    z = tni_own(&tmp, tni_mul_scalar(z, tn_float(std)));
    return store(self, tni_own(&tmp, tni_add_scalar(z, tn_float(mean), tn_int(1))), &tmp, rets);
}

/* bernoulli_mask(size, p, device): compares integers, so every device makes the same mask */
tn_status tni_run_bernoulli_mask(const tn_cell *args, tn_cell *rets) {
    double p = args[1].v.f64;
    tni_device *device = tni_factory_device(tni_arg_device(&args[2]));
    if (!device)
        return tni_failed();
    if (!(p >= 0 && p <= 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_bernoulli_mask: p is %g; a probability lies in "
                        "[0, 1]",
                        p);
    tni_temps tmp = {0};
    tn_tensor *words =
        tni_own(&tmp, draw("tn_bernoulli_mask", tni_arg_ints(&args[0]), TN_I32, device));
    tn_tensor *low = tni_own(&tmp, tni_bitwise_and_scalar(words, tn_int(0xffffff)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_lt_scalar(low, tn_int(llround(p * 0x1000000)))),
                            rets);
}

/* ---- draws by weight --------------------------------------------------------------------- */

/* Are weights [.., n] numbers that are not negative, `least` of each row above 0? One number says it, so
 * that the device is waited for once. */
static tn_status check_weights(tn_tensor *weights, int64_t least) {
    tni_temps tmp = {0};
    int64_t n = weights->sizes[weights->view.rank - 1], fewest = n;
    tn_tensor *good = tni_own(&tmp, tni_isfinite(weights));
    good = tni_own(&tmp, tni_bitwise_and(good, tni_own(&tmp, tni_ge_scalar(weights, tn_int(0)))));
    tn_tensor *counts =
        tni_own(&tmp, tni_to_dtype(tni_own(&tmp, tni_gt_scalar(weights, tn_int(0))), TN_I64));
    tn_tensor *bad =
        tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_int(-n - 1), TN_I64, weights->device->id));
    counts = tni_own(&tmp, tni_where(good, counts, bad));
    counts = tni_own(&tmp, tni_sum_dim(counts, TN_SHAPE(-1), false, TN_DTYPE_NONE));
    counts = counts && weights->view.numel ? tni_own(&tmp, tni_amin(counts, TN_SCALAR_SHAPE, false))
                                           : NULL;
    tn_status status = counts                     ? tn_item_i64(counts, &fewest)
                       : weights->view.numel == 0 ? TN_OK
                                                  : tni_failed();
    tni_temps_finish(&tmp);
    if (status != TN_OK)
        return status;
    if (fewest < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_multinomial: a weight is negative, infinite or NaN; weights are finite "
                        "and not below 0");
    if (fewest < least)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_multinomial: a row has %lld weights above 0, of which %lld cannot be "
                        "drawn%s",
                        (long long)fewest, (long long)least,
                        least > 1 ? "; draw fewer, or with replacement" : "");
    return TN_OK;
}

/* Where uniform numbers fall among the running sums of the weights. From the last weight above 0 on
 * these count as infinite, so that a product that rounds up to the sum finds that weight. */
static tn_tensor *drawn_again(tn_tensor *weights, int64_t n) {
    int64_t sizes[2] = {weights->sizes[0], n}, last = weights->view.rank - 1;
    tni_temps tmp = {0};
    sizes[last] = n;
    tn_tensor *sums = tni_own(&tmp, tni_cumsum(weights, -1, TN_DTYPE_NONE));
    tn_tensor *total =
        sums ? tni_own(&tmp, tni_narrow(sums, -1, weights->sizes[last] - 1, 1)) : NULL;
    tn_tensor *is_end = total ? tni_own(&tmp, tni_ge(sums, total)) : NULL;
    sums = tni_own(&tmp, tni_masked_fill_scalar(sums, is_end, tn_float(INFINITY)));
    tn_tensor *u = sums ? tni_own(&tmp, uniform("tn_multinomial", tn_ints_of(sizes, last + 1),
                                                weights->view.dtype, weights->device))
                        : NULL;
    u = tni_own(&tmp, tni_mul(u, total));
    return tni_temps_keep(&tmp, u ? tni_own(&tmp, tni_searchsorted(sums, u, false, true, TN_NONE))
                                  : NULL);
}

/* The n largest of weight / e, where e is exponentially distributed: the first is i with probability
 * weight i, and the others so among those that are left (Efraimidis and Spirakis, 2006). */
static tn_tensor *drawn_once(tn_tensor *given, tn_tensor *weights, int64_t n) {
    tni_temps tmp = {0};
    tn_tensor *values, *indices;
    tn_tensor *u = tni_own(
        &tmp, uniform("tn_multinomial", tni_sizes(weights), weights->view.dtype, weights->device));
    u = tni_own(&tmp, tni_rsub_scalar(u, tn_int(1), tn_int(1))); /* in (0, 1] */
    tn_tensor *e = tni_own(&tmp, tni_neg(tni_own(&tmp, tni_log(u))));
    e = tni_own(&tmp, tni_clamp_min(e, tn_float(0x1p-30)));
    tn_tensor *keys = e ? tni_own(&tmp, tni_div(weights, e)) : NULL;
    /* a quotient may vanish, and still comes before those of weights that are 0 */
    tn_tensor *never = tni_own(&tmp, tni_eq_scalar(given, tn_int(0)));
    keys = tni_own(&tmp, tni_masked_fill_scalar(keys, never, tn_float(-1)));
    if (!keys || tni_topk(keys, n, -1, true, &values, &indices) != TN_OK)
        return tni_temps_keep(&tmp, NULL);
    tni_own(&tmp, values);
    return tni_temps_keep(&tmp, tni_own(&tmp, indices));
}

/* multinomial(self, num_samples, replacement) */
tn_status tni_run_multinomial(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t n = args[1].v.i64, rank = self->view.rank;
    bool again = args[2].v.boolean;
    if (!check_floating("tn_multinomial", self->view.dtype))
        return tni_failed();
    if (rank < 1 || rank > 2 || self->sizes[rank - 1] == 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_multinomial: self is %s; it must be one row of weights, or [rows, n], "
                        "n not 0",
                        TNI_SHAPE_OF(self));
    if (n < 1 || (!again && n > self->sizes[rank - 1]))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_multinomial: num_samples is %lld; it must be 1 or more, and without "
                        "replacement %lld at most",
                        (long long)n, (long long)self->sizes[rank - 1]);
    tni_temps tmp = {0};
    tn_tensor *given = tni_widened(&tmp, self);
    tn_status status = given ? check_weights(given, again ? 1 : n) : tni_failed();
    if (status != TN_OK) {
        tni_temps_finish(&tmp);
        return status;
    }
    /* so that sums and quotients do not overflow */
    tn_tensor *largest = tni_own(&tmp, tni_amax(given, TN_SHAPE(-1), true));
    tn_tensor *weights = tni_own(&tmp, tni_div(given, largest)), *drawn = NULL;
    if (weights)
        drawn = tni_own(&tmp, again ? drawn_again(weights, n) : drawn_once(given, weights, n));
    return tni_temps_return(&tmp, drawn, rets);
}

static tn_status check_dropout(const char *call, double p) {
    return p >= 0 && p <= 1 ? TN_OK
                            : tni_fail(TN_ERR_INVALID_ARGUMENT,
                                       "%s: p is %g; a probability lies in [0, 1]", call, p);
}

/* input where `mask` is set, scaled by 1 / (1 - p), else zero. */
static tn_tensor *dropped(tni_temps *tmp, tn_tensor *input, tn_tensor *mask, double p) {
    tn_tensor *x = tni_widened(tmp, input);
    tn_tensor *scale = x ? tni_own(tmp, tni_to_dtype(mask, x->view.dtype)) : NULL;
    if (p < 1)
        scale = tni_own(tmp, tni_mul_scalar(scale, tn_float(1 / (1 - p))));
    x = tni_own(tmp, tni_mul(x, scale));
    return tni_as_dtype(tmp, x, input->view.dtype);
}

tn_status tni_run_dropout(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]);
    double p = args[1].v.f64;
    TNI_TRY(check_dropout("tn_dropout", p));
    if (!args[2].v.boolean || p == 0)
        return tni_return(rets, tni_keep(input));
    tni_temps tmp = {0};
    tn_tensor *mask = tni_own(&tmp, tni_bernoulli_mask(tni_sizes(input), 1 - p, input->device->id));
    return tni_temps_return(&tmp, dropped(&tmp, input, mask, p), rets);
}

/* native_dropout(input, p, train): the mask too, true everywhere where nothing is dropped */
tn_status tni_run_native_dropout(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *results[2];
    bool drops = args[2].v.boolean && args[1].v.f64 != 0;
    double p = drops ? args[1].v.f64 : 0;
    tn_status status = check_dropout("tn_native_dropout", args[1].v.f64);
    if (status == TN_OK && drops && !tni_is_float(input->view.dtype))
        status =
            tni_fail(TN_ERR_DTYPE, "tn_native_dropout: not defined for %s; cast with tn_to_dtype",
                     tn_dtype_name(input->view.dtype));
    if (status != TN_OK)
        return status;
    tni_temps tmp = {0};
    results[1] =
        tni_own(&tmp, drops ? tni_bernoulli_mask(tni_sizes(input), 1 - p, input->device->id)
                            : tni_ones(tni_sizes(input), TN_BOOL, input->device->id));
    results[0] = drops ? dropped(&tmp, input, results[1], p) : tni_own(&tmp, tni_clone(input));
    return tni_temps_return_many(&tmp, results, 2, rets);
}
