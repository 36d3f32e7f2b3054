/* Datasets and loaders: what comes in which order, for any number of workers; errors, states, ends. */
#define _GNU_SOURCE
#include "tests/nn/nn_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <tenon/data.h>
#include <unistd.h>

/* ---- a dataset of numbers ---------------------------------------------------------------- */

/* Sample i is the number 10 i, and {i, i + 0.5}. */
typedef struct numbers {
    atomic_int n_reads;
    _Atomic int64_t fails_at; /* -1: nowhere */
    tn_status status;
    const char *text; /* NULL: tn_fail is not called */
} numbers;

static tn_status read_number(void *user, int64_t index, void *const *out) {
    numbers *n = user;
    atomic_fetch_add(&n->n_reads, 1);
    *(int64_t *)out[0] = 10 * index;
    ((float *)out[1])[0] = (float)index;
    ((float *)out[1])[1] = (float)index + 0.5f;
    if (index != atomic_load(&n->fails_at))
        return TN_OK;
    return n->text ? tn_fail(n->status, "%s", n->text) : n->status;
}

static tn_dataset dataset_of(numbers *n, int64_t length) {
    *n = (numbers){.fails_at = -1, .status = TN_ERR_IO, .text = "a page is torn out"};
    tn_dataset d = {.length = length, .n_fields = 2, .read = read_number, .user = n};
    d.fields[0] = tn_data_field_of(TN_I64, TN_SCALAR_SHAPE);
    d.fields[1] = tn_data_field_of(TN_F32, TN_SHAPE(2));
    return d;
}

static tn_data_loader *loader_of(const tn_dataset *d, tn_data_loader_options options) {
    options.device = dev;
    tn_data_loader *l = tn_data_loader_create(d, &options);
    if (!l)
        fail_msg("%s", tn_error_message());
    return l;
}

/* The batch is made of samples indices[0 .. n). */
static void check_batch(const tn_data_batch *b) {
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

enum { MANY = 256 };

/* What a loader gave: the samples' numbers, -1 at the end of each epoch. */
typedef struct trace {
    int64_t n, at[MANY];
} trace;

static void follow(tn_data_loader *l, int n_calls, trace *out) {
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

#define assert_trace(t, ...) \
    check_ints(tn_ints_of((t)->at, (t)->n), TN_SHAPE(__VA_ARGS__), __FILE__, __LINE__)

static void assert_same_trace(const trace *a, const trace *b) {
    check_ints(tn_ints_of(a->at, a->n), tn_ints_of(b->at, b->n), __FILE__, __LINE__);
}

/* ---- random numbers ---------------------------------------------------------------------- */

static void random_numbers_are_philoxs(void **state) {
    tn_data_random r = tn_data_random_of(0, 0, 0); /* the authors' test vectors */
    assert_true(tn_data_random_bits(&r) == UINT64_C(0xe169c58d6627e8d5));
    assert_true(tn_data_random_bits(&r) == UINT64_C(0x9b00dbd8bc57ac4c));
    r = (tn_data_random){UINT64_MAX, -1, -1, 2 * UINT64_C(0xffffffff)};
    assert_true(tn_data_random_bits(&r) == UINT64_C(0x41c83b0e408f276d));
    assert_true(tn_data_random_bits(&r) == UINT64_C(0x6d5451fda20bc7c6));
    int counts[5] = {0};
    double sum = 0;
    for (int i = 0; i < 5000; i++) {
        counts[tn_data_random_below(&r, 5)]++;
        double u = tn_data_random_uniform(&r);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(counts[i], 900, 1100);
    assert_true(fabs(sum / 5000 - 0.5) < 0.02);
    assert_int_equal(tn_data_random_below(&r, 1), 0);
    assert_int_equal(tn_data_random_below(&r, -7), 0);
    assert_true(tn_data_random_below(&r, INT64_MAX) >= 0);
    assert_true(tn_data_random_bits(NULL) == 0 && tn_data_random_below(NULL, 9) == 0);
}

/* ---- order ------------------------------------------------------------------------------- */

static const uint32_t worker_counts[] = {0, 1, 4};

static void batches_come_in_order_and_an_epoch_ends(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 7);
    for (int i = 0; i < 3; i++) {
        trace t;
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 3, .n_workers = worker_counts[i]});
        assert_int_equal(tn_data_loader_samples(l), 7);
        assert_int_equal(tn_data_loader_batches(l), 3);
        follow(l, 8, &t);
        assert_trace(&t, 0, 1, 2, 3, 4, 5, 6, -1, 0, 1, 2, 3, 4, 5, 6, -1);
        tn_data_loader_destroy(l);

        l = loader_of(&d, (tn_data_loader_options){
                              .batch_size = 3, .drop_last = true, .n_workers = worker_counts[i]});
        assert_int_equal(tn_data_loader_samples(l), 6);
        assert_int_equal(tn_data_loader_batches(l), 2);
        follow(l, 5, &t);
        assert_trace(&t, 0, 1, 2, 3, 4, 5, -1, 0, 1, 2, 3, 4, 5);
        tn_data_loader_state at;
        assert_ok(tn_data_loader_get_state(l, &at));
        assert_int_equal(at.epoch, 1);
        assert_int_equal(at.position, 6);
        tn_data_loader_destroy(l);

        /* More than there are: all of them. */
        l = loader_of(&d, (tn_data_loader_options){.batch_size = INT64_MAX / 2,
                                                   .n_workers = worker_counts[i]});
        assert_int_equal(tn_data_loader_batches(l), 1);
        follow(l, 3, &t);
        assert_trace(&t, 0, 1, 2, 3, 4, 5, 6, -1, 0, 1, 2, 3, 4, 5, 6);
        tn_data_loader_destroy(l);
    }
}

static void a_shuffled_epoch_has_each_sample_once_in_an_order_of_its_seed(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 20);
    trace t[4];
    const uint64_t seeds[] = {3, 3, 4, 0};
    tn_manual_seed(3); /* what 0 stands for */
    for (int i = 0; i < 4; i++) {
        tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 6,
                                                                   .shuffle = true,
                                                                   .seed = seeds[i],
                                                                   .n_workers = (uint32_t)i % 2});
        follow(l, 10, &t[i]);
        tn_data_loader_destroy(l);
        assert_int_equal(t[i].n, 42);
        for (int epoch = 0; epoch < 2; epoch++) {
            uint32_t seen = 0;
            for (int k = 0; k < 20; k++)
                seen |= 1u << t[i].at[21 * epoch + k];
            assert_int_equal(seen, (1u << 20) - 1);
            assert_int_equal(t[i].at[21 * epoch + 20], -1);
        }
    }
    assert_same_trace(&t[0], &t[1]);
    assert_same_trace(&t[0], &t[3]);
    assert_memory_not_equal(t[0].at, t[2].at, 20 * sizeof(int64_t));
    assert_memory_not_equal(t[0].at, t[0].at + 21, 20 * sizeof(int64_t));
    /* As tests/resnet/reference.py counts them, and as every version has to. */
    trace first = {20, {0}};
    memcpy(first.at, t[0].at, 20 * sizeof(int64_t));
    assert_trace(&first, 4, 17, 9, 12, 11, 8, 6, 16, 0, 3, 10, 15, 13, 1, 19, 5, 18, 2, 14, 7);
}

/* ---- transforms -------------------------------------------------------------------------- */

/* Three halves of chance, and the number. */
static tn_status draw(void *user, int64_t index, tn_data_random *random, const void *const *in,
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

static tn_data_loader_options drawing(int64_t *fails_at) {
    tn_data_loader_options o = {.batch_size = 4,
                                .shuffle = true,
                                .seed = 9,
                                .transform = draw,
                                .user = fails_at,
                                .n_fields = 1};
    o.fields[0] = tn_data_field_of(TN_F64, TN_SHAPE(3));
    return o;
}

/* All batches of three epochs, one below the other. */
static double *all_drawn(tn_data_loader *l, int64_t *out_n) {
    double *all = malloc(3 * 13 * 3 * sizeof *all);
    *out_n = 0;
    for (int i = 0; i < 15; i++) {
        TN_SCOPE;
        tn_data_batch b;
        assert_ok(tn_data_loader_next(l, &b));
        if (b.n == 0)
            continue;
        assert_shape(b.fields[0], b.n, 3);
        double *values = values_of(b.fields[0]);
        memcpy(all + *out_n, values, (size_t)b.n * 3 * sizeof *all);
        *out_n += b.n * 3;
        free(values);
    }
    return all;
}

static void transforms_draw_the_same_for_any_number_of_workers(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 13);
    int64_t nowhere = -1, n_first, n_next;
    if (!tn_device_has_dtype(dev, TN_F64))
        skip();
    double *first = NULL;
    for (uint32_t workers = 0; workers < 5; workers++)
        for (uint32_t prefetch = 0; prefetch <= 5 * (workers > 0); prefetch++) {
            tn_data_loader_options o = drawing(&nowhere);
            o.n_workers = workers;
            o.prefetch = prefetch;
            tn_data_loader *l = loader_of(&d, o);
            double *next = all_drawn(l, &n_next);
            tn_data_loader_destroy(l);
            if (!first) {
                first = next;
                n_first = n_next;
                assert_int_equal(n_first, 3 * 13 * 3);
                continue;
            }
            assert_int_equal(n_next, n_first);
            assert_memory_equal(next, first, (size_t)n_first * sizeof *first);
            free(next);
        }
    /* What is drawn is the sample's and the epoch's: as a program draws it itself. */
    bool seen = false;
    for (int i = 0; i < 13; i++) {
        tn_data_random r = tn_data_random_of(9, 1, (int64_t)first[3 * (13 + i)]);
        assert_true(first[3 * (13 + i) + 1] == tn_data_random_uniform(&r));
        seen = seen || first[3 * i] == first[3 * 13];
        if (first[3 * i] == first[3 * 13])
            assert_true(first[3 * i + 1] != first[3 * 13 + 1]);
    }
    assert_true(seen);
    free(first);
}

/* ---- states ------------------------------------------------------------------------------ */

static void a_loader_goes_on_where_another_stood(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 11);
    tn_data_loader_options o = {.batch_size = 3, .shuffle = true, .seed = 5};
    tn_data_loader *whole = loader_of(&d, o);
    trace all, head, tail;
    follow(whole, 15, &all); /* three epochs */
    tn_data_loader_destroy(whole);
    for (int cut = 0; cut <= 15; cut++) {
        o.n_workers = cut % 3;
        o.seed = 5;
        tn_data_loader *l = loader_of(&d, o);
        follow(l, cut, &head);
        tn_data_loader_state at, again;
        assert_ok(tn_data_loader_get_state(l, &at));
        tn_data_loader_destroy(l);
        o.seed = 77; /* the state's holds */
        o.n_workers = (cut + 1) % 3;
        l = loader_of(&d, o);
        follow(l, cut % 4, &tail);
        assert_ok(tn_data_loader_set_state(l, &at));
        assert_ok(tn_data_loader_get_state(l, &again));
        assert_memory_equal(&again, &at, sizeof at);
        follow(l, 15 - cut, &tail);
        tn_data_loader_destroy(l);
        memcpy(head.at + head.n, tail.at, (size_t)tail.n * sizeof *tail.at);
        head.n += tail.n;
        assert_same_trace(&head, &all);
    }
    /* With batches of another size the samples come in the same order. */
    o = (tn_data_loader_options){.batch_size = 4, .shuffle = true, .n_workers = 2};
    tn_data_loader *l = loader_of(&d, o);
    assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){5, 1, 3}));
    follow(l, 3, &tail);
    assert_int_equal(tail.n, 9);
    assert_memory_equal(tail.at, all.at + 15, 9 * sizeof *tail.at);
    tn_data_loader_destroy(l);
}

static void states_that_cannot_be_are_refused(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 5);
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = 1});
    static const tn_data_loader_state wrong[] = {
        {0, -1, 0}, {0, INT64_C(1) << 31, 0}, {0, 0, -1}, {0, 0, 6}, {0, INT64_MIN, INT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tn_data_loader_set_state(l, &wrong[i]), TN_ERR_INVALID_ARGUMENT);
        assert_error(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_set_state: epoch", "0 to the 5",
                     NULL);
    }
    /* The last batch that there is, and what comes after it. */
    trace t;
    assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, INT32_MAX, 4}));
    follow(l, 1, &t);
    assert_trace(&t, 4);
    tn_data_batch b;
    assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "epoch 2147483647 was the last", NULL);
    tn_data_loader_destroy(l);
}

/* ---- errors of callbacks ----------------------------------------------------------------- */

static void an_error_comes_in_its_batchs_turn_wherever_it_is(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 10);
    for (int w = 0; w < 3; w++)
        for (int64_t at = 0; at < 10; at++) {
            tn_data_loader *l = loader_of(
                &d, (tn_data_loader_options){.batch_size = 3, .n_workers = worker_counts[w]});
            atomic_store(&n.fails_at, at);
            assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0}));
            trace t;
            follow(l, (int)at / 3, &t);
            assert_int_equal(t.n, at / 3 * 3);
            char sample[32];
            snprintf(sample, sizeof sample, "sample %d: ", (int)at);
            for (int again = 0; again < 2; again++) {
                tn_data_batch b;
                memset(&b, 1, sizeof b);
                assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_IO);
                assert_error(TN_ERR_IO, "tn_data_loader_next: ", sample, "a page is torn out",
                             NULL);
                assert_true(b.n == 0 && b.n_fields == 0 && !b.fields[0] && !b.indices);
                tn_data_loader_state stands;
                assert_ok(tn_data_loader_get_state(l, &stands));
                assert_int_equal(stands.position, at / 3 * 3);
            }
            /* Past it, and once it is mended. */
            if (at < 9) {
                assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, 0, at + 1}));
                follow(l, 1, &t);
                assert_int_equal(t.at[0], at + 1);
            }
            atomic_store(&n.fails_at, -1);
            assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, 0, at / 3 * 3}));
            follow(l, 1, &t);
            assert_int_equal(t.at[0], at / 3 * 3);
            tn_data_loader_destroy(l);
        }
}

static void the_next_call_tries_again(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 4);
    for (int w = 0; w < 3; w++) {
        atomic_store(&n.fails_at, 0);
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = worker_counts[w]});
        tn_data_batch b;
        assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_IO);
        assert_error(TN_ERR_IO, "sample 0", NULL);
        atomic_store(&n.fails_at, -1);
        /* Workers may have read ahead, and failed, before that. */
        tn_status status = tn_data_loader_next(l, &b);
        if (status != TN_OK) {
            tn_error_clear();
            status = tn_data_loader_next(l, &b);
        }
        assert_ok(status);
        check_batch(&b);
        tn_data_loader_destroy(l);
    }
}

static void callbacks_that_break_rules_are_told_all_the_same(void **state) {
    static const struct {
        tn_status status, told;
        const char *text, *says;
    } cases[] = {{TN_ERR_SHAPE, TN_ERR_SHAPE, NULL, "sample 1: sizes, strides or ranks"},
                 {TN_NOT_READY, TN_NOT_READY, NULL, "sample 1: work is still running"},
                 {(tn_status)77, TN_ERR_INTERNAL, NULL, "returned 77, which is no tn_status"},
                 {(tn_status)-1, TN_ERR_INTERNAL, NULL, "returned -1, which is no tn_status"},
                 {TN_ERR_IO, TN_ERR_IO, "100% of %s\n", "100% of %s"}};
    numbers n;
    tn_dataset d = dataset_of(&n, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int w = 0; w < 2; w++) {
            n.status = cases[i].status;
            n.text = cases[i].text;
            atomic_store(&n.fails_at, 1);
            tn_data_loader *l = loader_of(
                &d, (tn_data_loader_options){.batch_size = 2, .n_workers = worker_counts[w]});
            tn_data_batch b;
            assert_int_equal(tn_data_loader_next(l, &b), cases[i].told);
            assert_error(cases[i].told, cases[i].says, NULL);
            /* An error that stands stays the first one. */
            tn_fail(TN_ERR_DTYPE, "an older one");
            assert_int_equal(tn_data_loader_next(l, &b), cases[i].told);
            assert_error(TN_ERR_DTYPE, "an older one", NULL);
            tn_data_loader_destroy(l);
        }
    /* Success with an error left behind is success. */
    n.status = TN_OK;
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 2});
    trace t;
    follow(l, 2, &t);
    assert_int_equal(tn_error_status(), TN_OK);
    tn_data_loader_destroy(l);
}

static void an_error_of_a_transform_comes_like_the_datasets(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 4);
    if (!tn_device_has_dtype(dev, TN_F64))
        skip();
    int64_t fails_at = 2;
    for (uint32_t workers = 0; workers < 2; workers++) {
        tn_data_loader_options o = drawing(&fails_at);
        o.n_workers = workers;
        tn_data_loader *l = loader_of(&d, o);
        tn_data_batch b;
        assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_UNSUPPORTED);
        assert_error(TN_ERR_UNSUPPORTED, "sample 2: sample with a beard", NULL);
        tn_data_loader_destroy(l);
    }
}

static tn_data_loader *own;

static tn_status call_own_loader(void *user, int64_t index, void *const *out) {
    tn_data_batch b;
    tn_data_loader *l;
    while (!(l = __atomic_load_n(&own, __ATOMIC_ACQUIRE)))
        usleep(100);
    tn_data_loader_destroy(l);
    if (tn_error_status() != TN_ERR_STATE)
        return tn_fail(TN_ERR_INTERNAL, "destroyed");
    tn_error_clear();
    tn_status status = tn_data_loader_set_state(l, &(tn_data_loader_state){0});
    return status == TN_ERR_STATE ? tn_data_loader_next(l, &b) : TN_ERR_INTERNAL;
}

static void a_callback_that_calls_its_loader_is_refused(void **state) {
    for (uint32_t workers = 0; workers < 2; workers++) {
        numbers n;
        tn_dataset d = dataset_of(&n, 4);
        d.read = call_own_loader;
        own = NULL;
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = workers});
        __atomic_store_n(&own, l, __ATOMIC_RELEASE);
        tn_data_batch b;
        assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "from a callback of this very loader", NULL);
        tn_data_loader_destroy(l);
    }
}

/* Makes tensors, for which each thread has a scope. */
static tn_status read_by_operators(void *user, int64_t index, void *const *out) {
    uint64_t held = tn_scope_held();
    tn_tensor *t = tn_mul_scalar(
        tn_full(TN_SHAPE(2), tn_int(index), TN_F32, tn_device_parse("cpu:0")), tn_float(2));
    tn_status status = tn_to_host(t, out[1], 2 * sizeof(float));
    *(int64_t *)out[0] = (int64_t)held;
    return status;
}

static void callbacks_may_call_operators(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 6);
    d.read = read_by_operators;
    for (int w = 0; w < 3; w++) {
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 6, .n_workers = worker_counts[w]});
        uint64_t held = tn_scope_held();
        tn_data_batch b;
        assert_ok(tn_data_loader_next(l, &b));
        assert_int_equal(tn_scope_held(), held + 2);
        assert_elements(tn_select(b.fields[1], 1, 0), TN_SHAPE(6), 0, 2, 4, 6, 8, 10);
        if (worker_counts[w]) /* scopes of its own, which each sample leaves empty */
            assert_elements(b.fields[0], TN_SHAPE(6), 0, 0, 0, 0, 0, 0);
        tn_data_loader_destroy(l);
    }
}

/* ---- ends -------------------------------------------------------------------------------- */

static void a_loader_can_end_at_any_time(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 9);
    for (int w = 0; w < 3; w++)
        for (int calls = 0; calls < 8; calls++) {
            tn_data_loader *l = loader_of(
                &d, (tn_data_loader_options){
                        .batch_size = 2, .shuffle = calls % 2, .n_workers = worker_counts[w]});
            trace t;
            follow(l, calls, &t);
            if (calls == 5)
                usleep(2000); /* the ring is full */
            tn_data_loader_destroy(l);
        }
    tn_data_loader_destroy(NULL);
}

static atomic_int n_waiting;
static tn_status read_slowly(void *user, int64_t index, void *const *out) {
    atomic_fetch_add(&n_waiting, 1);
    usleep(20000);
    return read_number(user, index, out);
}

/* A worker in the middle of a batch stops at its next sample. */
static void the_end_waits_for_one_sample_only(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 100000);
    d.read = read_slowly;
    atomic_store(&n_waiting, 0);
    tn_data_loader *l =
        loader_of(&d, (tn_data_loader_options){.batch_size = 50000, .n_workers = 2});
    while (atomic_load(&n_waiting) < 2)
        usleep(100);
    assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, 0, 50000}));
    while (atomic_load(&n_waiting) < 4)
        usleep(100);
    tn_data_loader_destroy(l);
    assert_in_range(atomic_load(&n.n_reads), 4, 1000);
}

static tn_status read_signals(void *user, int64_t index, void *const *out) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    *(int64_t *)out[0] = sigismember(&blocked, SIGUSR1) + sigismember(&blocked, SIGTERM);
    memset(out[1], 0, 8);
    return TN_OK;
}

static void workers_take_no_signals(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 2);
    d.read = read_signals;
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = 1});
    tn_data_batch b;
    assert_ok(tn_data_loader_next(l, &b));
    assert_elements(b.fields[0], TN_SHAPE(2), 2, 2);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
    tn_data_loader_destroy(l);
}

/* In the child of a fork there are no workers; a loader without goes on. */
static void a_forked_child_can_end_its_parents_loaders(void **state) {
    if (strcmp(*state, "cpu:0") != 0)
        return;
    numbers n;
    tn_dataset d = dataset_of(&n, 9);
    tn_data_loader *with = loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = 3});
    tn_data_loader *without = loader_of(&d, (tn_data_loader_options){.batch_size = 2});
    trace t;
    follow(with, 2, &t);
    follow(without, 2, &t);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        tn_data_batch b;
        bool good = tn_data_loader_next(with, &b) == TN_ERR_STATE &&
                    strstr(tn_error_message(), "not in a forked child");
        tn_error_clear();
        good = good && tn_data_loader_next(without, &b) == TN_OK && b.n == 2 && b.indices[0] == 4;
        tn_data_loader_destroy(with);
        tn_data_loader_destroy(without);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    follow(with, 1, &t);
    assert_trace(&t, 4, 5);
    tn_data_loader_destroy(with);
    tn_data_loader_destroy(without);
}

/* ---- copies ------------------------------------------------------------------------------ */

/* On a chip whose streams overtake each other no batch is read before it is there, and none is
 * overwritten by the next one of its slot. */
static int on_slow_sim(void **state) {
    setenv("TENON_SIM_DELAY", "300", 1);
    *state = "sim:0";
    return on_device(state);
}

static int leave_slow_sim(void **state) {
    unsetenv("TENON_SIM_DELAY");
    return leave_device(state);
}

static void copies_are_awaited_by_streams_and_slots(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 64);
    for (uint32_t workers = 0; workers < 3; workers++) {
        TN_SCOPE;
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){
                              .batch_size = 2, .n_workers = workers, .prefetch = workers ? 1 : 0});
        tn_stream *own_stream = tn_stream_create(dev, 0), *before = tn_current_stream(dev);
        tn_tensor *sums[32];
        for (int i = 0; i < 32; i++) {
            tn_data_batch b;
            assert_ok(tn_set_current_stream(i % 2 ? own_stream : before));
            assert_ok(tn_data_loader_next(l, &b));
            assert_ptr_equal(tn_current_stream(dev), i % 2 ? own_stream : before);
            sums[i] = tn_sum(b.fields[1]);
            tn_free(b.fields[0]);
            tn_free(b.fields[1]);
        }
        for (int i = 0; i < 32; i++) { /* 2 i, 2 i + 1/2, 2 i + 1, 2 i + 3/2 */
            assert_ok(tn_set_current_stream(i % 2 ? own_stream : before));
            assert_close(sums[i], 0, TN_SCALAR_SHAPE, 8 * i + 3);
        }
        assert_ok(tn_set_current_stream(before));
        tn_data_loader_destroy(l);
        tn_stream_drop(own_stream);
    }
}

/* What fails on the way to the device is tried again by the next call. */
static int on_failing_sim(void **state) {
    setenv("TENON_SIM_FAIL", "write:2,record:3,wait:2", 1);
    *state = "sim:0";
    return on_device(state);
}

static int leave_failing_sim(void **state) {
    unsetenv("TENON_SIM_FAIL");
    return leave_device(state);
}

static void a_copy_that_fails_is_made_again(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 12);
    for (uint32_t workers = 0; workers < 2; workers++) {
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 3, .n_workers = workers});
        int failures = 0;
        for (int i = 0; i < 4;) {
            TN_SCOPE;
            tn_data_batch b;
            tn_status status = tn_data_loader_next(l, &b);
            if (status != TN_OK) {
                assert_true(b.n == 0 && ++failures < 9);
                assert_int_equal(tn_error_status(), status);
                tn_error_clear();
                continue;
            }
            assert_int_equal(tn_error_status(), TN_OK);
            assert_int_equal(b.indices[0], 3 * i++);
            check_batch(&b);
        }
        assert_true(failures > 0 || workers > 0);
        tn_data_loader_destroy(l);
    }
}

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
        TEST(random_numbers_are_philoxs),
        OPS_TEST(batches_come_in_order_and_an_epoch_ends),
        OPS_TEST(a_shuffled_epoch_has_each_sample_once_in_an_order_of_its_seed),
        OPS_TEST(transforms_draw_the_same_for_any_number_of_workers),
        OPS_TEST(a_loader_goes_on_where_another_stood),
        OPS_TEST(states_that_cannot_be_are_refused),
        OPS_TEST(an_error_comes_in_its_batchs_turn_wherever_it_is),
        OPS_TEST(the_next_call_tries_again),
        OPS_TEST(callbacks_that_break_rules_are_told_all_the_same),
        OPS_TEST(an_error_of_a_transform_comes_like_the_datasets),
        OPS_TEST(a_callback_that_calls_its_loader_is_refused),
        OPS_TEST(callbacks_may_call_operators),
        OPS_TEST(a_loader_can_end_at_any_time),
        OPS_TEST(the_end_waits_for_one_sample_only),
        OPS_TEST(workers_take_no_signals),
        OPS_TEST(a_forked_child_can_end_its_parents_loaders),
        cmocka_unit_test_setup_teardown(copies_are_awaited_by_streams_and_slots, on_slow_sim,
                                        leave_slow_sim),
        cmocka_unit_test_setup_teardown(a_copy_that_fails_is_made_again, on_failing_sim,
                                        leave_failing_sim),
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
