/* bf16 multiplied as it is: AVX512_BF16 adds the products of two pairs to an f32, which is twice the
 * work of a multiplication in f32 and spares the conversion. Both factors are packed in pairs along
 * K, a block of 6 x 64 sums stays in registers.
 */
#include "plugins/cpu/bf16.h"
#include "plugins/cpu/iterate.h"

#include <immintrin.h>

enum {
    LANES = TNC_BF16_LANES,
    ROWS = 6,    /* of a block */
    VECTORS = 4, /* of its row */
    COLUMNS = VECTORS * LANES,
    LINE_A = 8 * ROWS, /* whole blocks and whole vectors */
    AHEAD = 4,         /* lines that are asked for before they are read */
};

/* ---- panels ------------------------------------------------------------------------------ */

/* A panel of a factor, in strips of `width` rows or columns: the pair of elements 2 p and 2 p + 1
 * along K, of row or column i, is at data + i / width * strip + i % width * outer + p * pair. */
typedef struct panel {
    char *data;
    int64_t width, strip, outer, pair; /* strides in bytes */
} panel;

static char *strip_at(const panel *x, int64_t i) {
    return x->data + i / x->width * x->strip + i % x->width * x->outer;
}

/* The least magnitudes seen, each less one, so that zero is the largest. */
static inline __m512i least_of(__m512i least, __m512i halves) {
    __m512i magnitude = _mm512_and_si512(halves, _mm512_set1_epi16(0x7fff));
    return _mm512_min_epu16(least, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
}

/* The exponent of the least number but zero, as bf16 has it; 0 is that of subnormal numbers. */
static int exponent_of(__m512i least) {
    __m512i even = _mm512_and_si512(least, _mm512_set1_epi32(0xffff));
    uint32_t bits = _mm512_reduce_min_epu32(_mm512_min_epu32(even, _mm512_srli_epi32(least, 16)));
    return (int)((bits + 1) >> 7);
}

static inline __mmask32 first(int64_t n) {
    return n >= 32 ? 0xffffffffu : (__mmask32)((1u << n) - 1);
}

/* [outer, k] with K in the rows: they are copied. */
static int pack_rows(const panel *to, const tnc_matrix *x, int64_t n, int64_t k) {
    __m512i least = _mm512_set1_epi32(-1);
    for (int64_t i = 0; i < n; i++) {
        char *row = strip_at(to, i);
        const char *from = tnc_element(x, i, 0);
        if (x->column != 1) {
            tnc_copy_run(row, 2, from, x->column * 2, k, 2);
            from = row;
        }
        const char *later = tnc_element(x, tnc_min(i + AHEAD, n - 1), 0);
        for (int64_t p = 0; p < k; p += 32) {
            __builtin_prefetch(later + p * 2);
            __m512i halves = _mm512_maskz_loadu_epi16(first(k - p), from + p * 2);
            least = least_of(least, halves);
            _mm512_storeu_si512(row + p * 2, halves);
        }
    }
    return exponent_of(least);
}

/* [k, outer] with K from row to row: two rows become one of pairs. */
static int pack_columns(const panel *to, const tnc_matrix *x, int64_t n, int64_t k) {
    uint16_t dense[2][TNC_BF16_WIDTH];
    __m512i least = _mm512_set1_epi32(-1);
    for (int64_t p = 0; p < k; p += 2) {
        const uint16_t *rows[2];
        for (int h = 0; h < 2; h++) {
            rows[h] = (const uint16_t *)tnc_element(x, tnc_min(p + h, k - 1), 0);
            if (x->column != 1) {
                tnc_copy_run(dense[h], 2, rows[h], x->column * 2, n, 2);
                rows[h] = dense[h];
            }
        }
        char *line = to->data + p / 2 * to->pair;
        const char *later = tnc_element(x, tnc_min(p + AHEAD, k - 1), 0),
                   *last = tnc_element(x, tnc_min(p + AHEAD + 1, k - 1), 0);
        char *out = line;
        for (int64_t j = 0; j < n; j += LANES) {
            __builtin_prefetch((j & LANES ? last : later) + (j & -2 * LANES) * 2);
            __mmask16 some = (__mmask16)first(n - j), both = p + 1 < k ? some : 0;
            __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, rows[0] + j)),
                    high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(both, rows[1] + j)),
                    pairs = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
            least = least_of(least, pairs);
            _mm512_storeu_si512(out, pairs);
            out += 64;
            if (out == line + to->width * 4)
                out = line += to->strip;
        }
    }
    return exponent_of(least);
}

/* x[i] lane j becomes x[j] lane i. */
static inline void transpose(__m512i x[16]) {
    __m512i y[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) /* x[4 q + c]: lanes c of rows 4 q and on, in each quarter */
        for (int h = 0; h < 2; h++) {
            x[i + 2 * h] = _mm512_unpacklo_epi64(y[i + h], y[i + h + 2]);
            x[i + 2 * h + 1] = _mm512_unpackhi_epi64(y[i + h], y[i + h + 2]);
        }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        __m512i a = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88),
                b = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xdd),
                d = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88),
                e = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xdd);
        y[c] = _mm512_shuffle_i32x4(a, d, 0x88);
        y[8 + c] = _mm512_shuffle_i32x4(a, d, 0xdd);
        y[4 + c] = _mm512_shuffle_i32x4(b, e, 0x88);
        y[12 + c] = _mm512_shuffle_i32x4(b, e, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        x[i] = y[i];
}

/* [k, outer] with K in the columns: turned, 16 pairs of 16 columns at a time. */
static int pack_turned(const panel *to, const tnc_matrix *x, int64_t n, int64_t k) {
    __m512i least = _mm512_set1_epi32(-1);
    for (int64_t j = 0; j < n; j += LANES)
        for (int64_t p = 0; p < k; p += 2 * LANES) {
            __m512i lines[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++) {
                __mmask32 some = j + i < n ? first(k - p) : 0;
                lines[i] = _mm512_maskz_loadu_epi16(some, tnc_element(x, p, tnc_min(j + i, n - 1)));
                least = least_of(least, lines[i]);
            }
            transpose(lines);
            char *out = strip_at(to, j) + p / 2 * to->pair;
            for (int64_t i = 0; i < tnc_min(LANES, (k - p + 1) / 2); i++)
                _mm512_storeu_si512(out + i * to->pair, lines[i]);
        }
    return exponent_of(least);
}

/* Lines of `width` pairs. Strips lie so far apart that they do not meet in the cache's sets. */
static panel in_lines(void *data, int64_t width) {
    return (panel){data, width, TNC_BF16_DEPTH * 2 * width + 64, 4, width * 4};
}

static panel in_rows(void *data) {
    return (panel){data, ROWS, TNC_BF16_DEPTH * 2 * ROWS, TNC_BF16_DEPTH * 2, 4};
}

/* ---- blocks ------------------------------------------------------------------------------ */

typedef struct block {
    const char *a, *b;
    int64_t outer, pair; /* of A */
    int64_t pairs;
    float alpha, beta;
    float *c;
    int64_t ldc;
    uint16_t *out; /* where sums are stored that are complete, or NULL */
    int64_t out_row, columns;
    bool is_normal; /* nothing to be stored is subnormal */
} block;

/* As tnc_to_bf16 does it. The processor's own conversion loses subnormal numbers. */
static inline __m256i to_bf16(__m512 x) {
    __m512i u = _mm512_castps_si512(x), one = _mm512_set1_epi32(1),
            even = _mm512_and_si512(_mm512_srli_epi32(u, 16), one),
            rounded = _mm512_add_epi32(u, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff))),
            quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i all = _mm512_mask_mov_epi32(rounded, is_nan, quiet);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16));
}

/* x is the vector from column v * LANES on, of a row of the block. */
static inline void store_bf16(uint16_t *row, int v, int64_t columns, __m256i x) {
    if (columns >= (v + 1) * LANES)
        _mm256_storeu_si256((__m256i *)(row + v * LANES), x);
    else
        _mm256_mask_storeu_epi16(row + v * LANES, (__mmask16)first(columns - v * LANES), x);
}

static inline __attribute__((always_inline)) void multiply(int rows, int vectors, const block *k) {
    __m512 sums[ROWS][VECTORS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[r][v] = _mm512_setzero_ps();
    const char *a = k->a, *b = k->b;
    int64_t outer = k->outer, pair = k->pair;
    for (int64_t p = 0; p < k->pairs; p++, a += pair, b += COLUMNS * 4) {
        __m512i right[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            right[v] = _mm512_loadu_si512(b + v * 64);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            int32_t two;
            memcpy(&two, a + r * outer, 4);
            __m512i left = _mm512_set1_epi32(two);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sums[r][v] = _mm512_dpbf16_ps(sums[r][v], (__m512bh)left, (__m512bh)right[v]);
        }
    }
    __m512 alpha = _mm512_set1_ps(k->alpha), beta = _mm512_set1_ps(k->beta);
    float *c = k->c;
    uint16_t *out = k->out;
    int64_t ldc = k->ldc, out_row = k->out_row, columns = k->columns;
#define EACH(statement) \
    _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++) \
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) statement
    if (k->alpha != 1)
        EACH(sums[r][v] = _mm512_mul_ps(alpha, sums[r][v]);)
    if (k->beta != 0)
        EACH(sums[r][v] =
                 _mm512_fmadd_ps(beta, _mm512_loadu_ps(c + r * ldc + v * LANES), sums[r][v]);)
    if (!out)
        EACH(_mm512_storeu_ps(c + r * ldc + v * LANES, sums[r][v]);)
    else if (k->is_normal)
        EACH(store_bf16(out + r * out_row, v, columns, (__m256i)_mm512_cvtneps_pbh(sums[r][v]));)
    else
        EACH(store_bf16(out + r * out_row, v, columns, to_bf16(sums[r][v]));)
#undef EACH
}

#define BLOCK(rows, vectors) \
    static void block_##rows##_##vectors(const block *k) { \
        multiply(rows, vectors, k); \
    }
#define BLOCKS(rows) BLOCK(rows, 1) BLOCK(rows, 2) BLOCK(rows, 3) BLOCK(rows, 4)
BLOCKS(1)
BLOCKS(2)
BLOCKS(3)
BLOCKS(4)
BLOCKS(5)
BLOCKS(6)
#define ROW(rows) {block_##rows##_1, block_##rows##_2, block_##rows##_3, block_##rows##_4},
static void (*const blocks[ROWS][VECTORS])(const block *) = {ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)
                                                                 ROW(6)};

/* ---- the product ------------------------------------------------------------------------- */

/* All products, and so all sums of them, rounded or not, are multiples of the least factors' last
 * digits' product, 2^(exponents - 2 * (127 + 7)). Is that a normal f32, and is each factor normal? */
static bool is_far_from_subnormal(int exponent_a, int exponent_b) {
    return exponent_a > 0 && exponent_b > 0 && exponent_a + exponent_b - 2 * (127 + 7) >= -126;
}

bool tnc_bf16_multiply(const tnc_bf16_product *p) {
    const tnc_matrix *a = &p->a, *b = &p->b;
    bool is_turned = a->row == 1 && a->column != 1;
    panel left = is_turned ? in_lines(p->panel_a, LINE_A) : in_rows(p->panel_a);
    panel right = in_lines(p->panel_b, COLUMNS);
    tnc_matrix turned = {a->data, a->column, a->row, a->dtype};
    int exponent_a =
        is_turned ? pack_columns(&left, &turned, p->m, p->k) : pack_rows(&left, a, p->m, p->k);
    int exponent_b = b->row == 1 && b->column != 1 ? pack_turned(&right, b, p->n, p->k)
                                                   : pack_columns(&right, b, p->n, p->k);
    if (!is_far_from_subnormal(exponent_a, exponent_b))
        return false;

    block now = {
        .outer = left.outer,
        .pair = left.pair,
        .pairs = (p->k + 1) / 2,
        .alpha = p->alpha,
        .beta = p->beta,
        .ldc = tnc_bf16_pitch(p->n),
        .out_row = p->out ? p->out->row : 0,
        .is_normal = p->alpha == 1 && (p->beta == 0 || (p->beta == 1 && p->is_normal)),
    };
    int64_t vectors = tnc_ceil_div(p->n, LANES);
    for (int64_t v = 0; v < vectors; v += VECTORS) {
        int64_t j = v * LANES, wide = tnc_min(VECTORS, vectors - v);
        now.b = strip_at(&right, j);
        now.columns = p->n - j;
        for (int64_t i = 0; i < p->m; i += ROWS) {
            now.a = strip_at(&left, i);
            now.c = p->c + i * now.ldc + j;
            now.out = p->out ? (uint16_t *)tnc_element(p->out, i, j) : NULL;
            blocks[tnc_min(ROWS, p->m - i) - 1][wide - 1](&now);
        }
    }
    return true;
}
