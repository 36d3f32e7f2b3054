/* See libraries_rig.h. */
#include "tests/cuda/libraries_rig.h"

#include <math.h>

const char *rig_plugin, *rig_blaslt, *rig_dnn;
static const char *driver, *nvrtc;
static uint64_t mistakes_before;

static uint64_t mistakes(void) {
    return cublaslt_double_mistakes() + cudnn_double_mistakes();
}

int rig_setup(void **state) {
    cublaslt_double_configure("");
    cudnn_double_configure("");
    mini_option("driver", driver);
    mini_option("nvrtc", nvrtc);
    mini_option("cache", "off");
    mini_option("cublaslt", rig_blaslt);
    mini_option("cudnn", rig_dnn);
    mini_option("tf32", NULL);
    mistakes_before = mistakes();
    return 0;
}

int rig_teardown(void **state) {
    int64_t alive = cublaslt_double_alive() + cudnn_double_alive();
    if (alive)
        print_error("%lld objects of the libraries are alive\n", (long long)alive);
    return alive || mistakes() != mistakes_before ? -1 : 0;
}

void rig_open(mini *m) {
    if (!mini_open(m, rig_plugin, 0))
        fail_msg("%s", mini_error());
}

void rig_close(mini *m) {
    assert_true(mini_close(m));
}

const char *rig_logged(size_t from) {
    return mini_log() + from;
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* Integers below 2^8, which all of them hold, to bits and back. */
static void store(tn_dtype dtype, void *to, int64_t at, double x) {
    float narrow = (float)x;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (dtype == TN_F64)
        ((double *)to)[at] = x;
    else if (dtype == TN_F32)
        ((float *)to)[at] = narrow;
    else if (dtype == TN_BF16)
        ((uint16_t *)to)[at] = (uint16_t)(bits >> 16);
    else
        ((uint16_t *)to)[at] =
            x == 0 ? 0
                   : (uint16_t)((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) - 0x38000000) >> 13);
}

static double load(tn_dtype dtype, const void *from, int64_t at) {
    uint32_t bits;
    float narrow;
    if (dtype == TN_F64)
        return ((const double *)from)[at];
    if (dtype == TN_F32)
        return ((const float *)from)[at];
    bits = ((const uint16_t *)from)[at];
    if (dtype == TN_BF16)
        bits <<= 16;
    else
        bits = bits & 0x7fff ? (bits & 0x8000) << 16 | (((bits & 0x7fff) << 13) + 0x38000000) : 0;
    memcpy(&narrow, &bits, sizeof narrow);
    return narrow;
}

/* Where element `i` in row-major order lies. */
static int64_t place(const tn_tensor_view *v, int64_t i) {
    int64_t at = (int64_t)(v->offset / mini_dtype_bytes(v->dtype));
    for (int32_t d = v->rank - 1; d >= 0; d--) {
        at += i % v->sizes[d] * v->strides[d];
        i /= v->sizes[d];
    }
    return at;
}

static void write(mini *m, rig_tensor *r) {
    static double bytes[RIG_MAX];
    const tn_tensor_view *v = &r->t->view;
    assert_true(r->t->bytes <= sizeof bytes);
    memset(bytes, 0x55, sizeof bytes);
    for (int64_t i = 0; i < v->numel; i++)
        store(v->dtype, bytes, place(v, i), r->values[i]);
    assert_ok(mini_tensor_write(m, r->t, bytes));
}

rig_tensor rig_make(mini *m, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                    const int64_t *strides, int64_t offset, unsigned seed) {
    rig_tensor r = {.t = mini_tensor_create(m, dtype, rank, sizes, strides, offset)};
    assert_non_null(r.t);
    r.values = malloc((size_t)r.t->view.numel * sizeof *r.values);
    for (int64_t i = 0; i < r.t->view.numel; i++) {
        seed = seed * 1664525 + 1013904223;
        r.values[i] = (double)(seed >> 16) - (double)((seed >> 16) / 7 * 7) - 3;
    }
    if (strides) /* elements that share memory are the last that was written */
        for (int64_t i = 0; i < r.t->view.numel; i++)
            for (int64_t k = 0; k < i; k++)
                if (place(&r.t->view, k) == place(&r.t->view, i))
                    r.values[i] = r.values[k];
    write(m, &r);
    return r;
}

void rig_fill(mini *m, rig_tensor *t, double value) {
    for (int64_t i = 0; i < t->t->view.numel; i++)
        t->values[i] = value;
    write(m, t);
}

void rig_free(rig_tensor *t) {
    free(t->values);
    t->values = NULL;
}

void rig_compare(mini *m, const rig_tensor *r, const double *expected) {
    static double bytes[RIG_MAX];
    static unsigned char belongs[RIG_MAX * sizeof(double)];
    const tn_tensor_view *v = &r->t->view;
    uint64_t size = mini_dtype_bytes(v->dtype);
    assert_ok(mini_tensor_read(m, r->t, bytes));
    memset(belongs, 0, r->t->bytes);
    for (int64_t i = 0; i < v->numel; i++) {
        double found = load(v->dtype, bytes, place(v, i));
        memset(belongs + (uint64_t)place(v, i) * size, 1, size);
        if (!(fabs(found - expected[i]) <= 1e-6 * fabs(expected[i])))
            fail_msg("element %lld is %g and not %g", (long long)i, found, expected[i]);
    }
    for (uint64_t i = 0; i < r->t->bytes; i++)
        if (!belongs[i] && ((unsigned char *)bytes)[i] != 0x55)
            fail_msg("byte %llu between the elements was written", (unsigned long long)i);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        print_error("usage: %s PLUGIN.so LIBCUDA.so LIBNVRTC.so LIBCUBLASLT.so LIBCUDNN.so\n",
                    argv[0]);
        return 2;
    }
    rig_plugin = argv[1];
    driver = argv[2];
    nvrtc = argv[3];
    rig_blaslt = argv[4];
    rig_dnn = argv[5];
    return all_tests();
}
