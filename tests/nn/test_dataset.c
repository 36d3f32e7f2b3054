/* Datasets of tensors and files, and what they and loaders refuse. */
#include "tests/nn/numbers.h"

/* ---- datasets ---------------------------------------------------------------------------- */

static void tensors_are_a_dataset_wherever_they_are(void **state) {
    TN_SCOPE;
    tn_tensor *x = counting(TN_F32, TN_SHAPE(4, 2, 3)), *y = of(TN_I64, TN_SHAPE(4), 7, 8, 9, 10);
    tn_tensor *z = tn_zeros(TN_SHAPE(4, 0), TN_F32, dev);
    tn_tensor *tensors[] = {tn_to_device(x, dev), tn_transpose(tn_to_device(x, dev), 1, 2),
                            tn_to_device(y, dev), z};
    tn_dataset d;
    assert_ok(tn_dataset_init_tensors(&d, tensors, 4));
    assert_int_equal(d.length, 4);
    assert_int_equal(d.fields[1].sizes[0], 3);
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 3, .n_workers = 1});
    tn_data_batch b;
    assert_ok(tn_data_loader_next(l, &b));
    assert_ok(tn_data_loader_next(l, &b));
    assert_same(b.fields[0], tn_narrow(tensors[0], 0, 3, 1));
    assert_same(b.fields[1], tn_contiguous(tn_narrow(tensors[1], 0, 3, 1)));
    assert_elements(b.fields[2], TN_SHAPE(1), 10);
    assert_shape(b.fields[3], 1, 0);
    tn_data_loader_destroy(l);
    tn_dataset_finish(&d);
    assert_int_equal(d.length, 0);
    tn_dataset_finish(&d);
    tn_dataset_finish(NULL);
}

static void tensors_that_do_not_fit_are_refused(void **state) {
    tn_dataset d;
    tn_tensor *x = tn_ones(TN_SHAPE(4, 2), TN_F32, dev), *short_one = tn_ones(TN_SHAPE(3)),
              *number = tn_ones(TN_SCALAR_SHAPE);
    const struct {
        tn_tensor *tensors[2];
        uint64_t n;
        tn_status status;
        const char *says;
    } wrong[] = {
        {{x, short_one}, 2, TN_ERR_SHAPE, "tensor 1 has a first size of 3"},
        {{number, x}, 1, TN_ERR_SHAPE, "tensor 0 has a rank of 0"},
        {{x, NULL}, 2, TN_ERR_INVALID_ARGUMENT, "tensor 1 is NULL"},
        {{TN_NONE, x}, 2, TN_ERR_INVALID_ARGUMENT, "tensor 0 is TN_NONE"},
        {{x}, 0, TN_ERR_INVALID_ARGUMENT, "0 tensors"},
        {{x}, 9, TN_ERR_INVALID_ARGUMENT, "9 tensors; it takes 1 to 8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(&d, 1, sizeof d);
        assert_int_equal(tn_dataset_init_tensors(&d, wrong[i].tensors, wrong[i].n),
                         wrong[i].status);
        assert_error(wrong[i].status, "tn_dataset_init_tensors", wrong[i].says, NULL);
        assert_true(d.length == 0 && !d.read);
    }
    assert_int_equal(tn_dataset_init_tensors(&d, NULL, 2), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "at NULL", NULL);
    assert_int_equal(tn_dataset_init_tensors(NULL, &x, 1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "dataset is NULL", NULL);
    tn_tensor *empty = tn_ones(TN_SHAPE(0, 2), TN_F32, dev); /* is one, of nothing */
    assert_ok(tn_dataset_init_tensors(&d, &empty, 1));
    assert_null(tn_data_loader_create(&d, &(tn_data_loader_options){.batch_size = 1}));
    assert_error(TN_ERR_INVALID_ARGUMENT, "has 0 samples", NULL);
    tn_dataset_finish(&d);
    tn_tensor *on_meta = tn_ones(TN_SHAPE(4), TN_F32, tn_device_parse("meta"));
    assert_int_equal(tn_dataset_init_tensors(&d, &on_meta, 1), TN_ERR_UNSUPPORTED);
    tn_error_clear();
}

static void idx_files_are_a_dataset(void **state) {
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4},
                         labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 5};
    write_bytes(file_path("images"), images, sizeof images);
    write_bytes(file_path("labels"), labels, sizeof labels);
    tn_dataset d;
    const char *paths[] = {file_path("images"), file_path("labels")};
    assert_ok(tn_dataset_init_idx(&d, paths, 2));
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 2});
    tn_data_batch b;
    assert_ok(tn_data_loader_next(l, &b));
    assert_int_equal(tn_dtype_of(b.fields[0]), TN_U8);
    assert_elements(b.fields[0], TN_SHAPE(2, 1, 2), 1, 2, 3, 4);
    assert_elements(b.fields[1], TN_SHAPE(2), 9, 5);
    tn_data_loader_destroy(l);
    tn_dataset_finish(&d);

    paths[1] = "/nowhere";
    assert_int_equal(tn_dataset_init_idx(&d, paths, 2), TN_ERR_NOT_FOUND);
    assert_error(TN_ERR_NOT_FOUND, "/nowhere", NULL);
    paths[1] = NULL;
    assert_int_equal(tn_dataset_init_idx(&d, paths, 2), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "path", NULL);
    assert_int_equal(tn_dataset_init_idx(&d, paths, 0), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "0 paths", NULL);
}

/* Two bytes, a label, four pixels. */
static tn_data_records small_records(void) {
    tn_data_records r = {.header_bytes = 2, .record_bytes = 5, .n_fields = 2, .offsets = {1, 0}};
    r.fields[0] = tn_data_field_of(TN_I16, TN_SHAPE(2));
    r.fields[1] = tn_data_field_of(TN_U8, TN_SCALAR_SHAPE);
    return r;
}

static const char *const *three_files(void) {
    static const char *paths[3];
    write_bytes(paths[0] = file_path("a"), "hd\1\2\0\3\0\2\4\0\5\0", 12);
    write_bytes(paths[1] = file_path("b"), "hd", 2);
    write_bytes(paths[2] = file_path("c"), "hd\3\6\0\7\1", 7);
    return paths;
}

static void records_of_files_are_a_dataset(void **state) {
    tn_data_records r = small_records();
    tn_dataset d;
    assert_ok(tn_dataset_init_records(&d, three_files(), 3, &r));
    assert_int_equal(d.length, 3);
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 3, .n_workers = 2});
    tn_data_batch b;
    assert_ok(tn_data_loader_next(l, &b));
    assert_elements(b.fields[0], TN_SHAPE(3, 2), 2, 3, 4, 5, 6, 263);
    assert_elements(b.fields[1], TN_SHAPE(3), 1, 2, 3);
    tn_data_loader_destroy(l);

    /* One that is cut while it is in use. */
    write_bytes(file_path("c"), "hd\3\6", 4);
    l = loader_of(&d, (tn_data_loader_options){.batch_size = 3});
    assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_IO);
    assert_error(TN_ERR_IO, "sample 2: ", "/c became shorter", NULL);
    tn_data_loader_destroy(l);
    tn_dataset_finish(&d);
}

static void files_and_records_that_do_not_fit_are_refused(void **state) {
    tn_dataset d;
    tn_data_records r = small_records();
    const char *const *paths = three_files();
    const char *folder[] = {"/tmp"}, *missing[] = {"/nowhere"}, *null[] = {paths[0], NULL};
    assert_int_equal(tn_dataset_init_records(&d, folder, 1, &r), TN_ERR_IO);
    assert_error(TN_ERR_IO, "/tmp is no regular file", NULL);
    assert_int_equal(tn_dataset_init_records(&d, missing, 1, &r), TN_ERR_NOT_FOUND);
    assert_error(TN_ERR_NOT_FOUND, "/nowhere does not exist", NULL);
    assert_int_equal(tn_dataset_init_records(&d, null, 2, &r), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "path 1 is NULL", NULL);
    static const struct {
        uint64_t header, record, offset, n_fields;
        int64_t size;
        tn_status status;
        const char *says;
    } wrong[] = {
        {2, 4, 0, 2, 2, TN_ERR_SHAPE, "field 0 has 4 bytes from byte 1; a record has 4"},
        {2, 5, 6, 2, 2, TN_ERR_SHAPE, "field 1 has 1 bytes from byte 6"},
        {2, 5, UINT64_MAX, 2, 2, TN_ERR_SHAPE, "field 1 has 1 bytes"},
        {2, 0, 0, 2, 2, TN_ERR_INVALID_ARGUMENT, "records of 0 bytes"},
        {2, UINT64_MAX, 0, 2, 2, TN_ERR_INVALID_ARGUMENT, "below 2^63"},
        {UINT64_MAX, 5, 0, 2, 2, TN_ERR_INVALID_ARGUMENT, "below 2^63"},
        {1, 5, 0, 2, 2, TN_ERR_IO, "has 12 bytes, which is no header of 1 and a whole number"},
        {13, 5, 0, 2, 2, TN_ERR_IO, "which is no header of 13"},
        {2, 5, 0, 0, 2, TN_ERR_INVALID_ARGUMENT, "a record has 0 fields"},
        {2, 5, 0, 9, 2, TN_ERR_INVALID_ARGUMENT, "a record has 9 fields"},
        {2, 5, 0, 2, -1, TN_ERR_SHAPE, "size 0 of field 0 of a record is -1"},
        {2, 5, 0, 2, INT64_MAX, TN_ERR_SHAPE, "size 0 of field 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        r = small_records();
        r.header_bytes = wrong[i].header;
        r.record_bytes = wrong[i].record;
        r.offsets[1] = wrong[i].offset;
        r.n_fields = (uint32_t)wrong[i].n_fields;
        r.fields[0].sizes[0] = wrong[i].size;
        memset(&d, 1, sizeof d);
        assert_int_equal(tn_dataset_init_records(&d, paths, 3, &r), wrong[i].status);
        assert_error(wrong[i].status, "tn_dataset_init_records: ", wrong[i].says, NULL);
        assert_true(d.length == 0 && !d.read);
    }
    r = small_records();
    assert_int_equal(tn_dataset_init_records(NULL, paths, 3, &r), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    assert_int_equal(tn_dataset_init_records(&d, NULL, 3, &r), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    assert_int_equal(tn_dataset_init_records(&d, paths, 3, NULL), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    assert_int_equal(tn_dataset_init_records(&d, paths, UINT64_MAX, &r), TN_ERR_OUT_OF_MEMORY);
    tn_error_clear();
}

/* ---- options ----------------------------------------------------------------------------- */

static void options_that_are_absurd_are_refused(void **state) {
    numbers n;
    tn_data_field no_shape = tn_data_field_of(TN_F32, tn_no_ints());
    tn_data_field huge = tn_data_field_of(TN_F32, TN_SHAPE(INT64_C(1) << 40, INT64_C(1) << 18));
    tn_data_field no_dtype = tn_data_field_of((tn_dtype)99, TN_SHAPE(2));
    const struct {
        tn_data_loader_options options;
        int64_t length;
        const char *says;
        tn_status status;
    } wrong[] = {
        {{0}, 5, "batch_size is 0", TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = -1}, 5, "batch_size is -1", TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1}, 0, "has 0 samples", TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1}, -5, "has -5 samples", TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 6, .drop_last = true},
         5,
         "leaves no batch of 6 of 5",
         TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .n_workers = 257}, 5, "n_workers is 257", TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .n_workers = UINT32_MAX}, 5, "at most 256", TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .n_workers = 1, .prefetch = 1025},
         5,
         "prefetch 1025",
         TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .prefetch = 2},
         5,
         "prefetch is 2 without workers",
         TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .n_fields = 1},
         5,
         "no transform that makes them",
         TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .transform = draw, .n_fields = 9},
         5,
         "the transform has 9 fields",
         TN_ERR_INVALID_ARGUMENT},
        {{.batch_size = 1, .transform = draw, .n_fields = 1, .fields = {no_shape}},
         5,
         "a shape that is none",
         TN_ERR_SHAPE},
        {{.batch_size = 1, .transform = draw, .n_fields = 1, .fields = {no_dtype}},
         5,
         "of no dtype (99)",
         TN_ERR_DTYPE},
        {{.batch_size = 100, .transform = draw, .n_fields = 1, .fields = {huge}},
         500,
         "more than any memory has",
         TN_ERR_OUT_OF_MEMORY},
        {{.batch_size = 1, .transform = draw, .n_fields = 1, .fields = {huge}},
         5,
         "pinned memory",
         TN_ERR_OUT_OF_MEMORY},
        {{.batch_size = 1, .device = {99, 0}}, 5, "", TN_ERR_DEVICE},
        {{.batch_size = 1, .device = tn_device_parse("meta")}, 5, "", TN_ERR_UNSUPPORTED},
        {{.batch_size = 1, .shuffle = true},
         INT64_MAX,
         "no memory for a loader",
         TN_ERR_OUT_OF_MEMORY},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_dataset d = dataset_of(&n, wrong[i].length);
        if (tn_data_loader_create(&d, &wrong[i].options))
            fail_msg("case %d was taken", (int)i);
        assert_error(wrong[i].status, wrong[i].says, NULL);
        assert_int_equal(n.n_reads, 0);
    }
    tn_dataset d = dataset_of(&n, 5);
    tn_data_loader_options o = {.batch_size = 1};
    assert_null(tn_data_loader_create(NULL, &o));
    assert_error(TN_ERR_INVALID_ARGUMENT, "NULL", NULL);
    assert_null(tn_data_loader_create(&d, NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "NULL", NULL);
    assert_null(tn_data_loader_create(&(tn_dataset){0}, &o));
    assert_error(TN_ERR_INVALID_ARGUMENT, "no read function", NULL);
    d.n_fields = 0;
    assert_null(tn_data_loader_create(&d, &o));
    assert_error(TN_ERR_INVALID_ARGUMENT, "the dataset has 0 fields", NULL);
}

static void null_is_refused_by_name(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 5);
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 1});
    tn_data_batch b;
    tn_data_loader_state at;
    assert_int_equal(tn_data_loader_next(NULL, &b), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_next: loader is NULL", NULL);
    assert_int_equal(tn_data_loader_next(l, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_next: out is NULL", NULL);
    assert_int_equal(tn_data_loader_get_state(NULL, &at), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_get_state", NULL);
    assert_int_equal(tn_data_loader_get_state(l, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_get_state", NULL);
    assert_int_equal(tn_data_loader_set_state(NULL, &at), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_set_state", NULL);
    assert_int_equal(tn_data_loader_set_state(l, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_set_state", NULL);
    assert_true(tn_data_loader_samples(NULL) == 0 && tn_data_loader_batches(NULL) == 0);
    tn_data_loader_destroy(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(tensors_are_a_dataset_wherever_they_are),
        OPS_TEST(tensors_that_do_not_fit_are_refused),
        OPS_TEST(idx_files_are_a_dataset),
        OPS_TEST(records_of_files_are_a_dataset),
        OPS_TEST(files_and_records_that_do_not_fit_are_refused),
        OPS_TEST(options_that_are_absurd_are_refused),
        OPS_TEST(null_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
