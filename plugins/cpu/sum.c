/* sum and prod. */
#include "plugins/cpu/element.h"
#include "plugins/cpu/reduce.h"

/* Partial results of a row: four vectors of 64 bytes, to hide latency. */
#define LANES(L) (256 / (int)sizeof(L))

enum { PAIR = 16 /* elements that are added in L before they are added in A */ };

/* T as given, L in the lanes, A accumulated in. Runs of up to LANES * PAIR elements are combined in L, each
 * lane adding up to PAIR of them and the lanes in a tree, and carried in A. Columns add up to PAIR rows in L. */
#define ROWS(op, sfx, T, L, A, symbol, identity) \
    static void op##_rows_##sfx(tnc_state *s, const void *x, int64_t n, int64_t first) { \
        A total = s->n ? *(A *)s->a : identity; \
        s->n += n; \
        int64_t i = 0; \
        while (n - i >= LANES(L)) { \
            L lanes[LANES(L)]; \
            int64_t end = i + tnc_min((n - i) / LANES(L), PAIR) * LANES(L); \
            for (int j = 0; j < LANES(L); j++) \
                lanes[j] = (L)tnc_read_##T(x, i + j); \
            for (i += LANES(L); i < end; i += LANES(L)) \
                for (int j = 0; j < LANES(L); j++) \
                    lanes[j] = lanes[j] symbol(L) tnc_read_##T(x, i + j); \
            TNC_TREE(lanes, LANES(L), symbol); \
            total = total symbol(A) lanes[0]; \
        } \
        for (; i < n; i++) \
            total = total symbol(A) tnc_read_##T(x, i); \
        *(A *)s->a = total; \
    }

#define REST(op, sfx, T, L, A, symbol, identity) \
    static void op##_columns_##sfx(tnc_state *s, const void *data, int64_t stride, int64_t rows, \
                                   int64_t width, int64_t first) { \
        A *a = s->a; \
        if (s->n == 0) \
            for (int64_t j = 0; j < width; j++) \
                a[j] = identity; \
        s->n += rows; \
        L sums[TNC_GROUP]; \
        for (const char *x = data; rows > 0; rows -= PAIR) { \
            for (int64_t j = 0; j < width; j++) \
                sums[j] = (L)tnc_read_##T(x, j); \
            x += stride; \
            for (int64_t k = 1; k < tnc_min(rows, PAIR); k++, x += stride) \
                for (int64_t j = 0; j < width; j++) \
                    sums[j] = sums[j] symbol(L) tnc_read_##T(x, j); \
            for (int64_t j = 0; j < width; j++) \
                a[j] = a[j] symbol(A) sums[j]; \
        } \
    } \
    static void op##_merge_##sfx(tnc_state *into, const tnc_state *from, int64_t width) { \
        A *a = into->a; \
        const A *b = from->a; \
        for (int64_t j = 0; j < width; j++) \
            a[j] = a[j] symbol b[j]; \
        into->n += from->n; \
    } \
    static void op##_finish_##sfx(const tnc_state *s, void *out, int64_t width, \
                                  const tn_cell *attrs) { \
        const A *a = s->a; \
        for (int64_t j = 0; j < width; j++) \
            tnc_write_##T(out, j, (T)a[j]); \
    } \
    static const tnc_reducer op##_##sfx = {op##_rows_##sfx, op##_columns_##sfx, op##_merge_##sfx, \
                                           op##_finish_##sfx, tnc_stored_##T};

#define FOLD(op, sfx, T, L, A, symbol, identity) \
    ROWS(op, sfx, T, L, A, symbol, identity) \
    REST(op, sfx, T, L, A, symbol, identity)

/* Two bf16 are read as one word, of which each is an f32 but for a shift or a mask: lanes take every other element. */
static void sum_rows_bf16(tnc_state *s, const void *data, int64_t n, int64_t first) {
    enum { WORDS = 32 };
    const uint16_t *x = data;
    double total = s->n ? *(double *)s->a : -0.0;
    s->n += n;
    while (n >= 2 * WORDS) {
        float lanes[2 * WORDS];
        int64_t turns = tnc_min(n / (2 * WORDS), PAIR);
        for (int j = 0; j < 2 * WORDS; j++)
            lanes[j] = -0.0f;
        n -= turns * 2 * WORDS;
        for (; turns > 0; turns--, x += 2 * WORDS)
            for (int j = 0; j < WORDS; j++) {
                uint32_t word;
                memcpy(&word, x + 2 * j, sizeof word);
                lanes[j] += tnc_float(word << 16);
                lanes[j + WORDS] += tnc_float(word & 0xffff0000);
            }
        TNC_TREE(lanes, 2 * WORDS, +);
        total += lanes[0];
    }
    for (int64_t i = 0; i < n; i++)
        total += tnc_from_bf16(x[i]);
    *(double *)s->a = total;
}

/* -0 is the identity of IEEE addition: the sum of negative zeros stays one. */
#define FOLD_INT(sfx, T, U, DT) \
    FOLD(sum, sfx, T, U, uint64_t, +, 0) \
    FOLD(prod, sfx, T, U, uint64_t, *, 1)
FOLD(sum, f32, float, float, double, +, -0.0)
REST(sum, bf16, tnc_bf16, float, double, +, -0.0)
FOLD(sum, f64, double, double, double, +, -0.0)
FOLD(prod, f32, float, double, double, *, 1)
FOLD(prod, bf16, tnc_bf16, double, double, *, 1)
FOLD(prod, f64, double, double, double, *, 1)
TNC_INT_TYPES(FOLD_INT)

#define RECORDS(op) \
    TNC_REDUCTION(op, F32, op##_f32), TNC_REDUCTION(op, F64, op##_f64), \
        TNC_REDUCTION(op, F16, op##_f32), TNC_REDUCTION(op, BF16, op##_bf16), \
        TNC_REDUCTION_INTS(op, op)

static const tn_kernel records[] = {RECORDS(sum), RECORDS(prod)};
TNC_PUBLISH(sum, records);
