/* See numbers.h. */
#include "tests/nn/numbers.h"

tn_status read_number(void *user, int64_t index, void *const *out) {
    numbers *n = user;
    atomic_fetch_add(&n->n_reads, 1);
    *(int64_t *)out[0] = 10 * index;
    ((float *)out[1])[0] = (float)index;
    ((float *)out[1])[1] = (float)index + 0.5f;
    if (index != atomic_load(&n->fails_at))
        return TN_OK;
    return n->text ? tn_fail(n->status, "%s", n->text) : n->status;
}

tn_dataset dataset_of(numbers *n, int64_t length) {
    *n = (numbers){.fails_at = -1, .status = TN_ERR_IO, .text = "a page is torn out"};
    tn_dataset d = {.length = length, .n_fields = 2, .read = read_number, .user = n};
    d.fields[0] = tn_data_field_of(TN_I64, TN_SCALAR_SHAPE);
    d.fields[1] = tn_data_field_of(TN_F32, TN_SHAPE(2));
    return d;
}

tn_data_loader *loader_of(const tn_dataset *d, tn_data_loader_options options) {
    options.device = dev;
    tn_data_loader *l = tn_data_loader_create(d, &options);
    if (!l)
        fail_msg("%s", tn_error_message());
    return l;
}

void check_batch(const tn_data_batch *b) {
    assert_int_equal(b->n_fields, 2);
    assert_true(tn_device_equal(tn_device_of(b->fields[0]), dev));
    assert_shape(b->fields[0], b->n);
    assert_shape(b->fields[1], b->n, 2);
    double *first = values_of(b->fields[0]), *second = values_of(b->fields[1]);
    for (int64_t i = 0; i < b->n; i++) {
        double index = (double)b->indices[i];
        assert_true(first[i] == 10 * index);
        assert_true(second[2 * i] == index && second[2 * i + 1] == index + 0.5);
    }
    free(first);
    free(second);
}

void follow(tn_data_loader *l, int n_calls, trace *out) {
    *out = (trace){0};
    for (int i = 0; i < n_calls; i++) {
        TN_SCOPE;
        tn_data_batch b;
        assert_ok(tn_data_loader_next(l, &b));
        if (b.n)
            check_batch(&b);
        for (int64_t k = 0; k < b.n; k++)
            out->at[out->n++] = b.indices[k];
        if (b.n == 0)
            out->at[out->n++] = -1;
        assert_true(out->n < MANY - 32);
    }
}

void assert_same_trace(const trace *a, const trace *b) {
    check_ints(tn_ints_of(a->at, a->n), tn_ints_of(b->at, b->n), __FILE__, __LINE__);
}

tn_status draw(void *user, int64_t index, tn_data_random *random, const void *const *in,
               void *const *out) {
    double *to = out[0];
    assert_int_equal(*(const int64_t *)in[0], 10 * index);
    to[0] = (double)index;
    to[1] = tn_data_random_uniform(random);
    to[2] = (double)tn_data_random_below(random, 1000);
    if (index == *(int64_t *)user)
        return tn_fail(TN_ERR_UNSUPPORTED, "sample with a beard");
    return TN_OK;
}

tn_data_loader_options drawing(int64_t *fails_at) {
    tn_data_loader_options o = {.batch_size = 4,
                                .shuffle = true,
                                .seed = 9,
                                .transform = draw,
                                .user = fails_at,
                                .n_fields = 1};
    o.fields[0] = tn_data_field_of(TN_F64, TN_SHAPE(3));
    return o;
}
