/* Dtypes that are stored, moved and converted only, on devices whose kernels know none of them: elements
 * stay the bits that they were, and become what PyTorch makes of them. */
#include "tests/core/ops_test.h"

static char device_name[32];

static int on_named_device(void **state) {
    void *name = *device_name ? device_name : *state;
    return on_device(&name);
}

/* On the CPU and the chip, or on the device that the program was given. */
#define STORAGE_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, on_named_device, leave_device, "cpu:0"), \
        cmocka_unit_test_prestate_setup_teardown(name, on_named_device, leave_device, "sim:0")

static const tn_dtype stored[] = {TN_U16, TN_U32, TN_U64, TN_C64, TN_C128};
enum { N_STORED = sizeof stored / sizeof *stored, ROOM = 64 };

/* Every bit pattern is an element, NaNs with a payload among them. */
static tn_tensor *random_bits(tn_dtype dtype, tn_ints shape, uint64_t seed, uint8_t *out) {
    uint64_t n = (uint64_t)tn_dtype_size(dtype);
    for (int64_t d = 0; d < shape.n; d++)
        n *= (uint64_t)shape.data[d];
    assert_true(n <= ROOM * 16);
    for (uint64_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        out[i] = (uint8_t)(seed >> 56 | (i % 8 > 5 ? 0x78 : 0));
    }
    return tn_from_data(out, shape, dtype, dev);
}

/* t's elements are those of `data` at the positions that `places` (i64, of t's shape) has; -1 is zero. */
static void check_moved(tn_tensor *t, tn_tensor *places, const uint8_t *data, tn_dtype dtype,
                        const char *what) {
    if (!t || !places)
        fail_msg("%s of %s: %s", what, tn_dtype_name(dtype), tn_error_message());
    assert_int_equal(tn_dtype_of(t), dtype);
    int64_t n = tn_numel(t), item = tn_dtype_size(dtype);
    assert_int_equal(n, tn_numel(places));
    assert_true(n <= 4 * ROOM);
    int64_t at[4 * ROOM];
    uint8_t got[4 * ROOM * 16];
    const uint8_t zero[16] = {0};
    assert_int_equal(tn_to_host(places, at, (uint64_t)n * sizeof *at), TN_OK);
    assert_int_equal(tn_to_host(t, got, (uint64_t)(n * item)), TN_OK);
    for (int64_t i = 0; i < n; i++)
        if (memcmp(got + i * item, at[i] < 0 ? zero : data + at[i] * item, (size_t)item) != 0)
            fail_msg("%s of %s: element %lld is not the one from place %lld", what,
                     tn_dtype_name(dtype), (long long)i, (long long)at[i]);
}

/* ---- what moves -------------------------------------------------------------------------- */

static tn_tensor *clone(tn_tensor *t) {
    return tn_clone(t);
}
static tn_tensor *transposed(tn_tensor *t) {
    return tn_contiguous(tn_transpose(t, 0, 1));
}
static tn_tensor *sliced(tn_tensor *t) {
    return tn_slice(tn_slice(t, 1, 1, TN_NO_INT, 2), 0, 1, 3);
}
static tn_tensor *flipped(tn_tensor *t) {
    return tn_flip(t, TN_SHAPE(0, -1));
}
static tn_tensor *rolled(tn_tensor *t) {
    return tn_roll(t, TN_SHAPE(5), TN_SHAPE(1));
}
static tn_tensor *repeated(tn_tensor *t) {
    return tn_repeat(tn_narrow(t, 1, 0, 2), TN_SHAPE(2, 3));
}
static tn_tensor *expanded(tn_tensor *t) {
    return tn_contiguous(tn_expand(tn_unsqueeze(tn_select(t, 1, 2), 1), TN_SHAPE(-1, 3)));
}
static tn_tensor *joined(tn_tensor *t) {
    tn_tensor *all[] = {tn_narrow(t, 0, 1, 2), t, tn_narrow(t, 0, 0, 0)};
    return tn_cat(all, 3, 0);
}
static tn_tensor *stacked(tn_tensor *t) {
    tn_tensor *both[] = {t, tn_flip(t, TN_SHAPE(1))};
    return tn_stack(both, 2, -1);
}
static tn_tensor *selected(tn_tensor *t) {
    return tn_index_select(tn_transpose(t, 0, 1), 0, of(TN_I64, TN_SHAPE(4), 6, 0, 0, 3));
}
static tn_tensor *gathered(tn_tensor *t) {
    return tn_gather(t, 1, of(TN_I64, TN_SHAPE(2, 3), 6, 0, 1, 3, 3, 2));
}
static tn_tensor *taken(tn_tensor *t) {
    return tn_take(t, of(TN_I64, TN_SHAPE(4), 20, -1, 0, 7));
}
static tn_tensor *indexed(tn_tensor *t) {
    tn_tensor *places = of(TN_I64, TN_SHAPE(2, 1), -1, 2);
    tn_tensor *mask = of(TN_BOOL, TN_SHAPE(7), 1, 0, 0, 1, 1, 0, 0);
    return tn_index(t, (tn_tensor *[]){places, mask}, 2);
}
static tn_tensor *mask_selected(tn_tensor *t) {
    return tn_masked_select(t, of(TN_BOOL, TN_SHAPE(3, 1), 0, 1, 1));
}
static tn_tensor *chosen(tn_tensor *t) {
    return tn_where(of(TN_BOOL, TN_SHAPE(3, 1), 1, 0, 1), t, tn_flip(t, TN_SHAPE(0)));
}
static tn_tensor *scattered(tn_tensor *t) {
    tn_tensor *index = of(TN_I64, TN_SHAPE(3, 2), 1, 4, 0, 0, 6, 5);
    return tn_scatter_src(t, 1, index, tn_flip(t, TN_SHAPE(1)));
}
static tn_tensor *index_copied(tn_tensor *t) {
    tn_tensor *source = tn_flip(tn_narrow(t, 0, 0, 2), TN_SHAPE(1));
    return tn_index_copy(t, 0, of(TN_I64, TN_SHAPE(2), 2, 0), source);
}
static tn_tensor *index_put(tn_tensor *t) {
    tn_tensor *places = of(TN_I64, TN_SHAPE(2), 2, 0);
    return tn_index_put(t, (tn_tensor *[]){places}, 1, tn_select(t, 0, 1), false);
}
static tn_tensor *mask_scattered(tn_tensor *t) {
    tn_tensor *mask = of(TN_BOOL, TN_SHAPE(7), 0, 1, 0, 1, 0, 0, 1);
    return tn_masked_scatter(t, mask, tn_flip(t, TN_SHAPE(0)));
}
static tn_tensor *slice_replaced(tn_tensor *t) {
    return tn_slice_scatter(t, tn_narrow(t, 1, 4, 3), 1, 0, 6, 2);
}
static tn_tensor *select_replaced(tn_tensor *t) {
    return tn_select_scatter(t, tn_select(t, 1, 3), 1, 0);
}
static tn_tensor *mask_filled(tn_tensor *t) {
    tn_tensor *one = tn_select(tn_select(t, 0, 1), 0, 4);
    return tn_masked_fill(t, of(TN_BOOL, TN_SHAPE(7), 0, 1, 0, 1, 0, 0, 1), one);
}
static tn_tensor *written(tn_tensor *t) {
    tn_tensor *copy = tn_clone(t);
    tn_copy_(tn_transpose(tn_narrow(copy, 1, 0, 3), 0, 1), tn_narrow(t, 1, 3, 3));
    return copy;
}
static tn_tensor *moved_within(tn_tensor *t) {
    tn_tensor *copy = tn_clone(t);
    tn_copy_(tn_narrow(copy, 1, 1, 6), tn_narrow(copy, 1, 0, 6));
    return copy;
}
static tn_tensor *as_the_cpu_has_it(tn_tensor *t) {
    tn_tensor *there = tn_to_device(tn_transpose(t, 0, 1), tn_device_parse("cpu:0"));
    return tn_to_device(tn_slice(there, 0, 0, TN_NO_INT, 2), dev);
}

static const struct {
    const char *name;
    tn_tensor *(*run)(tn_tensor *);
} movers[] = {
#define MOVER(name) \
    { #name, name }
    MOVER(clone),
    MOVER(transposed),
    MOVER(sliced),
    MOVER(flipped),
    MOVER(rolled),
    MOVER(repeated),
    MOVER(expanded),
    MOVER(joined),
    MOVER(stacked),
    MOVER(selected),
    MOVER(gathered),
    MOVER(taken),
    MOVER(indexed),
    MOVER(mask_selected),
    MOVER(chosen),
    MOVER(scattered),
    MOVER(index_copied),
    MOVER(index_put),
    MOVER(mask_scattered),
    MOVER(slice_replaced),
    MOVER(select_replaced),
    MOVER(mask_filled),
    MOVER(written),
    MOVER(moved_within),
    MOVER(as_the_cpu_has_it),
};

/* Each operator moves the elements as it moves the numbers of their places. */
static void elements_move_whole(void **state) {
    uint8_t data[ROOM * 16];
    for (int d = 0; d < N_STORED; d++) {
        for (size_t m = 0; m < sizeof movers / sizeof *movers; m++) {
            TN_SCOPE;
            tn_tensor *x = random_bits(stored[d], TN_SHAPE(3, 7), (uint64_t)d * 100 + m, data);
            tn_tensor *places = movers[m].run(counting(TN_I64, TN_SHAPE(3, 7)));
            check_moved(movers[m].run(x), places, data, stored[d], movers[m].name);
        }
    }
}

static tn_tensor *lower(tn_tensor *t) {
    return tn_tril(t);
}
static tn_tensor *filled_with_zero(tn_tensor *t) {
    return tn_masked_fill_scalar(t, of(TN_BOOL, TN_SHAPE(7), 0, 1, 0, 1, 0, 0, 1), tn_int(0));
}
static tn_tensor *padded(tn_tensor *t) {
    return tn_constant_pad_nd(t, TN_SHAPE(1, 2, 0, 1), tn_int(0));
}

static void zeros_come_in(void **state) {
    tn_tensor *(*const run[])(tn_tensor *) = {lower, filled_with_zero, padded};
    uint8_t data[ROOM * 16];
    for (int d = 0; d < N_STORED; d++) {
        for (size_t m = 0; m < sizeof run / sizeof *run; m++) {
            TN_SCOPE;
            tn_tensor *x = random_bits(stored[d], TN_SHAPE(3, 7), 5, data);
            /* places from 1 on, so that what becomes zero is told from place 0 */
            tn_tensor *places = run[m](tn_add_scalar(counting(TN_I64, TN_SHAPE(3, 7)), tn_int(1)));
            check_moved(run[m](x), tn_sub_scalar(places, tn_int(1)), data, stored[d], "zeros");
        }
    }
}

/* Fewer dimensions than one, and none of some. */
static void sizes_of_none_and_one(void **state) {
    for (int d = 0; d < N_STORED; d++) {
        TN_SCOPE;
        tn_tensor *none = tn_empty(TN_SHAPE(0, 3), stored[d], dev);
        assert_shape(tn_transpose(tn_clone(none), 0, 1), 3, 0);
        tn_tensor *both[] = {none, tn_zeros(TN_SHAPE(2, 3), stored[d], dev)};
        assert_shape(tn_cat(both, 2, 0), 2, 3);
        assert_shape(tn_to_dtype(none, TN_F32), 0, 3);
        tn_tensor *one = tn_full(TN_SCALAR_SHAPE, tn_int(7), stored[d], dev);
        double value;
        assert_int_equal(tn_item(tn_expand(one, TN_SCALAR_SHAPE), &value), TN_OK);
        assert_true(value == 7);
    }
}

/* ---- conversion: the numbers are PyTorch's on the CPU ------------------------------------ */

#define assert_data(t, type, ...) \
    check_data(t, (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}), __LINE__)
static void check_data(tn_tensor *t, const void *data, uint64_t bytes, int line) {
    char got[512];
    assert_true(bytes <= sizeof got);
    if (tn_to_host(t, got, bytes) != TN_OK || memcmp(got, data, bytes) != 0)
        fail_msg("line %d: %s", line, t ? tn_to_string(t) : tn_error_message());
}

static void integers_wrap(void **state) {
    tn_tensor *i = tn_from_data((const int64_t[]){-1, -(INT64_C(1) << 40) - 7, 70000, INT64_MIN},
                                TN_SHAPE(4), TN_I64, dev);
    assert_data(tn_to_dtype(i, TN_U16), uint16_t, 65535, 65529, 4464, 0);
    assert_data(tn_to_dtype(i, TN_U32), uint32_t, 4294967295, 4294967289, 70000, 0);
    assert_data(tn_to_dtype(i, TN_U64), uint64_t, UINT64_MAX, UINT64_C(18446742974197923833), 70000,
                UINT64_C(1) << 63);
    tn_tensor *small = tn_from_data((const int8_t[]){-1, -128, 127}, TN_SHAPE(3), TN_I8, dev);
    assert_data(tn_to_dtype(small, TN_U16), uint16_t, 65535, 65408, 127);
    assert_data(tn_to_dtype(small, TN_U64), uint64_t, UINT64_MAX, UINT64_MAX - 127, 127);
}

static void unsigned_numbers_are_not_negative(void **state) {
    tn_tensor *u16 =
        tn_from_data((const uint16_t[]){65535, 32768, 0, 300}, TN_SHAPE(4), TN_U16, dev);
    assert_data(tn_to_dtype(u16, TN_I64), int64_t, 65535, 32768, 0, 300);
    assert_data(tn_to_dtype(u16, TN_I32), int32_t, 65535, 32768, 0, 300);
    assert_data(tn_to_dtype(u16, TN_U64), uint64_t, 65535, 32768, 0, 300);
    assert_data(tn_to_dtype(u16, TN_I16), int16_t, -1, -32768, 0, 300);
    assert_data(tn_to_dtype(u16, TN_U8), uint8_t, 255, 0, 0, 44);
    assert_data(tn_to_dtype(u16, TN_BOOL), uint8_t, 1, 1, 0, 1);
    assert_data(tn_to_dtype(u16, TN_F32), float, 65535, 32768, 0, 300);
    assert_data(tn_to_dtype(tn_slice(u16, 0, 1, TN_NO_INT, 2), TN_F64), double, 32768, 300);
    tn_tensor *u32 =
        tn_from_data((const uint32_t[]){UINT32_MAX, 16777217}, TN_SHAPE(2), TN_U32, dev);
    assert_data(tn_to_dtype(u32, TN_I64), int64_t, 4294967295, 16777217);
    assert_data(tn_to_dtype(u32, TN_F32), float, 4294967296.f, 16777216.f);
    assert_data(tn_to_dtype(u32, TN_U16), uint16_t, 65535, 1);
    const uint64_t largest[] = {UINT64_MAX, (UINT64_C(1) << 63) + 1025, 0};
    tn_tensor *u64 = tn_from_data(largest, TN_SHAPE(3), TN_U64, dev);
    assert_data(tn_to_dtype(u64, TN_F64), double, 0x1p64, 0x1p63 + 2048, 0);
    assert_data(tn_to_dtype(u64, TN_I64), int64_t, -1, INT64_MIN + 1025, 0);
    assert_data(tn_to_dtype(u64, TN_BOOL), uint8_t, 1, 1, 0);
    assert_data(tn_to_dtype(u64, TN_C128), double, 0x1p64, 0, 0x1p63 + 2048, 0, 0, 0);
    /* between two floats: rounded once, up, which by way of a double would be the even one below */
    const uint64_t between[] = {(UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1};
    tn_tensor *odd = tn_from_data(between, TN_SHAPE(1), TN_U64, dev);
    assert_data(tn_to_dtype(odd, TN_F32), float, 0x1.000002p63f);
}

static void floats_are_truncated(void **state) {
    tn_tensor *f =
        tn_from_data((const double[]){-1, -3.7, 3e9, 70000.9, 0.5, 1e19}, TN_SHAPE(6), TN_F64, dev);
    assert_data(tn_to_dtype(f, TN_U64), uint64_t, UINT64_MAX, UINT64_MAX - 2, 3000000000u, 70000, 0,
                UINT64_C(10000000000000000000));
    tn_tensor *within = tn_narrow(f, 0, 0, 5);
    assert_data(tn_to_dtype(within, TN_U32), uint32_t, 4294967295, 4294967293, 3000000000u, 70000,
                0);
    assert_data(tn_to_dtype(tn_narrow(f, 0, 3, 2), TN_U16), uint16_t, 4464, 0);
}

static void complex_numbers_have_two_parts(void **state) {
    tn_tensor *f = tn_from_data((const float[]){1.5f, -2}, TN_SHAPE(2), TN_F32, dev);
    assert_data(tn_to_dtype(f, TN_C64), float, 1.5f, 0, -2, 0);
    assert_data(tn_to_dtype(f, TN_C128), double, 1.5, 0, -2, 0);
    const int64_t i[] = {-3, INT64_C(16777217)};
    assert_data(tn_to_dtype(tn_from_data(i, TN_SHAPE(2), TN_I64, dev), TN_C64), float, -3, 0,
                16777216, 0);
    const float z[] = {1.75f, 2, 0, -1, NAN, 0, -5.5f, 0};
    tn_tensor *c = tn_from_data(z, TN_SHAPE(4), TN_C64, dev);
    assert_data(tn_to_dtype(tn_narrow(c, 0, 0, 2), TN_F32), float, 1.75f, 0);
    assert_data(tn_to_dtype(tn_slice(c, 0, 1, 4, 2), TN_F64), double, 0, -5.5);
    assert_data(tn_to_dtype(tn_narrow(c, 0, 0, 2), TN_C128), double, 1.75, 2, 0, -1);
    assert_data(tn_to_dtype(tn_to_dtype(tn_narrow(c, 0, 0, 2), TN_C128), TN_C64), float, 1.75f, 2,
                0, -1);
    assert_data(tn_to_dtype(tn_slice(c, 0, 0, 4, 3), TN_I32), int32_t, 1, -5);
    assert_data(tn_to_dtype(tn_slice(c, 0, 0, 4, 3), TN_U64), uint64_t, 1, UINT64_MAX - 4);
    assert_data(tn_to_dtype(c, TN_BOOL), uint8_t, 1, 1, 1, 1);
    assert_data(tn_to_dtype(tn_zeros(TN_SHAPE(1), TN_C64, dev), TN_BOOL), uint8_t, 0);
    tn_tensor *b = tn_from_data((const uint8_t[]){1, 0}, TN_SHAPE(2), TN_BOOL, dev);
    assert_data(tn_to_dtype(b, TN_C64), float, 1, 0, 0, 0);
}

/* What a copy writes, and only that, whatever lies between. */
static void a_copy_converts_into_strides(void **state) {
    tn_tensor *c = tn_zeros(TN_SHAPE(2, 3), TN_C64, dev);
    tn_tensor *row = tn_from_data((const uint16_t[]){65535, 1, 2}, TN_SHAPE(3), TN_U16, dev);
    tn_copy_(c, row);
    assert_data(tn_select(c, 0, 1), float, 65535, 0, 1, 0, 2, 0);
    tn_copy_(tn_select(c, 1, 1), of(TN_F32, TN_SHAPE(2), 7, -8));
    assert_data(c, float, 65535, 0, 7, 0, 2, 0, 65535, 0, -8, 0, 2, 0);
    tn_tensor *u = tn_full(TN_SHAPE(2, 2), tn_int(-1), TN_U32, dev);
    tn_copy_(tn_select(u, 1, 0), of(TN_F32, TN_SHAPE(2), 5, 3e9));
    assert_data(u, uint32_t, 5, UINT32_MAX, 3000000000u, UINT32_MAX);
}

static void numbers_fill(void **state) {
    assert_data(tn_full(TN_SHAPE(2), tn_int(-1), TN_U16, dev), uint16_t, 65535, 65535);
    assert_data(tn_full(TN_SHAPE(1), tn_int(-1), TN_U64, dev), uint64_t, UINT64_MAX);
    assert_data(tn_full(TN_SHAPE(1), tn_float(1e19), TN_U64, dev), uint64_t,
                UINT64_C(10000000000000000000));
    assert_data(tn_full(TN_SHAPE(1), tn_float(2.5), TN_U16, dev), uint16_t, 2);
    assert_data(tn_full(TN_SHAPE(2), tn_float(1.5), TN_C64, dev), float, 1.5f, 0, 1.5f, 0);
    assert_data(tn_full(TN_SHAPE(1), tn_bool(true), TN_C128, dev), double, 1, 0);
    assert_data(tn_ones(TN_SHAPE(2), TN_U32, dev), uint32_t, 1, 1);
    assert_data(tn_zeros(TN_SHAPE(1), TN_C128, dev), double, 0, 0);
    assert_data(tn_linspace(tn_int(0), tn_int(1), 3, TN_C64, dev), float, 0, 0, 0.5f, 0, 1, 0);
    tn_tensor *c = tn_zeros(TN_SHAPE(2, 2), TN_C128, dev);
    tn_fill_(tn_select(c, 1, 1), tn_int(-4));
    assert_data(c, double, 0, 0, -4, 0, 0, 0, -4, 0);
    tn_zero_(tn_select(c, 0, 1));
    assert_data(c, double, 0, 0, -4, 0, 0, 0, 0, 0);
    assert_data(tn_masked_fill_scalar(c, of(TN_BOOL, TN_SHAPE(2), 0, 1), tn_float(2.5)), double, 0,
                0, 2.5, 0, 0, 0, 2.5, 0);
    assert_null(tn_full(TN_SHAPE(1), tn_float(0x1p64), TN_U64, dev));
    assert_error(TN_ERR_DTYPE, "tn_full: fill_value", "does not fit in u64", NULL);
}

/* ---- views of complex numbers ------------------------------------------------------------ */

static void parts_are_views(void **state) {
    const float z[] = {1, 2, 3, 4, 5, 6, 7, 8};
    tn_tensor *c = tn_from_data(z, TN_SHAPE(2, 2), TN_C64, dev);
    tn_tensor *t = tn_transpose(c, 0, 1);
    assert_tensor(tn_real(t), TN_F32, TN_SHAPE(2, 2), 0, 1, 5, 3, 7);
    assert_tensor(tn_imag(t), TN_F32, TN_SHAPE(2, 2), 0, 2, 6, 4, 8);
    tn_tensor *pairs = tn_view_as_real(t);
    assert_tensor(pairs, TN_F32, TN_SHAPE(2, 2, 2), 0, 1, 2, 5, 6, 3, 4, 7, 8);
    assert_strides(pairs, 2, 4, 1);
    assert_true(tn_shares_storage(pairs, c));
    tn_mul_scalar_(tn_imag(c), tn_int(-1));
    assert_data(tn_view_as_complex(pairs), float, 1, -2, 5, -6, 3, -4, 7, -8);
    assert_ptr_equal(tn_real(pairs), pairs);
    assert_null(tn_imag(pairs));
    assert_error(TN_ERR_DTYPE, "tn_imag: self is f32; it must be complex", NULL);
    assert_null(tn_view_as_complex(tn_transpose(pairs, 0, 2)));
    assert_error(TN_ERR_SHAPE, "tn_view_as_complex", "the last size must be 2", NULL);
    assert_null(tn_view_as_complex(tn_zeros(TN_SHAPE(2), TN_I32, dev)));
    assert_error(TN_ERR_DTYPE, "self is i32; it must be f32 or f64", NULL);
}

/* ---- values one by one ------------------------------------------------------------------- */

static void single_numbers_are_read(void **state) {
    double d;
    int64_t i;
    tn_tensor *u = tn_full(TN_SCALAR_SHAPE, tn_int(-1), TN_U64, dev);
    assert_int_equal(tn_item(u, &d), TN_OK);
    assert_true(d == 0x1p64);
    assert_int_equal(tn_item_i64(u, &i), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_item_i64: 18446744073709551615", NULL);
    assert_int_equal(tn_item_i64(tn_full(TN_SCALAR_SHAPE, tn_int(-1), TN_U32, dev), &i), TN_OK);
    assert_int_equal(i, UINT32_MAX);
    const double z[] = {2.5, 0, 1, -1};
    tn_tensor *c = tn_from_data(z, TN_SHAPE(2), TN_C128, dev);
    assert_int_equal(tn_item(tn_select(c, 0, 0), &d), TN_OK);
    assert_true(d == 2.5);
    assert_int_equal(tn_item(tn_select(c, 0, 1), &d), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "tn_item: the number is complex", "tn_to_host", NULL);
}

#define assert_text(t, text) check_text(t, text, __LINE__)
static void check_text(tn_tensor *t, const char *text, int line) {
    char *s = tn_to_string(tn_to_device(t, tn_device_parse("cpu:0")));
    if (!s || strcmp(s, text) != 0)
        fail_msg("line %d: %s", line, s ? s : tn_error_message());
    tn_string_free(s);
}

static void tensors_print_as_pytorch_prints_them(void **state) {
    const uint64_t u[] = {UINT64_MAX, 1};
    assert_text(tn_from_data(u, TN_SHAPE(2), TN_U64, dev),
                "tensor([18446744073709551615,                    1], dtype=u64)");
    const float z[] = {1, 2, 3.5f, -1};
    assert_text(tn_from_data(z, TN_SHAPE(2), TN_C64, dev), "tensor([1.0000+2.j, 3.5000-1.j])");
    const float odd[] = {NAN, 0, INFINITY, -0.0f};
    assert_text(tn_from_data(odd, TN_SHAPE(2), TN_C64, dev), "tensor([nan+0.j, inf-0.j])");
    const float large[] = {1e10f, 1, 2, 0};
    assert_text(tn_from_data(large, TN_SHAPE(2), TN_C64, dev),
                "tensor([1.0000e+10+1.j, 2.0000e+00+0.j])");
    const double w[] = {1, 2, 30, 0};
    assert_text(tn_from_data(w, TN_SHAPE(2), TN_C128, dev),
                "tensor([ 1.+2.j, 30.+0.j], dtype=c128)");
    assert_text(tn_from_data(z, TN_SCALAR_SHAPE, TN_C64, dev), "tensor(1.+2.j)");
}

static void equality_is_of_values(void **state) {
    bool same;
    uint8_t data[ROOM * 16];
    for (int d = 0; d < 3; d++) {
        tn_tensor *x = random_bits(stored[d], TN_SHAPE(3, 4), 9, data);
        assert_int_equal(tn_equal(x, tn_clone(x), &same), TN_OK);
        assert_true(same);
        assert_int_equal(tn_equal(x, tn_flip(x, TN_SHAPE(1)), &same), TN_OK);
        assert_false(same);
    }
    const float z[] = {0, 1}, y[] = {-0.0f, 1}, other[] = {0, 2}, nan[] = {0, NAN};
    const struct {
        const float *a, *b;
        bool same;
    } pairs[] = {{z, y, true}, {z, other, false}, {nan, nan, false}};
    for (int i = 0; i < 3; i++) {
        tn_tensor *a = tn_from_data(pairs[i].a, TN_SHAPE(1), TN_C64, dev);
        assert_int_equal(tn_equal(a, tn_from_data(pairs[i].b, TN_SHAPE(1), TN_C64, dev), &same),
                         TN_OK);
        assert_int_equal(same, pairs[i].same);
    }
}

/* ---- what there is not ------------------------------------------------------------------- */

static void nothing_is_computed(void **state) {
    for (int d = 0; d < N_STORED; d++) {
        TN_SCOPE;
        tn_tensor *x = tn_ones(TN_SHAPE(2), stored[d], dev);
        tn_tensor *f = tn_ones(TN_SHAPE(2), TN_F32, dev);
        const struct {
            const char *call;
            tn_tensor *result;
        } calls[] = {
            {"tn_add", tn_add(x, x)},
            {"tn_mul", (tn_error_clear(), tn_mul(f, x))},
            {"tn_sum", (tn_error_clear(), tn_sum(x))},
            {"tn_add_", (tn_error_clear(), tn_add_(x, f))},
            /* made of others, which could do with a real part, or with none */
            {"tn_softmax", (tn_error_clear(), tn_softmax(x, 0))},
            {"tn_hypot", (tn_error_clear(), tn_hypot(x, f))},
            {"tn_nan_to_num", (tn_error_clear(), tn_nan_to_num(x))},
            {"tn_shift", (tn_error_clear(), tn_bitwise_left_shift_tensor_scalar(x, tn_int(70)))},
            {"tn_neg", (tn_error_clear(), tn_neg(x))}};
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            assert_null(calls[i].result);
        assert_error(TN_ERR_DTYPE, "tn_neg: not defined for ", tn_dtype_name(stored[d]),
                     "convert it with tn_to_dtype first", NULL);
        assert_null(tn_set_requires_grad(x, true));
        assert_error(TN_ERR_DTYPE, "only floating dtypes have gradients", NULL);
        assert_null(tn_arange(tn_int(3), stored[d], dev));
        assert_error(TN_ERR_DTYPE, "tn_arange_start: not defined for ", NULL);
    }
    assert_null(tn_where_scalarother(of(TN_BOOL, TN_SHAPE(2), 1, 0),
                                     tn_ones(TN_SHAPE(2), TN_U16, dev), tn_float(0.5)));
    assert_error(TN_ERR_DTYPE, "got u16 and a floating number", NULL);
}

static void joined_tensors_promote_as_pytorch_does(void **state) {
    tn_tensor *f = of(TN_F32, TN_SHAPE(1), 2.5), *i = of(TN_I32, TN_SHAPE(1), -1);
    tn_tensor *u = tn_full(TN_SHAPE(1), tn_int(-1), TN_U16, dev);
    tn_tensor *c = tn_full(TN_SHAPE(1), tn_int(3), TN_C64, dev);
    tn_tensor *uf[] = {u, f}, *ci[] = {c, i}, *ui[] = {u, i}, *uc[] = {u, c};
    assert_data(tn_cat(uf, 2, 0), float, 65535, 2.5f);
    assert_data(tn_cat(ci, 2, 0), float, 3, 0, -1, 0);
    assert_null(tn_cat(ui, 2, 0));
    assert_error(TN_ERR_DTYPE, "tn_cat: the tensors' dtypes promote to none; convert them", NULL);
    assert_null(tn_cat(uc, 2, 0));
    assert_error(TN_ERR_DTYPE, "promote to none", NULL);
    tn_tensor *w = tn_full(TN_SHAPE(1), tn_int(1), TN_U32, dev);
    tn_tensor *three[] = {u, w, f}, *other[] = {u, f, w}, *bytes[] = {u, w, tn_to_dtype(i, TN_U8)};
    assert_null(tn_cat(three, 3, 0));
    assert_error(TN_ERR_DTYPE, "promote to none", NULL);
    assert_null(tn_cat(bytes, 3, 0));
    assert_error(TN_ERR_DTYPE, "promote to none", NULL);
    assert_data(tn_cat(other, 3, 0), float, 65535, 2.5f, 1);
}

/* A choice between two is like what joins them. */
static void chosen_elements_promote_as_joined_ones(void **state) {
    tn_tensor *mask = of(TN_BOOL, TN_SHAPE(2), 1, 0);
    tn_tensor *f = of(TN_F32, TN_SHAPE(2), 2.5, 3.5), *i = of(TN_I32, TN_SHAPE(2), -1, -2);
    tn_tensor *u = tn_full(TN_SHAPE(2), tn_int(-1), TN_U16, dev);
    tn_tensor *c = tn_from_data((const float[]){1, 2, 3, 4}, TN_SHAPE(2), TN_C64, dev);
    assert_data(tn_where(mask, u, f), float, 65535, 3.5f);
    assert_data(tn_where(mask, f, u), float, 2.5f, 65535);
    assert_data(tn_where(mask, c, i), float, 1, 2, -2, 0);
    assert_data(tn_where(mask, f, c), float, 2.5f, 0, 3, 4);
    tn_tensor *wide = tn_where(mask, of(TN_F64, TN_SHAPE(2), 5, 6), c);
    assert_int_equal(tn_dtype_of(wide), TN_C128);
    assert_data(wide, double, 5, 0, 3, 4);
    assert_int_equal(tn_dtype_of(tn_where(mask, c, tn_zeros(TN_SCALAR_SHAPE, TN_C128, dev))),
                     TN_C64);
    assert_int_equal(tn_dtype_of(tn_where(mask, f, tn_zeros(TN_SCALAR_SHAPE, TN_C128, dev))),
                     TN_C64);
    assert_null(tn_where(mask, u, i));
    assert_error(TN_ERR_DTYPE, "tn_where: the tensors' dtypes promote to none", NULL);
    assert_null(tn_where(mask, tn_to_dtype(u, TN_U32), u));
    assert_error(TN_ERR_DTYPE, "promote to none", NULL);
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(2), 1, 2));
    assert_int_equal(tn_backward(tn_sum(tn_where(mask, u, tn_mul(x, x)))), TN_OK);
    assert_data(tn_grad(x), float, 0, 4);
    assert_null(tn_where(mask, x, c));
    assert_error(TN_ERR_DTYPE, "requires a gradient", "take tn_detach of it", NULL);
}

/* Where no other element says so, a complex number does not lose half of itself. */
static void imaginary_parts_are_not_dropped(void **state) {
    tn_tensor *f = tn_zeros(TN_SHAPE(3), TN_F32, dev), *c = tn_ones(TN_SHAPE(3), TN_C64, dev);
    tn_tensor *one = tn_ones(TN_SCALAR_SHAPE, TN_C64, dev);
    assert_null(tn_slice_scatter(f, c, 0, 0, 3, 1));
    assert_error(TN_ERR_DTYPE, "tn_slice_scatter: src is c64, and self f32; take its real part",
                 NULL);
    assert_null(tn_select_scatter(f, one, 0, 1));
    assert_error(TN_ERR_DTYPE, "tn_select_scatter: src is c64", NULL);
    assert_null(tn_diagonal_scatter(tn_zeros(TN_SHAPE(3, 3), TN_F32, dev), c, 0, 0, 1));
    assert_error(TN_ERR_DTYPE, "tn_diagonal_scatter: src is c64", NULL);
    assert_null(tn_fill_tensor(f, one));
    assert_error(TN_ERR_DTYPE, "tn_fill_tensor: value is c64, and self f32", NULL);
    assert_null(tn_masked_fill(f, of(TN_BOOL, TN_SHAPE(3), 1, 0, 1), one));
    assert_error(TN_ERR_DTYPE, "tn_masked_fill: value is c64, and self f32", NULL);
    assert_data(tn_select_scatter(c, tn_zeros(TN_SCALAR_SHAPE, TN_F32, dev), 0, 1), float, 1, 0, 0,
                0, 1, 0);
}

static void gradients_do_not_vanish_in_complex_numbers(void **state) {
    tn_tensor *x = requiring_grad(tn_ones(TN_SHAPE(2), TN_F32, dev));
    assert_null(tn_to_dtype(x, TN_C64));
    assert_error(TN_ERR_DTYPE, "requires a gradient", "take tn_detach of it", NULL);
    assert_null(tn_copy_(tn_zeros(TN_SHAPE(2), TN_C64, dev), x));
    assert_error(TN_ERR_DTYPE, "tn_copy_: a tensor that requires a gradient becomes c64", NULL);
    tn_tensor *both[] = {x, tn_zeros(TN_SHAPE(2), TN_C64, dev)};
    assert_null(tn_cat(both, 2, 0));
    assert_error(TN_ERR_DTYPE, "tn_cat: a tensor that requires a gradient becomes c64", NULL);
    assert_null(tn_view_as_complex(x));
    assert_error(TN_ERR_DTYPE, "tn_view_as_complex: self requires a gradient", NULL);
    assert_non_null(tn_to_dtype(tn_detach(x), TN_C64));
    assert_false(tn_requires_grad(tn_to_dtype(x, TN_U16)));
}

/* An index of an unsigned dtype is one of integers; a complex one is none. */
static void indices_are_converted(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(4));
    tn_tensor *index = tn_to_dtype(of(TN_I64, TN_SHAPE(2), 3, 0), TN_U32);
    assert_elements(tn_index_select(x, 0, index), TN_SHAPE(2), 3, 0);
    assert_null(tn_index_select(x, 0, tn_to_dtype(index, TN_C64)));
    assert_error(TN_ERR_DTYPE, "index must be an integer tensor, but is c64", NULL);
    assert_elements(tn_index_add(x, 0, index, counting(TN_F32, TN_SHAPE(2))), TN_SHAPE(4), 1, 1, 2,
                    3);
    assert_null(tn_index_add(x, 0, tn_to_dtype(index, TN_C64), x));
    assert_error(TN_ERR_DTYPE, "tn_index_add: not defined for c64", NULL);
}

/* So is one of what is made of others. */
static void indices_of_composites_are_converted(void **state) {
    static const tn_dtype dtypes[] = {TN_U16, TN_U32, TN_U64};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        tn_tensor *x = counting(TN_F32, TN_SHAPE(4)), *y = of(TN_F32, TN_SHAPE(2), 8, 9);
        tn_tensor *index = tn_to_dtype(of(TN_I64, TN_SHAPE(2), 3, 0), dtypes[d]);
        assert_elements(tn_take(x, index), TN_SHAPE(2), 3, 0);
        assert_elements(tn_take_along_dim(x, index, 0), TN_SHAPE(2), 3, 0);
        assert_elements(tn_scatter_src(x, 0, index, y), TN_SHAPE(4), 9, 1, 2, 8);
        assert_elements(tn_scatter_value(x, 0, index, tn_int(7)), TN_SHAPE(4), 7, 1, 2, 7);
        assert_elements(tn_index_copy(x, 0, index, y), TN_SHAPE(4), 9, 1, 2, 8);
        assert_elements(tn_scatter_reduce_two(x, 0, index, y, "sum", true), TN_SHAPE(4), 9, 1, 2,
                        11);
        assert_elements(tn_index_put(x, &index, 1, y, false), TN_SHAPE(4), 9, 1, 2, 8);
        assert_elements(tn_index(x, &index, 1), TN_SHAPE(2), 3, 0);
    }
    /* what i64 has no room for is beyond the end, and not counted from it */
    tn_tensor *x = counting(TN_F32, TN_SHAPE(4)),
              *last = tn_full(TN_SHAPE(1), tn_int(-1), TN_U64, dev);
    tn_take(x, last);
    tn_synchronize(dev);
    assert_error(TN_ERR_INDEX_OUT_OF_RANGE, "9223372036854775807", NULL);
    assert_null(tn_take(x, tn_to_dtype(last, TN_C64)));
    assert_error(TN_ERR_DTYPE, "tn_take: index is c64; it must be i64 or i32, or unsigned", NULL);
}

/* Backward is given the index that forward had. */
static void gradients_go_by_indices(void **state) {
    static const tn_dtype dtypes[] = {TN_U16, TN_U32, TN_U64};
    for (int i = 0; i < 3; i++) {
        tn_tensor *x = requiring_grad(counting(TN_F32, TN_SHAPE(3)));
        tn_tensor *index = tn_to_dtype(of(TN_I64, TN_SHAPE(3), 2, 0, 2), dtypes[i]);
        assert_ok(tn_backward(tn_sum(tn_index_select(x, 0, index))));
        assert_elements(tn_grad(x), TN_SHAPE(3), 1, 0, 2);
        tn_tensor *y = requiring_grad(counting(TN_F32, TN_SHAPE(3)));
        assert_ok(tn_backward(tn_sum(tn_gather(y, 0, index))));
        assert_elements(tn_grad(y), TN_SHAPE(3), 1, 0, 2);
    }
}

int main(int argc, char **argv) {
    if (!device_named(argc, argv, device_name))
        return 77;
    const struct CMUnitTest tests[] = {
        STORAGE_TEST(elements_move_whole),
        STORAGE_TEST(zeros_come_in),
        STORAGE_TEST(sizes_of_none_and_one),
        STORAGE_TEST(integers_wrap),
        STORAGE_TEST(unsigned_numbers_are_not_negative),
        STORAGE_TEST(floats_are_truncated),
        STORAGE_TEST(complex_numbers_have_two_parts),
        STORAGE_TEST(a_copy_converts_into_strides),
        STORAGE_TEST(numbers_fill),
        STORAGE_TEST(parts_are_views),
        STORAGE_TEST(single_numbers_are_read),
        STORAGE_TEST(tensors_print_as_pytorch_prints_them),
        STORAGE_TEST(equality_is_of_values),
        STORAGE_TEST(nothing_is_computed),
        STORAGE_TEST(joined_tensors_promote_as_pytorch_does),
        STORAGE_TEST(chosen_elements_promote_as_joined_ones),
        STORAGE_TEST(imaginary_parts_are_not_dropped),
        STORAGE_TEST(gradients_do_not_vanish_in_complex_numbers),
        STORAGE_TEST(indices_are_converted),
        STORAGE_TEST(indices_of_composites_are_converted),
        STORAGE_TEST(gradients_go_by_indices),
    };
    return cmocka_run_group_tests_name("storage dtypes", tests, NULL, NULL);
}
