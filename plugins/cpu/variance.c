/* var. */
#include "plugins/cpu/reduce.h"

/* T. Chan et al., "Updating formulae and a pairwise algorithm for computing sample variances",
 * 1979: means in a, sums of squared distances in b, both f64. A row's block is taken in two passes.
 */
static void var_add(tnc_state *s, int64_t j, double n, double mean, double m2) {
    double *means = s->a, *m2s = s->b, before = (double)s->n;
    double distance = mean - means[j];
    means[j] += distance * n / (before + n);
    m2s[j] += m2 + distance * distance * before * n / (before + n);
}

enum { VAR_LANES = 32 };

/* Of all lanes. */
static inline double var_total(double *lanes) {
    TNC_TREE(lanes, VAR_LANES, +);
    return lanes[0];
}

#define VAR(sfx, T) \
    static void var_rows_##sfx(tnc_state *s, const void *data, int64_t n, int64_t first) { \
        const T *x = data; \
        double sums[VAR_LANES] = {0}, squares[VAR_LANES] = {0}; \
        int64_t i = 0; \
        for (; i + VAR_LANES <= n; i += VAR_LANES) \
            for (int j = 0; j < VAR_LANES; j++) \
                sums[j] += x[i + j]; \
        for (int j = 0; i + j < n; j++) \
            sums[j] += x[i + j]; \
        double mean = var_total(sums) / (double)n; \
        for (i = 0; i + VAR_LANES <= n; i += VAR_LANES) \
            for (int j = 0; j < VAR_LANES; j++) \
                squares[j] += (x[i + j] - mean) * (x[i + j] - mean); \
        for (int j = 0; i + j < n; j++) \
            squares[j] += (x[i + j] - mean) * (x[i + j] - mean); \
        double m2 = var_total(squares); \
        if (s->n == 0) \
            *(double *)s->a = mean, *(double *)s->b = m2; \
        else \
            var_add(s, 0, (double)n, mean, m2); \
        s->n += n; \
    } \
    static void var_columns_##sfx(tnc_state *s, const void *data, int64_t stride, int64_t rows, \
                                  int64_t width, int64_t first) { \
        double *mean = s->a, *m2 = s->b; \
        if (s->n == 0) \
            for (int64_t j = 0; j < width; j++) \
                mean[j] = m2[j] = 0; \
        for (int64_t i = 0; i < rows; i++) { \
            const T *x = (const T *)((const char *)data + i * stride); \
            double share = 1 / (double)++s->n; \
            TNC_INDEPENDENT \
            for (int64_t j = 0; j < width; j++) { \
                double distance = x[j] - mean[j]; \
                double moved = mean[j] + distance * share; \
                m2[j] += distance * (x[j] - moved); \
                mean[j] = moved; \
            } \
        } \
    } \
    static void var_finish_##sfx(const tnc_state *s, void *out, int64_t width, \
                                 const tn_cell *attrs) { \
        const double *m2 = s->b; \
        double divisor = (double)s->n - attrs[2].v.f64; \
        for (int64_t j = 0; j < width; j++) \
            ((T *)out)[j] = (T)(m2[j] / (divisor > 0 ? divisor : 0)); \
    } \
    static const tnc_reducer var_##sfx = {var_rows_##sfx, var_columns_##sfx, var_merge, \
                                          var_finish_##sfx, false};

static void var_merge(tnc_state *into, const tnc_state *from, int64_t width) {
    for (int64_t j = 0; j < width; j++)
        var_add(into, j, (double)from->n, ((double *)from->a)[j], ((double *)from->b)[j]);
    into->n += from->n;
}
VAR(f32, float)
VAR(f64, double)

static const tn_kernel records[] = {TNC_REDUCTION_FLOATS(var, var)};
TNC_PUBLISH(variance, records);
