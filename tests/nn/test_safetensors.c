/* Files that are as they should be: of every dtype, shape and device, ours and Python's. */
#include "tests/nn/nn_test.h"

#include <sys/stat.h>

static const tn_dtype every_dtype[] = {TN_F64, TN_F32, TN_F16,  TN_BF16, TN_I64, TN_I32, TN_I16,
                                       TN_I8,  TN_U8,  TN_BOOL, TN_U16,  TN_U32, TN_U64, TN_C64};
enum { N_DTYPES = sizeof every_dtype / sizeof every_dtype[0] };

static tn_safetensors *opened(const char *path) {
    tn_safetensors *file = tn_safetensors_open(path);
    assert_string_equal(tn_error_message(), "");
    assert_non_null(file);
    return file;
}

static tn_safetensors_info info_of(const tn_safetensors *file, uint64_t i) {
    tn_safetensors_info info = {.struct_size = sizeof info};
    assert_ok(tn_safetensors_get_info(file, i, &info));
    return info;
}

static void every_dtype_comes_back_bit_by_bit(void **state) {
    const char *path = file_path("dtypes");
    tn_named_tensor tensors[N_DTYPES];
    for (int i = 0; i < N_DTYPES; i++) {
        bool is_bool = every_dtype[i] == TN_BOOL;
        tensors[i].name = tn_dtype_name(every_dtype[i]);
        tensors[i].tensor = of(every_dtype[i], TN_SHAPE(2, 2), 1, 0, is_bool ? 1 : 3, 0);
    }
    assert_ok(tn_safetensors_write(path, tensors, N_DTYPES, NULL, 0));
    tn_safetensors *file = opened(path);
    assert_int_equal(tn_safetensors_count(file), N_DTYPES);
    for (int i = 0; i < N_DTYPES; i++) {
        tn_tensor *t = tn_safetensors_read(file, tensors[i].name, dev);
        assert_true(tn_device_equal(tn_device_of(t), dev));
        assert_same(t, tensors[i].tensor);
    }
    tn_safetensors_close(file);
}

static void bits_that_no_number_names_are_kept(void **state) {
    const char *path = file_path("nan");
    const uint32_t bits[] = {0x7fc12345, 0xff800000, 0x80000000, 0x00000001};
    tn_named_tensor t = {"x", tn_from_data(bits, TN_SHAPE(4), TN_F32, dev)};
    assert_ok(tn_safetensors_write(path, &t, 1, NULL, 0));
    tn_safetensors *file = opened(path);
    uint32_t back[4];
    assert_ok(tn_to_host(tn_safetensors_read(file, "x", dev), back, sizeof back));
    assert_memory_equal(back, bits, sizeof bits);
    tn_safetensors_close(file);
}

static void empty_and_rank_0_tensors_and_other_strides_come_back(void **state) {
    const char *path = file_path("shapes");
    tn_tensor *x = noise(TN_F32, TN_SHAPE(3, 4), 1);
    tn_named_tensor tensors[] = {
        {"scalar", of(TN_F64, TN_SCALAR_SHAPE, 2.5)},
        {"empty", tn_zeros(TN_SHAPE(0, 3), TN_F32, dev)},
        {"transposed", tn_t(x)},
        {"broadcast", tn_expand(of(TN_I32, TN_SHAPE(1), 7), TN_SHAPE(5))},
        {"part", tn_slice(x, 1, 1, 4, 2)},
        {"", of(TN_U8, TN_SHAPE(1), 9)},
    };
    uint64_t n = sizeof tensors / sizeof tensors[0];
    assert_ok(tn_safetensors_write(path, tensors, n, NULL, 0));
    tn_safetensors *file = opened(path);
    for (uint64_t i = 0; i < n; i++)
        assert_same(tn_safetensors_read(file, tensors[i].name, dev), tensors[i].tensor);

    tn_tensor *all[6];
    assert_ok(tn_safetensors_read_all(file, dev, all, n));
    for (uint64_t i = 0; i < n; i++)
        assert_same(all[i], tn_safetensors_read(file, info_of(file, i).name, dev));
    tn_safetensors_close(file);
}

static void a_file_without_tensors_is_one(void **state) {
    const char *path = file_path("none");
    assert_ok(tn_safetensors_write(path, NULL, 0, NULL, 0));
    tn_safetensors *file = opened(path);
    assert_int_equal(tn_safetensors_count(file), 0);
    assert_int_equal(tn_safetensors_metadata_count(file), 0);
    assert_int_equal(tn_safetensors_find(file, "x"), -1);
    assert_ok(tn_safetensors_read_all(file, dev, NULL, 0));
    tn_safetensors_close(file);
}

static void metadata_comes_back_in_the_order_of_its_keys(void **state) {
    const char *path = file_path("metadata");
    const tn_key_value given[] = {{"model", "mlp \"2\""}, {"format", "pt"}, {"\xc3\xa4", ""}};
    assert_ok(tn_safetensors_write(path, NULL, 0, given, 3));
    tn_safetensors *file = opened(path);
    assert_int_equal(tn_safetensors_metadata_count(file), 3);
    assert_string_equal(tn_safetensors_metadata(file, "model"), "mlp \"2\"");
    assert_string_equal(tn_safetensors_metadata(file, "\xc3\xa4"), "");
    assert_null(tn_safetensors_metadata(file, "other"));
    const char *key, *value;
    assert_ok(tn_safetensors_metadata_at(file, 0, &key, &value));
    assert_string_equal(key, "format");
    assert_string_equal(value, "pt");
    assert_int_equal(tn_safetensors_metadata_at(file, 3, &key, &value), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, path, "no entry 3", NULL);
    tn_safetensors_close(file);
}

/* data/every_dtype.safetensors is of Python's safetensors 0.8: tests/nn/data/generate.py. */
static void a_file_of_python_is_read_and_written_again_byte_for_byte(void **state) {
    tn_safetensors *file = opened(data_path("every_dtype.safetensors"));
    assert_string_equal(tn_safetensors_metadata(file, "format"), "np");
    assert_int_equal(tn_safetensors_count(file), 13);
    assert_tensor(tn_safetensors_read(file, "f32", dev), TN_F32, TN_SHAPE(3, 2), 0, -1, -0.75, -0.5,
                  -0.25, 0, 0.25);
    assert_tensor(tn_safetensors_read(file, "bf16", dev), TN_BF16, TN_SHAPE(6), 0, -1, -0.75, -0.5,
                  -0.25, 0, 0.25);
    assert_tensor(tn_safetensors_read(file, "i64", dev), TN_I64, TN_SHAPE(6), 0, -3, -2, -1, 0, 1,
                  2);
    assert_tensor(tn_safetensors_read(file, "u8", dev), TN_U8, TN_SHAPE(6), 0, 250, 251, 252, 253,
                  254, 255);
    assert_tensor(tn_safetensors_read(file, "bool", dev), TN_BOOL, TN_SHAPE(6), 0, 0, 1, 0, 1, 0,
                  1);
    assert_tensor(tn_safetensors_read(file, "scalar", dev), TN_F32, TN_SCALAR_SHAPE, 0, 2.5);

    tn_tensor *all[13];
    tn_named_tensor tensors[13];
    assert_ok(tn_safetensors_read_all(file, dev, all, 13));
    for (uint64_t i = 0; i < 13; i++)
        tensors[i] = (tn_named_tensor){info_of(file, 12 - i).name, all[12 - i]};
    tn_key_value metadata = {"format", "np"};
    assert_ok(tn_safetensors_write(file_path("again"), tensors, 13, &metadata, 1));
    tn_safetensors_close(file);

    size_t n_theirs, n_ours;
    char *theirs = read_file(data_path("every_dtype.safetensors"), &n_theirs);
    char *ours = read_file(file_path("again"), &n_ours);
    assert_int_equal(n_ours, n_theirs);
    assert_memory_equal(ours, theirs, n_ours);
    free(theirs);
    free(ours);
}

static void a_dtype_that_tenon_lacks_is_refused_by_name_and_the_others_are_read(void **state) {
    const char *path = data_path("float8.safetensors");
    tn_safetensors *file = opened(path);
    tn_safetensors_info a = info_of(file, (uint64_t)tn_safetensors_find(file, "a"));
    assert_string_equal(a.dtype_name, "F8_E4M3");
    assert_int_equal(a.dtype, TN_DTYPE_NONE);
    assert_int_equal(a.bytes, 3);
    assert_fails(tn_safetensors_read(file, "a", dev), TN_ERR_UNSUPPORTED, path, "'a'", "F8_E4M3");
    tn_tensor *all[2] = {(tn_tensor *)1, (tn_tensor *)1};
    uint64_t held = tn_scope_held();
    assert_int_equal(tn_safetensors_read_all(file, dev, all, 2), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "F8_E4M3", NULL);
    assert_true(!all[0] && !all[1] && tn_scope_held() == held);
    assert_tensor(tn_safetensors_read(file, "b", dev), TN_F32, TN_SHAPE(1), 0, 1.5);
    tn_safetensors_close(file);
}

static void a_storage_dtype_of_python_is_read(void **state) {
    tn_safetensors *file = opened(data_path("uint32.safetensors"));
    assert_tensor(tn_safetensors_read(file, "a", dev), TN_U32, TN_SHAPE(3), 0, 1, 2, 3);
    tn_safetensors_close(file);
}

static void a_dtype_that_the_format_lacks_is_refused(void **state) {
    tn_named_tensor t = {"z", tn_zeros(TN_SHAPE(2), TN_C128, dev)};
    assert_true(tn_safetensors_write(file_path("c128"), &t, 1, NULL, 0) != TN_OK);
    assert_error(TN_ERR_UNSUPPORTED, "'z'", "c128", NULL);
}

static void what_is_not_there_is_named(void **state) {
    const char *path = file_path("none");
    assert_fails(tn_safetensors_open(file_path("absent")), TN_ERR_NOT_FOUND, "absent",
                 "check the path");
    assert_fails(tn_safetensors_open("/tmp"), TN_ERR_IO, "/tmp", "regular file");
    assert_fails(tn_safetensors_open(NULL), TN_ERR_INVALID_ARGUMENT, "path");
    tn_safetensors *file = opened(path);
    assert_fails(tn_safetensors_read(file, "layer.weight", dev), TN_ERR_NOT_FOUND, path,
                 "layer.weight");
    tn_safetensors_info info = {.struct_size = sizeof info};
    assert_int_equal(tn_safetensors_get_info(file, 0, &info), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, path, "no tensor 0", NULL);
    tn_safetensors_close(file);
    tn_safetensors_close(NULL);
}

static void refuses_to_write(tn_named_tensor a, tn_named_tensor b, tn_key_value metadata,
                             tn_status status, const char *why) {
    const char *path = file_path("kept");
    int files = n_files();
    assert_int_equal(tn_safetensors_write(path, (tn_named_tensor[]){a, b}, 2, &metadata, 1),
                     status);
    assert_error(status, path, why, NULL);
    assert_int_equal(n_files(), files);
}

static void what_cannot_be_written_leaves_the_old_file_and_no_other(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(1), 4);
    tn_named_tensor good = {"x", x};
    tn_key_value fine = {"a", "b"};
    assert_ok(tn_safetensors_write(file_path("kept"), &good, 1, NULL, 0));
    refuses_to_write(good, good, fine, TN_ERR_INVALID_ARGUMENT, "'x' is there twice");
    refuses_to_write(good, (tn_named_tensor){NULL, x}, fine, TN_ERR_INVALID_ARGUMENT, "no name");
    refuses_to_write(good, (tn_named_tensor){"y", NULL}, fine, TN_ERR_INVALID_ARGUMENT, "'y'");
    refuses_to_write(good, (tn_named_tensor){"\xff", x}, fine, TN_ERR_INVALID_ARGUMENT, "UTF-8");
    refuses_to_write(good, (tn_named_tensor){"__metadata__", x}, fine, TN_ERR_INVALID_ARGUMENT,
                     "__metadata__");
    refuses_to_write(good, (tn_named_tensor){"y", x}, (tn_key_value){"k", "\xed\xa0\x80"},
                     TN_ERR_INVALID_ARGUMENT, "UTF-8");
    refuses_to_write(good, (tn_named_tensor){"y", x}, (tn_key_value){"k", NULL},
                     TN_ERR_INVALID_ARGUMENT, "NULL");
    tn_safetensors *file = opened(file_path("kept"));
    assert_tensor(tn_safetensors_read(file, "x", dev), TN_F32, TN_SHAPE(1), 0, 4);
    tn_safetensors_close(file);

    int files = n_files();
    assert_int_equal(tn_safetensors_write(file_path("absent/x"), &good, 1, NULL, 0), TN_ERR_IO);
    assert_error(TN_ERR_IO, "absent/x", "No such file", NULL);
    assert_int_equal(tn_safetensors_write(file_path("."), &good, 1, NULL, 0), TN_ERR_IO);
    assert_error(TN_ERR_IO, "renamed", NULL);
    assert_int_equal(n_files(), files);
}

static void an_open_file_is_the_old_one_after_another_was_written(void **state) {
    tn_named_tensor t = {"x", of(TN_F32, TN_SHAPE(1), 1)};
    const char *path = file_path("replaced");
    assert_ok(tn_safetensors_write(path, &t, 1, NULL, 0));
    tn_safetensors *old = opened(path);
    t.tensor = of(TN_F32, TN_SHAPE(1), 2);
    assert_ok(tn_safetensors_write(path, &t, 1, NULL, 0));
    tn_safetensors *new = opened(path);
    assert_tensor(tn_safetensors_read(old, "x", dev), TN_F32, TN_SHAPE(1), 0, 1);
    assert_tensor(tn_safetensors_read(new, "x", dev), TN_F32, TN_SHAPE(1), 0, 2);
    tn_safetensors_close(old);
    tn_safetensors_close(new);
}

static void a_file_that_shrinks_while_it_is_open_is_an_error(void **state) {
    tn_named_tensor t = {"x", tn_zeros(TN_SHAPE(4096, 4), TN_F32, dev)};
    const char *path = file_path("shrinks");
    assert_ok(tn_safetensors_write(path, &t, 1, NULL, 0));
    tn_safetensors *file = opened(path);
    assert_int_equal(truncate(path, 100), 0);
    assert_fails(tn_safetensors_read(file, "x", dev), TN_ERR_IO, path, "became shorter");
    tn_safetensors_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(every_dtype_comes_back_bit_by_bit),
        OPS_TEST(bits_that_no_number_names_are_kept),
        OPS_TEST(empty_and_rank_0_tensors_and_other_strides_come_back),
        OPS_TEST(a_file_without_tensors_is_one),
        OPS_TEST(metadata_comes_back_in_the_order_of_its_keys),
        OPS_TEST(a_file_of_python_is_read_and_written_again_byte_for_byte),
        OPS_TEST(a_dtype_that_tenon_lacks_is_refused_by_name_and_the_others_are_read),
        OPS_TEST(a_storage_dtype_of_python_is_read),
        OPS_TEST(a_dtype_that_the_format_lacks_is_refused),
        OPS_TEST(what_is_not_there_is_named),
        OPS_TEST(what_cannot_be_written_leaves_the_old_file_and_no_other),
        OPS_TEST(an_open_file_is_the_old_one_after_another_was_written),
        OPS_TEST(a_file_that_shrinks_while_it_is_open_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
