/* DLPack: what is handed out and taken in, what is refused, and who ends it. */
#include "tests/core/core_test.h"

#include "core/tensor/tensor.h"

#include <pthread.h>
#include <tenon/dlpack.h>
#include <tenon/tenon.h>

/* The layout that every library on the same machine was compiled with. */
_Static_assert(sizeof(DLTensor) == 48 && sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4,
               "DLPack");
_Static_assert(offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16, "DLPack");
_Static_assert(offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24, "DLPack");
_Static_assert(offsetof(DLTensor, strides) == 32 && offsetof(DLTensor, byte_offset) == 40,
               "DLPack");
_Static_assert(offsetof(DLManagedTensor, manager_ctx) == 48 &&
                   offsetof(DLManagedTensor, deleter) == 56 && sizeof(DLManagedTensor) == 64,
               "DLPack");
_Static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
                   offsetof(DLManagedTensorVersioned, deleter) == 16 &&
                   offsetof(DLManagedTensorVersioned, flags) == 24 &&
                   offsetof(DLManagedTensorVersioned, dl_tensor) == 32 &&
                   sizeof(DLManagedTensorVersioned) == 80,
               "DLPack");

static tn_device cpu(void) {
    return tn_device_parse("cpu:0");
}

/* ---- another library --------------------------------------------------------------------- */

static int n_deleted;

static void count_deleted(DLManagedTensorVersioned *self) {
    n_deleted += *(int *)self->manager_ctx;
}

static void count_legacy(DLManagedTensor *self) {
    n_deleted += *(int *)self->manager_ctx;
}

static int one = 1;
static float numbers[6];
static int64_t shape[2], strides[2];

/* float32 [2, 3] of 0 to 5, writable, version 1.3. */
static DLManagedTensorVersioned others(void) {
    n_deleted = 0;
    for (int i = 0; i < 6; i++)
        numbers[i] = (float)i;
    shape[0] = 2, shape[1] = 3;
    strides[0] = 3, strides[1] = 1;
    return (DLManagedTensorVersioned){.version = {1, 3},
                                      .manager_ctx = &one,
                                      .deleter = count_deleted,
                                      .dl_tensor = {.data = numbers,
                                                    .device = {kDLCPU, 0},
                                                    .ndim = 2,
                                                    .dtype = {kDLFloat, 32, 1},
                                                    .shape = shape,
                                                    .strides = strides}};
}

static void assert_elements(tn_tensor *t, const float *expected) {
    if (!t)
        fail_msg("%s", tn_error_message());
    float have[6];
    uint64_t bytes = (uint64_t)tn_numel(t) * sizeof(float);
    assert_int_equal(tn_to_host(t, have, bytes), TN_OK);
    assert_memory_equal(have, expected, bytes);
}

/* ---- out --------------------------------------------------------------------------------- */

static void a_tensor_is_described(void **state) {
    tn_tensor *whole = tn_from_data((float[]){0, 1, 2, 3, 4, 5}, TN_SHAPE(2, 3), TN_F32, cpu());
    tn_tensor *t = tn_t(tn_narrow(whole, 1, 1, 2)); /* [2, 2], strides 1 and 3 */
    DLManagedTensorVersioned *m;
    assert_int_equal(tn_to_dlpack(t, DLPACK_FLAG_BITMASK_IS_COPIED, &m), TN_OK);
    assert_int_equal(m->version.major, 1);
    assert_int_equal(m->version.minor, 3);
    assert_int_equal(m->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
    const DLTensor *dl = &m->dl_tensor;
    assert_ptr_equal(dl->data, (float *)tn_data(whole) + 1);
    assert_int_equal(dl->byte_offset, 0);
    assert_int_equal(dl->device.device_type, kDLCPU);
    assert_int_equal(dl->device.device_id, 0);
    assert_int_equal(dl->ndim, 2);
    assert_int_equal(dl->shape[0], 2);
    assert_int_equal(dl->strides[0], 1);
    assert_int_equal(dl->strides[1], 3);
    tn_scope_close(0);
    assert_true(((float *)dl->data)[3] == 4);
    assert_int_equal(tn_shutdown(), TN_ERR_STATE); /* the consumer has it */
    tn_error_clear();
    m->deleter(m);
    assert_int_equal(tni_tensors_alive(), 0);
}

static void every_dtype_has_its_number(void **state) {
    static const DLDataType expected[TN_DTYPE_END] = {
        [TN_F32] = {2, 32, 1},  [TN_F64] = {2, 64, 1}, [TN_F16] = {2, 16, 1},
        [TN_BF16] = {4, 16, 1}, [TN_I8] = {0, 8, 1},   [TN_I16] = {0, 16, 1},
        [TN_I32] = {0, 32, 1},  [TN_I64] = {0, 64, 1}, [TN_U8] = {1, 8, 1},
        [TN_BOOL] = {6, 8, 1},  [TN_U16] = {1, 16, 1}, [TN_U32] = {1, 32, 1},
        [TN_U64] = {1, 64, 1},  [TN_C64] = {5, 64, 1}, [TN_C128] = {5, 128, 1}};
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_END; dtype++) {
        if (tn_dtype_size(dtype) == 0)
            continue;
        TN_SCOPE;
        DLManagedTensor *m;
        assert_int_equal(tn_to_dlpack_legacy(tn_zeros(TN_SCALAR_SHAPE, dtype, cpu()), &m), TN_OK);
        assert_memory_equal(&m->dl_tensor.dtype, &expected[dtype], sizeof(DLDataType));
        DLManagedTensorVersioned foreign = others();
        foreign.dl_tensor = m->dl_tensor;
        tn_tensor *back = tn_from_dlpack(&foreign, TN_DLPACK_SHARE);
        assert_int_equal(tn_dtype_of(back), dtype);
        assert_ptr_equal(tn_data(back), m->dl_tensor.data);
        tn_free(back);
        assert_int_equal(n_deleted, 1);
        m->deleter(m);
    }
}

static void devices_have_numbers(void **state) {
    DLDevice n = tn_dlpack_device(cpu());
    assert_int_equal(n.device_type, kDLCPU);
    n = tn_dlpack_device(tn_device_parse("sim:0"));
    assert_int_equal(n.device_type, kDLExtDev);
    assert_int_equal(n.device_id, 0);
    n = tn_dlpack_device(tn_device_parse("meta"));
    assert_int_equal(n.device_type, 0);
    assert_error(TN_ERR_UNSUPPORTED, "meta", NULL);
    n = tn_dlpack_device(tn_no_device());
    assert_int_equal(n.device_type, 0);
    assert_error(TN_ERR_DEVICE, "no device", NULL);
}

static void what_cannot_be_handed_out_is_refused(void **state) {
    TN_SCOPE;
    DLManagedTensorVersioned *m = (void *)1;
    DLManagedTensor *legacy = (void *)1;
    tn_tensor *x = tn_ones(TN_SHAPE(2), TN_F32, cpu());
    assert_int_equal(tn_to_dlpack(NULL, 0, &m), TN_ERR_INVALID_ARGUMENT);
    assert_null(m);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_to_dlpack", NULL);
    assert_int_equal(tn_to_dlpack_legacy(TN_NONE, &legacy), TN_ERR_INVALID_ARGUMENT);
    assert_null(legacy);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_to_dlpack_legacy", NULL);
    assert_int_equal(tn_to_dlpack(x, 0, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "out is NULL", NULL);
    assert_int_equal(tn_to_dlpack_legacy(x, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "out is NULL", NULL);
    assert_int_equal(tn_to_dlpack(x, 4, &m), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "flags 0x4", NULL);
    x = tn_mul(tn_set_requires_grad(x, true), x);
    assert_int_equal(tn_to_dlpack(x, 0, &m), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "requires a gradient", "tn_detach", NULL);
    x = tn_empty(TN_SHAPE(2), TN_F32, tn_device_parse("meta"));
    assert_int_equal(tn_to_dlpack(x, 0, &m), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "meta", NULL);
}

/* ---- in ---------------------------------------------------------------------------------- */

static void others_memory_is_shared(void **state) {
    DLManagedTensorVersioned m = others();
    tn_tensor *t = tn_from_dlpack(&m, TN_DLPACK_SHARE);
    assert_elements(t, (float[]){0, 1, 2, 3, 4, 5});
    assert_ptr_equal(tn_data(t), numbers);
    assert_true(tn_device_equal(tn_device_of(t), cpu()));
    tn_mul_scalar_(t, tn_int(2));
    assert_true(numbers[5] == 10);
    tn_tensor *row = tn_keep(tn_select(t, 0, 1));
    tn_scope_close(0);
    assert_int_equal(n_deleted, 0);
    tn_drop(row);
    assert_int_equal(n_deleted, 1);

    m = others(); /* an older producer */
    m.version.minor = 0;
    m.dl_tensor.strides = NULL;
    m.dl_tensor.byte_offset = 4;
    shape[0] = 1;
    m.dl_tensor.device.device_type = kDLCUDAHost;
    t = tn_from_dlpack(&m, TN_DLPACK_COPY_IF_NEEDED);
    assert_elements(t, (float[]){1, 2, 3});
    assert_ptr_equal(tn_data(t), numbers + 1);
    m.deleter = NULL; /* nobody is told */
    tn_free(t);
    assert_int_equal(n_deleted, 0);

    m = others();
    DLManagedTensor legacy = {m.dl_tensor, &one, count_legacy};
    t = tn_from_dlpack_legacy(&legacy, TN_DLPACK_SHARE);
    assert_elements(t, (float[]){0, 1, 2, 3, 4, 5});
    tn_free(t);
    assert_int_equal(n_deleted, 1);
}

static void what_cannot_be_shared_is_copied(void **state) {
    static const float backwards[] = {3, 4, 5, 0, 1, 2}, forwards[] = {0, 1, 2, 3, 4, 5};
    static char odd[sizeof numbers + 1];
    for (int i = 0; i < 4; i++) {
        DLManagedTensorVersioned m = others();
        if (i == 0) {
            m.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
        } else if (i == 1) {
            strides[0] = -3;
            m.dl_tensor.data = numbers + 3;
        } else if (i == 2) {
            m.dl_tensor.data = memcpy(odd + 1, numbers, sizeof numbers);
        }
        if (i < 3) {
            assert_null(tn_from_dlpack(&m, TN_DLPACK_SHARE));
            assert_error(TN_ERR_UNSUPPORTED, "cannot be shared",
                         i == 0   ? "read-only"
                         : i == 1 ? "negative strides"
                                  : "aligned",
                         "TN_DLPACK_COPY_IF_NEEDED", NULL);
            assert_int_equal(n_deleted, 0);
        }
        tn_tensor *t = tn_from_dlpack(&m, i < 3 ? TN_DLPACK_COPY_IF_NEEDED : TN_DLPACK_COPY);
        assert_elements(t, i == 1 ? backwards : forwards);
        assert_ptr_not_equal(tn_data(t), m.dl_tensor.data);
        assert_int_equal(n_deleted, 1); /* it is done with */
        tn_fill_(t, tn_int(7));
        assert_true(numbers[5] == 5);
        tn_scope_close(0);
        assert_int_equal(n_deleted, 1);
    }
}

static void validated_devices_get_a_copy(void **state) {
    setenv("TENON_VALIDATE", "2", 1);
    DLManagedTensorVersioned m = others();
    assert_null(tn_from_dlpack(&m, TN_DLPACK_SHARE));
    assert_error(TN_ERR_UNSUPPORTED, "TENON_VALIDATE", NULL);
    tn_tensor *t = tn_from_dlpack(&m, TN_DLPACK_COPY_IF_NEEDED);
    assert_elements(t, (float[]){0, 1, 2, 3, 4, 5});
    assert_int_equal(n_deleted, 1);
    unsetenv("TENON_VALIDATE");
    tn_free(t);
}

static void strides_that_mean_nothing_may_be_anything(void **state) {
    DLManagedTensorVersioned m = others();
    shape[0] = 1;
    strides[0] = -99;
    tn_tensor *t = tn_from_dlpack(&m, TN_DLPACK_SHARE);
    assert_elements(t, (float[]){0, 1, 2});
    tn_free(t);
    m = others();
    shape[1] = 0;
    strides[0] = -1;
    m.dl_tensor.data = NULL;
    t = tn_from_dlpack(&m, TN_DLPACK_SHARE);
    assert_int_equal(tn_numel(t), 0);
    tn_free(t);
    m = others();
    strides[0] = 0; /* both rows are one */
    t = tn_from_dlpack(&m, TN_DLPACK_COPY);
    assert_elements(t, (float[]){0, 1, 2, 0, 1, 2});
    tn_free(t);
    m = others();
    m.dl_tensor.ndim = 0;
    m.dl_tensor.shape = m.dl_tensor.strides = NULL;
    t = tn_from_dlpack(&m, TN_DLPACK_SHARE);
    assert_int_equal(tn_rank(t), 0);
    tn_free(t);
    assert_int_equal(n_deleted, 1);
}

static void what_cannot_be_taken_in_is_refused(void **state) {
    TN_SCOPE;
    DLManagedTensorVersioned m;
#define REFUSED(change, status, ...) \
    m = others(); \
    change; \
    for (int copy = TN_DLPACK_SHARE; copy <= TN_DLPACK_COPY; copy++) { \
        assert_null(tn_from_dlpack(&m, copy)); \
        assert_error(status, "tn_from_dlpack", __VA_ARGS__, NULL); \
    } \
    assert_int_equal(n_deleted, 0)
    REFUSED(m.version.major = 2, TN_ERR_UNSUPPORTED, "DLPack 2.3", "1.x");
    REFUSED(m.flags = 8, TN_ERR_UNSUPPORTED, "flags 0x8");
    REFUSED(m.dl_tensor.device.device_type = kDLCUDA, TN_ERR_UNSUPPORTED, "type 2");
    REFUSED(m.dl_tensor.device.device_type = kDLOpenCL, TN_ERR_UNSUPPORTED, "type 4");
    REFUSED(m.dl_tensor.dtype.code = 5, TN_ERR_DTYPE, "code 5");
    REFUSED(m.dl_tensor.dtype.bits = 128, TN_ERR_DTYPE, "128 bits");
    REFUSED(m.dl_tensor.dtype.lanes = 4, TN_ERR_DTYPE, "4 lanes");
    REFUSED(m.dl_tensor.ndim = 13, TN_ERR_INVALID_ARGUMENT, "13 sizes");
    REFUSED(m.dl_tensor.ndim = -1, TN_ERR_INVALID_ARGUMENT, "-1 sizes");
    REFUSED(m.dl_tensor.shape = NULL, TN_ERR_INVALID_ARGUMENT, "at NULL");
    REFUSED(shape[0] = -1, TN_ERR_SHAPE, "[-1, 3]");
    REFUSED(shape[0] = INT64_MAX, TN_ERR_SHAPE, "63 bits");
    REFUSED(m.dl_tensor.data = NULL, TN_ERR_INVALID_ARGUMENT, "data is");
#undef REFUSED
    m = others();
    assert_null(tn_from_dlpack(&m, 3));
    assert_error(TN_ERR_INVALID_ARGUMENT, "3 is no tn_dlpack_copy", NULL);
    assert_null(tn_from_dlpack(NULL, 0));
    assert_error(TN_ERR_INVALID_ARGUMENT, "managed is NULL", NULL);
    assert_null(tn_from_dlpack_legacy(NULL, 0));
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_from_dlpack_legacy", NULL);
    strides[0] = INT64_MAX;
    assert_null(tn_from_dlpack(&m, TN_DLPACK_SHARE));
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
    assert_int_equal(n_deleted, 0);
}

/* ---- out and in again -------------------------------------------------------------------- */

static void what_tenon_shared_comes_back_on_any_device(void **state) {
    static const char *const names[] = {"cpu:0", "sim:0"};
    for (int i = 0; i < 4; i++) {
        tn_device device = tn_device_parse(names[i / 2]);
        tn_tensor *t = tn_from_data((float[]){0, 1, 2, 3}, TN_SHAPE(2, 2), TN_F32, device);
        tn_tensor *row = tn_select(t, 0, 1), *back, *copy;
        DLManagedTensorVersioned *m;
        DLManagedTensor *legacy;
        if (i % 2) {
            assert_int_equal(tn_to_dlpack_legacy(row, &legacy), TN_OK);
            back = tn_from_dlpack_legacy(legacy, TN_DLPACK_SHARE);
        } else {
            assert_int_equal(tn_to_dlpack(row, 0, &m), TN_OK);
            back = tn_from_dlpack(m, TN_DLPACK_SHARE);
        }
        assert_elements(back, (float[]){2, 3});
        assert_true(tn_shares_storage(t, back));
        tn_fill_(back, tn_int(9));
        assert_elements(t, (float[]){0, 1, 9, 9});
        assert_int_equal(tn_to_dlpack(row, DLPACK_FLAG_BITMASK_READ_ONLY, &m), TN_OK);
        assert_null(tn_from_dlpack(m, TN_DLPACK_SHARE));
        assert_error(TN_ERR_UNSUPPORTED, "read-only", NULL);
        copy = tn_from_dlpack(m, TN_DLPACK_COPY_IF_NEEDED);
        assert_elements(copy, (float[]){9, 9});
        assert_false(tn_shares_storage(t, copy));
        tn_scope_close(0);
        assert_int_equal(tni_tensors_alive(), 0);
    }
}

static void *end_it(void *managed) {
    DLManagedTensorVersioned *m = managed;
    m->deleter(m);
    return NULL;
}

static void a_consumer_may_end_it_in_any_thread(void **state) {
    DLManagedTensorVersioned *m;
    assert_int_equal(tn_to_dlpack(tn_ones(TN_SHAPE(4), TN_F32, cpu()), 0, &m), TN_OK);
    tn_scope_close(0);
    pthread_t thread;
    pthread_create(&thread, NULL, end_it, m);
    pthread_join(thread, NULL);
    assert_int_equal(tni_tensors_alive(), 0);
}

/* Every allocation fails in turn: an error, the other's tensor still the other's, nothing left. */
static bool exchange(int which) {
    static DLManagedTensorVersioned m; /* until its deleter is called, after this returns */
    DLManagedTensorVersioned *out = NULL;
    tn_tensor *t = NULL;
    m = others();
    if (which == 0) {
        t = tn_from_dlpack(&m, TN_DLPACK_SHARE);
    } else if (which == 1) {
        strides[0] = 1; /* not row-major: packed first */
        strides[1] = 2;
        t = tn_from_dlpack(&m, TN_DLPACK_COPY);
    } else if (tn_to_dlpack(tn_ones(TN_SHAPE(4), TN_F32, cpu()), 0, &out) == TN_OK) {
        t = tn_from_dlpack(out, which == 2 ? TN_DLPACK_SHARE : TN_DLPACK_COPY);
        if (!t)
            out->deleter(out);
    }
    assert_int_equal(n_deleted, which == 1 && t);
    return t != NULL;
}

static void every_failing_allocation_is_survived(void **state) {
    for (int which = 0; which < 4; which++) {
        for (uint64_t n = 1;; n++) {
            assert_int_equal(tn_shutdown(), TN_OK);
            assert_int_equal(cpu().index, 0); /* open: what that needs is another test's */
            tni_alloc_fail_at(n);
            bool done = exchange(which);
            bool whole = tni_alloc_fail_at(0) < n;
            tn_scope_close(0);
            assert_int_equal(n_deleted, done && which < 2);
            if (!done)
                assert_error(TN_ERR_OUT_OF_MEMORY, "memory", NULL);
            tn_error_clear();
            assert_int_equal(tni_tensors_alive(), 0);
            if (whole) {
                assert_true(done);
                break;
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_tensor_is_described),
        TEST(every_dtype_has_its_number),
        TEST(devices_have_numbers),
        TEST(what_cannot_be_handed_out_is_refused),
        TEST(others_memory_is_shared),
        TEST(what_cannot_be_shared_is_copied),
        TEST(validated_devices_get_a_copy),
        TEST(strides_that_mean_nothing_may_be_anything),
        TEST(what_cannot_be_taken_in_is_refused),
        TEST(what_tenon_shared_comes_back_on_any_device),
        TEST(a_consumer_may_end_it_in_any_thread),
        TEST(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
