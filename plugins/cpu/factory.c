/* Tensors from nothing: one value, a sequence, and the random bits from which all random numbers
 * are made. */
#include "plugins/cpu/iterate.h"

/* ---- fill and arange --------------------------------------------------------------------- */

typedef struct sequence {
    tnc_plan plan; /* the output */
    tn_dtype dtype;
    const tn_cell *attrs;
} sequence;

/* Writes one value, prepared as a block, everywhere. */
typedef struct filler {
    tnc_plan plan;
    _Alignas(64) char block[TNC_BLOCK * 8]; /* in the computing type */
} filler;

static void fill_range(void *context, int64_t begin, int64_t end, int slot) {
    const filler *f = context;
    const tnc_plan *p = &f->plan;
    const tnc_operand *out = &p->operands[0];
    (void)slot;
    int inner = p->rank - 1;
    int64_t at[TN_MAX_RANK], n;
    for (int64_t i = begin; i < end; i += n) {
        tnc_plan_seek(p, i, at);
        n = tnc_min(end - i, p->sizes[inner] - at[inner]);
        char *row = tnc_plan_address(p, out, at);
        for (int64_t j = 0; j < n; j += TNC_BLOCK)
            tnc_scatter_run(row + j * out->strides[inner], out->strides[inner], f->block,
                            tnc_min(TNC_BLOCK, n - j), out->dtype);
    }
}

static void store(void *block, int64_t at, tn_dtype dtype, double f, int64_t i) {
    switch (dtype) {
    case TN_F64:
        ((double *)block)[at] = f;
        return;
    case TN_F32:
        ((float *)block)[at] = (float)f;
        return;
    case TN_F16:
    case TN_BF16:
        ((float *)block)[at] = tnc_round_to_odd(f);
        return;
    case TN_I8:
    case TN_U8:
        ((uint8_t *)block)[at] = (uint8_t)i;
        return;
    case TN_BOOL:
        ((uint8_t *)block)[at] = i != 0;
        return;
    case TN_I16:
        ((uint16_t *)block)[at] = (uint16_t)i;
        return;
    case TN_I32:
        ((uint32_t *)block)[at] = (uint32_t)i;
        return;
    default:
        ((int64_t *)block)[at] = i;
        return;
    }
}

static tn_status fill(const tn_call *call) {
    filler f;
    tnc_plan_init(&f.plan, call->outs[0]);
    tnc_plan_add_view(&f.plan, call->outs[0]);
    tnc_plan_finish(&f.plan, true);
    const tn_cell *value = &call->args[TN_ARG_fill_value];
    double x = value->tag == TN_CELL_F64 ? value->v.f64 : (double)value->v.i64;
    int64_t i = value->tag != TN_CELL_F64         ? value->v.i64
                : call->outs[0]->dtype == TN_BOOL ? x != 0
                : call->outs[0]->dtype >= TN_I8   ? (int64_t)x
                                                  : 0;
    int64_t n = tnc_min(TNC_BLOCK, f.plan.numel);
    store(f.block, 0, call->outs[0]->dtype, x, i);
    tnc_splat_run(f.block, f.block, n, f.plan.operands[0].cell);
    tnc_parallel(call, f.plan.numel, TNC_GRAIN, TNC_MAX_SLOTS, fill_range, &f);
    return TN_OK;
}

static void arange_range(void *context, int64_t begin, int64_t end, int slot) {
    const sequence *s = context;
    const tnc_operand *out = &s->plan.operands[0];
    (void)slot;
    bool is_float = s->dtype <= TN_BF16;
    double start = s->attrs[0].v.f64, step = s->attrs[1].v.f64;
    uint64_t first = (uint64_t)s->attrs[0].v.i64, by = (uint64_t)s->attrs[1].v.i64;
    _Alignas(64) char block[TNC_BLOCK * 8];
    int64_t n;
    for (int64_t i = begin; i < end; i += n) {
        n = tnc_min(TNC_BLOCK, end - i);
        for (int64_t j = 0; j < n; j++) {
            if (is_float)
                store(block, j, s->dtype, start + (double)(i + j) * step, 0);
            else
                store(block, j, s->dtype, 0, (int64_t)(first + (uint64_t)(i + j) * by));
        }
        tnc_scatter_run(out->base + i * out->strides[0], out->strides[0], block, n, s->dtype);
    }
}

static tn_status arange(const tn_call *call) {
    sequence s = {.dtype = call->outs[0]->dtype, .attrs = call->args};
    tnc_plan_init(&s.plan, call->outs[0]);
    tnc_plan_add_view(&s.plan, call->outs[0]);
    tnc_plan_finish(&s.plan, false);
    tnc_parallel(call, s.plan.numel, TNC_GRAIN, TNC_MAX_SLOTS, arange_range, &s);
    return TN_OK;
}

/* ---- Philox 4x32-10 ---------------------------------------------------------------------- */

/* J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. Counters are independent,
 * so the loop over LANES of them vectorises. */

enum { LANES = 64 };

/* Blocks c .. c + LANES of the stream: word w of block i is words[4 * i + w]. */
static void philox(uint64_t seed, uint64_t c, uint32_t *words) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    for (int i = 0; i < LANES; i++) {
        c0[i] = (uint32_t)(c + (uint64_t)i);
        c1[i] = (uint32_t)((c + (uint64_t)i) >> 32);
        c2[i] = 0;
        c3[i] = 0;
    }
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < LANES; i++) {
        words[4 * i] = c0[i];
        words[4 * i + 1] = c1[i];
        words[4 * i + 2] = c2[i];
        words[4 * i + 3] = c3[i];
    }
}

typedef struct bits {
    uint64_t seed, offset;
    uint32_t *out; /* an i64 element is two words, low one first */
    int64_t n_words;
} bits;

/* Tasks are runs of LANES blocks. */
static void random_range(void *context, int64_t begin, int64_t end, int slot) {
    const bits *b = context;
    (void)slot;
    uint32_t words[4 * LANES];
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t * 4 * LANES, n = tnc_min(4 * LANES, b->n_words - first);
        philox(b->seed, b->offset + (uint64_t)t * LANES, words);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "i64 elements are stored as two words, low one first"
#endif
        memcpy(b->out + first, words, sizeof(uint32_t) * (size_t)n);
    }
}

static tn_status random_words(const tn_call *call, uint64_t seed, uint64_t offset) {
    const tn_tensor_view *out = call->outs[0];
    bits b = {
        .seed = seed,
        .offset = offset,
        .out = tnc_data(out),
        .n_words = out->numel * (out->dtype == TN_I64 ? 2 : 1),
    };
    tnc_parallel(call, tnc_ceil_div(b.n_words, 4 * LANES), TNC_GRAIN / (8 * LANES), TNC_MAX_SLOTS,
                 random_range, &b);
    return TN_OK;
}

static tn_status random_bits(const tn_call *call) {
    return random_words(call, (uint64_t)call->args[TN_ARG_random_bits_seed].v.i64,
                        (uint64_t)call->args[TN_ARG_random_bits_offset].v.i64);
}

static tn_status random_bits_from(const tn_call *call) {
    const uint64_t *state = tnc_data(call->args[TN_ARG_random_bits_from_state].v.view);
    return random_words(call, state[0],
                        state[1] + (uint64_t)call->args[TN_ARG_random_bits_from_offset].v.i64);
}

static const tn_kernel records[] = {
    TNC_KERNEL(fill, TN_DTYPES_ALL, TNC_FLAGS_STRIDED, fill),
    TNC_KERNEL(arange, TN_DTYPES_NUMBER, TNC_FLAGS_STRIDED, arange),
    TNC_KERNEL(random_bits, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64), TNC_FLAGS_DENSE,
               random_bits),
    TNC_KERNEL(random_bits_from, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64), TNC_FLAGS_DENSE,
               random_bits_from),
};
TNC_PUBLISH(factory, records);
