/* amax and amin, argmax and argmin. */
#include "plugins/cpu/reduce.h"

#include <string.h>

/* Does x replace `best`? NaN replaces all but NaN; for integers the second half folds away. */
#define BEATS(x, symbol, best) ((x)symbol(best) || ((x) != (x) && (best) == (best)))

#define EXTREME(op, sfx, T, symbol) \
    static T op##_run_##sfx(const T *x, int64_t n) { \
        T lanes[TNC_LANES], best = x[0]; \
        int64_t i = 0; \
        if (n >= TNC_LANES) { \
            for (int j = 0; j < TNC_LANES; j++) \
                lanes[j] = x[j]; \
            for (i = TNC_LANES; i + TNC_LANES <= n; i += TNC_LANES) \
                for (int j = 0; j < TNC_LANES; j++) { \
                    T y = x[i + j], z = lanes[j]; \
                    lanes[j] = ((y symbol z) | (y != y)) ? y : z; \
                } \
            best = lanes[0]; \
            for (int j = 1; j < TNC_LANES; j++) \
                best = BEATS(lanes[j], symbol, best) ? lanes[j] : best; \
        } \
        for (; i < n; i++) \
            best = BEATS(x[i], symbol, best) ? x[i] : best; \
        return best; \
    } \
    static void op##_rows_##sfx(tnc_state *s, const void *data, int64_t n, int64_t first) { \
        T best = op##_run_##sfx(data, n), *a = s->a; \
        if (s->n == 0 || BEATS(best, symbol, *a)) \
            *a = best; \
        s->n += n; \
    } \
    static void op##_columns_##sfx(tnc_state *s, const void *data, int64_t stride, int64_t rows, \
                                   int64_t width, int64_t first) { \
        T *a = s->a; \
        if (s->n == 0) \
            memcpy(a, data, sizeof(T) * (size_t)width); \
        s->n += rows; \
        for (int64_t i = 0; i < rows; i++) { \
            const T *x = (const T *)((const char *)data + i * stride); \
            TNC_INDEPENDENT \
            for (int64_t j = 0; j < width; j++) { \
                T y = x[j], z = a[j]; \
                a[j] = ((y symbol z) | (y != y)) ? y : z; \
            } \
        } \
    } \
    static void op##_merge_##sfx(tnc_state *into, const tnc_state *from, int64_t width) { \
        op##_columns_##sfx(into, from->a, 0, 1, width, 0); \
    } \
    static void op##_finish_##sfx(const tnc_state *s, void *out, int64_t width, \
                                  const tn_cell *attrs) { \
        memcpy(out, s->a, sizeof(T) * (size_t)width); \
    } \
    static const tnc_reducer op##_##sfx = {op##_rows_##sfx, op##_columns_##sfx, op##_merge_##sfx, \
                                           op##_finish_##sfx, false}; \
    static void arg##op##_rows_##sfx(tnc_state *s, const void *data, int64_t n, int64_t first) { \
        const T *x = data; \
        T best = op##_run_##sfx(x, n), *a = s->a; \
        if (s->n == 0 || BEATS(best, symbol, *a)) { \
            int64_t i = 0; \
            while (!(x[i] == best || x[i] != x[i])) \
                i++; \
            *a = best; \
            *(int64_t *)s->b = first + i; \
        } \
        s->n += n; \
    } \
    static void arg##op##_columns_##sfx(tnc_state *s, const void *data, int64_t stride, \
                                        int64_t rows, int64_t width, int64_t first) { \
        T *a = s->a; \
        int64_t *b = s->b; \
        if (s->n == 0) \
            for (int64_t j = 0; j < width; j++) { \
                a[j] = ((const T *)data)[j]; \
                b[j] = first; \
            } \
        s->n += rows; \
        for (int64_t i = 0; i < rows; i++) { \
            const T *x = (const T *)((const char *)data + i * stride); \
            TNC_INDEPENDENT \
            for (int64_t j = 0; j < width; j++) { \
                T y = x[j], z = a[j]; \
                bool beats = (y symbol z) | ((y != y) & (z == z)); \
                a[j] = beats ? y : z; \
                b[j] = beats ? first + i : b[j]; \
            } \
        } \
    } \
    static void arg##op##_merge_##sfx(tnc_state *into, const tnc_state *from, int64_t width) { \
        T *a = into->a; \
        const T *c = from->a; \
        int64_t *b = into->b; \
        const int64_t *d = from->b; \
        for (int64_t j = 0; j < width; j++) \
            if (BEATS(c[j], symbol, a[j])) { \
                a[j] = c[j]; \
                b[j] = d[j]; \
            } \
    } \
    static const tnc_reducer arg##op##_##sfx = {arg##op##_rows_##sfx, arg##op##_columns_##sfx, \
                                                arg##op##_merge_##sfx, index_finish, false};

static void index_finish(const tnc_state *s, void *out, int64_t width, const tn_cell *attrs) {
    memcpy(out, s->b, sizeof(int64_t) * (size_t)width);
}

#define EXTREMES(sfx, T, U, DT) \
    EXTREME(max, sfx, T, >) \
    EXTREME(min, sfx, T, <)
EXTREMES(f32, float, float, F32)
EXTREMES(f64, double, double, F64)
TNC_INT_TYPES(EXTREMES)

static const tn_kernel records[] = {
    TNC_REDUCTION_NUMBERS(amax, max),       TNC_REDUCTION_NUMBERS(amin, min),
    TNC_REDUCTION_NUMBERS(argmax, argmax),  TNC_REDUCTION_NUMBERS(argmin, argmin),
    TNC_REDUCTION(amax, BOOL, max_u8),      TNC_REDUCTION(amin, BOOL, min_u8),
    TNC_REDUCTION(argmax, BOOL, argmax_u8), TNC_REDUCTION(argmin, BOOL, argmin_u8),
};
TNC_PUBLISH(extreme, records);
