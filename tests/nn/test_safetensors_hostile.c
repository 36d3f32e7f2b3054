/* Files that are not as they should be: each is refused, and the error says why. */
#include "tests/nn/nn_test.h"

typedef struct hostile {
    const char *json;
    size_t n_data; /* bytes behind the header */
    const char *why;
} hostile;

/* One tensor "a" of what is given. */
#define A(dtype, shape, offsets) \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
/* Two of four bytes each, at `first` and `second`. */
#define TWO(first, second) \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":" first "}," \
    "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":" second "}}"

static const hostile files[] = {
    /* no JSON object in UTF-8 */
    {"", 0, "does not start with '{'"},
    {" {}", 0, "does not start with '{'"},
    {"[]", 0, "does not start with '{'"},
    {"{", 0, "header is not as it must be"},
    {"{}{}", 0, "header is not as it must be"},
    {"{\"a\":", 0, "header is not as it must be"},
    {"{\"\xff\":{}}", 0, "header is not as it must be"},
    {"{\"\xed\xa0\x80\":{}}", 0, "header is not as it must be"},
    {"{\"a\\u0000b\":{}}", 0, "header is not as it must be"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0, "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
     "duplicate"},
    /* members that are missing or of another kind */
    {"{\"a\":7}", 0, "'a' has no dtype"},
    {"{\"a\":{}}", 0, "'a' has no dtype"},
    {"{\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,0]}}", 0, "'a' has no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no list as its shape"},
    {A("F32", "{}", "[0,4]"), 4, "no list as its shape"},
    {A("F32", "[1.0]", "[0,4]"), 4, "size 0 of tensor 'a'"},
    {A("F32", "[1,-1]", "[0,4]"), 4, "size 1 of tensor 'a'"},
    {A("F32", "[\"1\"]", "[0,4]"), 4, "size 0 of tensor 'a'"},
    {A("F32", "[9223372036854775808]", "[0,4]"), 4, "too big"},
    {A("f32", "[1]", "[0,4]"), 4, "'f32', which the format does not have"},
    {A("F32", "[1]", "[0]"), 4, "data_offsets of tensor 'a'"},
    {A("F32", "[1]", "[0,4,8]"), 4, "data_offsets of tensor 'a'"},
    {A("F32", "[1]", "{}"), 4, "data_offsets of tensor 'a'"},
    {A("F32", "[1]", "[-4,0]"), 4, "data_offsets of tensor 'a'"},
    {A("F32", "[1]", "[0,true]"), 4, "data_offsets of tensor 'a'"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is no object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "'k' of __metadata__ is no string"},
    /* sizes that do not fit */
    {A("F32", "[2]", "[0,4]"), 4, "'a' has 4 bytes, and its shape and F32 make 8"},
    {A("F32", "[0]", "[0,4]"), 4, "its shape and F32 make 0"},
    {A("F32", "[]", "[0,0]"), 0, "its shape and F32 make 4"},
    {A("F64", "[4611686018427387904]", "[0,0]"), 0, "more bytes than there can be"},
    {A("U8", "[4294967296,4294967296]", "[0,0]"), 0, "more bytes than there can be"},
    {A("F4", "[3]", "[0,1]"), 1, "a part of one"},
    /* offsets */
    {A("F32", "[1]", "[4,0]"), 4, "runs backwards"},
    {A("F32", "[1]", "[0,4]"), 3, "ends at byte 4 of 3"},
    {A("F32", "[1]", "[9223372036854775803,9223372036854775807]"), 4, "ends at byte"},
    {A("F32", "[1]", "[0,4]"), 5, "end at byte 4, and 5 are there"},
    {A("F32", "[1]", "[4,8]"), 8, "no tensor has bytes 0 to 4, before 'a'"},
    {TWO("[0,4]", "[0,4]"), 4, "'a' and 'b' overlap at byte 0"},
    {TWO("[2,6]", "[0,4]"), 6, "'b' and 'a' overlap at byte 2"},
    {TWO("[0,4]", "[5,9]"), 9, "no tensor has bytes 4 to 5, before 'b'"},
    {"{}", 1, "end at byte 0, and 1 are there"},
};

static void refused(const char *path, tn_status status, const char *why) {
    assert_fails(tn_safetensors_open(path), status, "tn_safetensors_open: ", path, why);
}

static void every_header_that_is_wrong_is_refused_with_the_reason(void **state) {
    const char *path = file_path("hostile");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        write_header(path, files[i].json, files[i].n_data);
        refused(path, TN_ERR_IO, files[i].why);
    }
    write_header(path, A("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1);
    refused(path, TN_ERR_UNSUPPORTED, "'a' has 13 dimensions; Tenon has at most 12");
}

static void what_is_odd_but_right_is_taken(void **state) {
    static const char *const right[] = {
        "{}     ",
        "{\"__metadata__\":{}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}",
        A("F4", "[8]", "[0,4]"),
        A("F6_E2M3", "[4]", "[0,3]"),
        A("U8", "[0,9223372036854775807,9223372036854775807]", "[0,0]"),
    };
    static const size_t n_data[] = {0, 0, 4, 4, 3, 0};
    const char *path = file_path("odd");
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        write_header(path, right[i], n_data[i]);
        tn_safetensors *file = tn_safetensors_open(path);
        assert_string_equal(tn_error_message(), "");
        assert_non_null(file);
        tn_safetensors_close(file);
    }
}

static void tensors_at_any_address_are_read(void **state) {
    const char *path = file_path("unaligned");
    write_header(path, TWO("[1,5]", "[5,9]"), 9); /* a byte too much: made right below */
    refused(path, TN_ERR_IO, "no tensor has bytes 0 to 1");
    write_header(path,
                 "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                 "\"y\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[1,5]}}",
                 5);
    tn_safetensors *file = tn_safetensors_open(path);
    assert_tensor(tn_safetensors_read(file, "y", dev), TN_I16, TN_SHAPE(2), 0, 1, 1);
    tn_safetensors_close(file);
}

static void a_bool_that_is_none_is_refused(void **state) {
    const char *path = file_path("bool");
    write_header(path, A("BOOL", "[2]", "[0,2]"), 2);
    FILE *out = fopen(path, "r+b");
    fseek(out, -1, SEEK_END);
    fputc(2, out);
    fclose(out);
    tn_safetensors *file = tn_safetensors_open(path);
    assert_fails(tn_safetensors_read(file, "a", dev), TN_ERR_INVALID_ARGUMENT, "bool", "0 or 1");
    tn_safetensors_close(file);
}

static void lengths_that_are_wrong_are_refused(void **state) {
    const char *path = file_path("length");
    write_bytes(path, "", 0);
    refused(path, TN_ERR_IO, "has 0 bytes");
    write_bytes(path, "\2\0\0\0\0\0\0", 7);
    refused(path, TN_ERR_IO, "has 7 bytes");
    write_bytes(path, "\2\0\0\0\0\0\0\0{", 9);
    refused(path, TN_ERR_IO, "cut short: its header has 2 bytes, and 1 are there");
    write_bytes(path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    refused(path, TN_ERR_IO, "18446744073709551615 bytes, more than");
    write_bytes(path, "\1\xe1\xf5\5\0\0\0\0{}", 10); /* 100,000,001 */
    refused(path, TN_ERR_IO, "more than the 100000000");
    write_bytes(path, "\0\xe1\xf5\5\0\0\0\0{}", 10); /* 100,000,000 */
    refused(path, TN_ERR_IO, "cut short");
}

static void every_file_that_is_cut_short_is_refused(void **state) {
    const char *path = file_path("cut");
    size_t n;
    char *bytes = read_file(data_path("every_dtype.safetensors"), &n);
    for (size_t length = 0; length < n; length++) {
        write_bytes(path, bytes, length);
        refused(path, TN_ERR_IO, "");
    }
    free(bytes);
}

static void no_wrong_byte_of_a_header_does_harm(void **state) {
    const char *path = file_path("wrong_byte");
    size_t n;
    char *bytes = read_file(data_path("uint32.safetensors"), &n);
    for (size_t at = 0; at < n; at++) {
        char right = bytes[at];
        for (int wrong = 0; wrong < 256; wrong += 85) {
            bytes[at] = (char)wrong;
            write_bytes(path, bytes, n);
            tn_safetensors *file = tn_safetensors_open(path);
            for (uint64_t i = 0; i < tn_safetensors_count(file); i++) {
                TN_SCOPE;
                tn_safetensors_info info = {.struct_size = sizeof info};
                assert_ok(tn_safetensors_get_info(file, i, &info));
                tn_safetensors_read(file, info.name, dev);
                tn_error_clear();
            }
            tn_error_clear();
            tn_safetensors_close(file);
        }
        bytes[at] = right;
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(every_header_that_is_wrong_is_refused_with_the_reason),
        OPS_TEST(what_is_odd_but_right_is_taken),
        OPS_TEST(tensors_at_any_address_are_read),
        OPS_TEST(a_bool_that_is_none_is_refused),
        OPS_TEST(lengths_that_are_wrong_are_refused),
        OPS_TEST(every_file_that_is_cut_short_is_refused),
        OPS_TEST(no_wrong_byte_of_a_header_does_harm),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
