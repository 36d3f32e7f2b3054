/* sum and prod. */
#include "plugins/cpu/reduce.h"

enum { PAIR = 16 /* elements that a lane adds before lanes are combined */ };

/* T as given, L in the lanes, A accumulated in. Runs of TNC_LANES * PAIR elements are combined in L,
 * each lane adding PAIR of them and the lanes in a tree, and carried in A. */
#define FOLD(op, sfx, T, L, A, symbol, identity) \
    static void op##_rows_##sfx(tnc_state *s, const void *data, int64_t n, int64_t first) { \
        const T *x = data; \
        A total = s->n ? *(A *)s->a : identity; \
        int64_t i = 0; \
        for (; i + TNC_LANES * PAIR <= n; i += TNC_LANES * PAIR) { \
            L lanes[TNC_LANES]; \
            for (int j = 0; j < TNC_LANES; j++) \
                lanes[j] = (L)x[i + j]; \
            for (int k = 1; k < PAIR; k++) \
                for (int j = 0; j < TNC_LANES; j++) \
                    lanes[j] = lanes[j] symbol(L) x[i + k * TNC_LANES + j]; \
            for (int width = TNC_LANES / 2; width > 0; width /= 2) \
                for (int j = 0; j < width; j++) \
                    lanes[j] = lanes[j] symbol lanes[j + width]; \
            total = total symbol(A) lanes[0]; \
        } \
        for (; i < n; i++) \
            total = total symbol(A) x[i]; \
        *(A *)s->a = total; \
        s->n += n; \
    } \
    static void op##_columns_##sfx(tnc_state *s, const void *data, int64_t width, int64_t first) { \
        const T *x = data; \
        A *a = s->a; \
        if (s->n++ == 0) \
            for (int64_t j = 0; j < width; j++) \
                a[j] = identity; \
        TNC_INDEPENDENT \
        for (int64_t j = 0; j < width; j++) \
            a[j] = a[j] symbol(A) x[j]; \
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
            ((T *)out)[j] = (T)a[j]; \
    } \
    static const tnc_reducer op##_##sfx = {op##_rows_##sfx, op##_columns_##sfx, op##_merge_##sfx, \
                                           op##_finish_##sfx};

/* -0 is the identity of IEEE addition: the sum of negative zeros stays one. */
#define FOLD_INT(sfx, T, U, DT) \
    FOLD(sum, sfx, T, U, uint64_t, +, 0) \
    FOLD(prod, sfx, T, U, uint64_t, *, 1)
FOLD(sum, f32, float, float, double, +, -0.0)
FOLD(sum, f64, double, double, double, +, -0.0)
FOLD(prod, f32, float, double, double, *, 1)
FOLD(prod, f64, double, double, double, *, 1)
TNC_INT_TYPES(FOLD_INT)

static const tn_kernel records[] = {
    TNC_REDUCTION_NUMBERS(sum, sum),
    TNC_REDUCTION_NUMBERS(prod, prod),
};
TNC_PUBLISH(sum, records);
