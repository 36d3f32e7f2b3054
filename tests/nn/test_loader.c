/* Loaders: what comes in which order, for any number of workers, and from a saved state on. */
#include "tests/nn/numbers.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(random_numbers_are_philoxs),
        OPS_TEST(batches_come_in_order_and_an_epoch_ends),
        OPS_TEST(a_shuffled_epoch_has_each_sample_once_in_an_order_of_its_seed),
        OPS_TEST(transforms_draw_the_same_for_any_number_of_workers),
        OPS_TEST(a_loader_goes_on_where_another_stood),
        OPS_TEST(states_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
