/* Activation functions of neural networks and their derivatives. */
#include "plugins/cpu/pointwise.h"
#include "plugins/cpu/vmath.h"

#define RELU(sfx, T, U, DT) TNC_LOOP1(relu_##sfx, T, T, TNC_NOTHING, a < 0 ? 0 : a)
RELU(f32, float, float, F32)
RELU(bf16, tnc_bf16, float, BF16)
RELU(f64, double, double, F64)
TNC_INT_TYPES(RELU)

#define THRESHOLD(sfx, T, bound) \
    TNC_LOOP2(threshold_backward_##sfx, T, T, bound, b <= threshold ? 0 : a)
#define THRESHOLD_INT(sfx, T, U, DT) THRESHOLD(sfx, T, int64_t threshold = attrs[0].v.i64)
THRESHOLD(f32, float, float threshold = TNC_ATTR_F(float, 0))
THRESHOLD(bf16, tnc_bf16, float threshold = TNC_ATTR_F(float, 0))
THRESHOLD(f64, double, double threshold = attrs[0].v.f64)
TNC_INT_TYPES(THRESHOLD_INT)

/* sigmoid(x), and its derivative s (1 - s) without the cancellation of 1 - s: with e = exp(-|x|) it
 * is e / (1 + e)^2. */
#define SLOPE(sfx, T, exp, fabs) \
    static inline __attribute__((always_inline)) T sigmoid_slope_##sfx(T x, T *out_slope) { \
        T e = exp(-fabs(x)), r = 1 / (1 + e); \
        *out_slope = e * r * r; \
        return x < 0 ? e * r : r; \
    }
SLOPE(f32, float, em_exp, em_fabs)
SLOPE(bf16, tnc_bf16, em_exp, em_fabs)
SLOPE(f64, double, exp, fabs)

/* a = x, or a = gradient and b = x or the forward output. */
#define SMOOTH(sfx, T, sigmoid) \
    TNC_LOOP1(sigmoid_##sfx, T, T, TNC_NOTHING, sigmoid(a)) \
    TNC_LOOP1(silu_##sfx, T, T, TNC_NOTHING, (a * sigmoid(a))) \
    TNC_LOOP2(sigmoid_backward_##sfx, T, T, TNC_NOTHING, (a * b * (1 - b))) \
    TNC_LOOP2(tanh_backward_##sfx, T, T, TNC_NOTHING, (1 - b * b) * a) \
    static inline __attribute__((always_inline)) T silu_derivative_##sfx(T x) { \
        T slope, s = sigmoid_slope_##sfx(x, &slope); \
        return s + x * slope; \
    } \
    TNC_LOOP2(silu_backward_##sfx, T, T, TNC_NOTHING, a *silu_derivative_##sfx(b))
SMOOTH(f32, float, em_sigmoid)
SMOOTH(bf16, tnc_bf16, em_sigmoid)
SMOOTH(f64, double, em_sigmoid_f64)

/* gelu(x) = x Phi(x), or with Phi(x) ~ sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the
 * 'tanh' form of Hendrycks and Gimpel, since (1 + tanh u) / 2 = sigmoid(2 u). */
#define GELU(sfx, T, sigmoid, cdf, exp) \
    static inline __attribute__((always_inline)) T gelu_2u_##sfx(T x) { \
        return (T)1.5957691216057308 * (x + (T)0.044715 * x * x * x); \
    } \
    static inline __attribute__((always_inline)) T gelu_tanh_derivative_##sfx(T x) { \
        T slope, s = sigmoid_slope_##sfx(gelu_2u_##sfx(x), &slope); \
        T z = x * x < 10000 ? x * x : 10000; /* beyond, slope is 0, and 0 times infinity NaN */ \
        return s + x * slope * (T)1.5957691216057308 * (1 + (T)0.134145 * z); \
    } \
    static inline __attribute__((always_inline)) T gelu_derivative_##sfx(T x) { \
        return cdf(x) + x * (T)0.398942280401432678 * exp((T)-0.5 * x * x); \
    } \
    TNC_LOOP1(gelu_erf_##sfx, T, T, TNC_NOTHING, (a * cdf(a))) \
    TNC_LOOP1(gelu_tanh_##sfx, T, T, TNC_NOTHING, (a * sigmoid(gelu_2u_##sfx(a)))) \
    TNC_LOOP2(gelu_backward_erf_##sfx, T, T, TNC_NOTHING, (a * gelu_derivative_##sfx(b))) \
    TNC_LOOP2(gelu_backward_tanh_##sfx, T, T, TNC_NOTHING, (a * gelu_tanh_derivative_##sfx(b))) \
    TNC_LOOP_HEAD(gelu_##sfx) { \
        (is_tanh(attrs) ? gelu_tanh_##sfx : gelu_erf_##sfx)(n, out, in, attrs); \
    } \
    TNC_LOOP_HEAD(gelu_backward_##sfx) { \
        (is_tanh(attrs) ? gelu_backward_tanh_##sfx : gelu_backward_erf_##sfx)(n, out, in, attrs); \
    }

static bool is_tanh(const tn_cell *attrs) {
    return strcmp(attrs[0].v.string, "tanh") == 0;
}

GELU(f32, float, em_sigmoid, em_normal_cdf, em_exp)
GELU(bf16, tnc_bf16, em_sigmoid, em_normal_cdf, em_exp)
GELU(f64, double, em_sigmoid_f64, em_normal_cdf_f64, exp)

static const tn_kernel records[] = {
    TNC_NUMBERS(TNC_UNARY, relu),
    TNC_NUMBERS(TNC_BINARY, threshold_backward),
    TNC_FLOATS(TNC_UNARY, sigmoid, .expensive = 1),
    TNC_FLOATS(TNC_UNARY, silu, .expensive = 1),
    TNC_FLOATS(TNC_UNARY, gelu, .expensive = 1),
    TNC_FLOATS(TNC_BINARY, sigmoid_backward),
    TNC_FLOATS(TNC_BINARY, tanh_backward),
    TNC_FLOATS(TNC_BINARY, silu_backward, .expensive = 1),
    TNC_FLOATS(TNC_BINARY, gelu_backward, .expensive = 1),
};
TNC_PUBLISH(activation, records);
