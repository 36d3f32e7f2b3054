/* Modules one by one: shapes, first values, what they compute, gradients, errors that name them. */
#include "tests/nn/nn_test.h"

/* Of a model that is one module: its own visit, under a name. */
#define VISIT(type) \
    static void visit_##type(void *model, tn_nn_visitor *v) { \
        tn_nn_##type##_visit(model, "part.it", v); \
    }
VISIT(linear)
VISIT(conv)
VISIT(embedding)
VISIT(layer_norm)
VISIT(rms_norm)
VISIT(batch_norm)
VISIT(dropout)
VISIT(multihead_attention)
VISIT(transformer_block)

/* All values lie within the bound, and some in its outer tenth. */
static void assert_uniform(tn_tensor *t, double bound) {
    double *values = values_of(t), largest = 0;
    for (int64_t i = 0; i < tn_numel(t); i++)
        largest = fmax(largest, fabs(values[i]));
    free(values);
    assert_true(largest <= bound && largest > 0.9 * bound);
}

static tn_status has_gradient(const tn_nn_entry *entry, void *user) {
    bool has = tn_grad(*entry->tensor) != NULL;
    if (has != entry->is_parameter)
        fail_msg("%s has %s gradient", entry->name, has ? "a" : "no");
    ++*(int *)user;
    return TN_OK;
}

/* Backward from y reaches each of the model's n tensors that is a parameter, and no buffer. */
static void assert_gradients(void *model, tn_nn_visit_fn visit, tn_tensor *y, int n) {
    assert_ok(tn_backward(tn_sum(tn_mul(y, noise(TN_F32, tn_sizes(y), 7)))));
    int seen = 0;
    assert_ok(tn_nn_each(model, visit, has_gradient, &seen));
    assert_int_equal(seen, n);
}

/* ---- linear, conv, embedding ------------------------------------------------------------- */

static void linear_is_of_pytorchs_bounds_and_shape(void **state) {
    tn_nn_linear m;
    assert_ok(tn_nn_linear_init(&m, &(tn_nn_linear_options){.in_features = 100, .out_features = 8},
                                dev, TN_F32));
    assert_shape(m.weight, 8, 100);
    assert_uniform(m.weight, 0.1);
    assert_shape(m.bias, 8);
    tn_tensor *y = tn_nn_linear_forward(&m, noise(TN_F32, TN_SHAPE(2, 3, 100), 1));
    assert_shape(y, 2, 3, 8);
    assert_gradients(&m, visit_linear, y, 2);
    tn_nn_linear_finish(&m);
    assert_null(m.weight);
    tn_nn_linear_finish(&m);

    tn_nn_linear_options no_bias = {100, 8, .no_bias = true};
    assert_ok(tn_nn_linear_init(&m, &no_bias, dev, TN_F32));
    assert_null(m.bias);
    assert_shape(tn_nn_linear_forward(&m, noise(TN_F32, TN_SHAPE(100), 1)), 8);
    tn_nn_linear_finish(&m);
}

static void modules_are_of_the_dtype_that_was_asked_for(void **state) {
    tn_nn_linear m;
    assert_ok(tn_nn_linear_init(&m, LINEAR(4, 2), dev, TN_F16));
    assert_int_equal(tn_dtype_of(m.weight), TN_F16);
    assert_int_equal(tn_dtype_of(tn_nn_linear_forward(&m, noise(TN_F16, TN_SHAPE(3, 4), 1))),
                     TN_F16);
    tn_nn_linear_finish(&m);
    assert_int_equal(tn_nn_linear_init(&m, LINEAR(4, 2), dev, TN_I32), TN_ERR_DTYPE);
    tn_error_clear();
    assert_null(m.weight);
}

static void conv_takes_one_to_three_dimensions(void **state) {
    static const int64_t sizes[] = {2, 4, 9, 8, 7};
    for (int n = 1; n <= 3; n++) {
        tn_nn_conv m;
        tn_nn_conv_options o = {.in_channels = 4, .out_channels = 6, .groups = 2};
        for (int i = 0; i < n; i++)
            o.kernel_size[i] = 3;
        o.padding[0] = 1;
        o.stride[0] = 2;
        assert_ok(tn_nn_conv_init(&m, &o, dev, TN_F32));
        assert_int_equal(tn_rank(m.weight), n + 2);
        assert_int_equal(tn_size(m.weight, 1), 2);
        assert_uniform(m.weight, 1 / sqrt(2 * pow(3, n)));
        tn_tensor *y = tn_nn_conv_forward(&m, noise(TN_F32, tn_ints_of(sizes, n + 2), 1));
        int64_t want[] = {2, 6, 5, 6, 5}; /* (9 + 2 - 3) / 2 + 1, 8 - 2, 7 - 2 */
        check_ints(tn_sizes(y), tn_ints_of(want, n + 2), __FILE__, __LINE__);
        assert_gradients(&m, visit_conv, y, 2);
        tn_nn_conv_finish(&m);
    }
}

static void the_row_of_an_embeddings_padding_is_zero_and_gets_no_gradient(void **state) {
    tn_nn_embedding m;
    tn_nn_embedding_options o = {5, 3, .has_padding_idx = true, .padding_idx = 1};
    assert_ok(tn_nn_embedding_init(&m, &o, dev, TN_F32));
    tn_tensor *y = tn_nn_embedding_forward(&m, of(TN_I64, TN_SHAPE(2, 2), 0, 1, 1, 4));
    assert_shape(y, 2, 2, 3);
    assert_elements(tn_select(tn_select(y, 0, 0), 0, 1), TN_SHAPE(3), 0, 0, 0);
    assert_gradients(&m, visit_embedding, y, 1);
    assert_elements(tn_select(tn_grad(m.weight), 0, 1), TN_SHAPE(3), 0, 0, 0);
    tn_nn_embedding_finish(&m);

    assert_ok(tn_nn_embedding_init(&m, EMBEDDING(50, 40), dev, TN_F32));
    assert_int_equal(m.padding_idx, -1);
    assert_close(tn_mean(m.weight), 0.1, TN_SCALAR_SHAPE, 0);
    assert_close(tn_mean(tn_mul(m.weight, m.weight)), 0.15, TN_SCALAR_SHAPE, 1);
    tn_nn_embedding_finish(&m);
}

static double deviation_of(tn_tensor *t) {
    double value;
    assert_ok(tn_item(tn_sqrt(tn_mean(tn_mul(tn_detach(t), tn_detach(t)))), &value));
    return value;
}

static void weights_are_filled_as_kaiming_he_has_it(void **state) {
    tn_nn_conv m;
    tn_nn_conv_options o = {.in_channels = 16, .out_channels = 32, .kernel_size = {3, 3}};
    assert_ok(tn_nn_conv_init(&m, &o, dev, TN_F32));
    assert_ptr_equal(tn_nn_kaiming_normal_(m.weight, TN_NN_FAN_OUT, sqrt(2)), m.weight);
    assert_true(fabs(deviation_of(m.weight) / sqrt(2. / (32 * 9)) - 1) < 0.05);
    assert_ptr_equal(tn_nn_kaiming_normal_(m.weight, TN_NN_FAN_IN, 1), m.weight);
    assert_true(fabs(deviation_of(m.weight) / sqrt(1. / (16 * 9)) - 1) < 0.05);
    tn_tensor *uniform = tn_nn_kaiming_uniform_(m.weight, TN_NN_FAN_OUT, sqrt(2));
    assert_ptr_equal(uniform, m.weight);
    assert_uniform(uniform, sqrt(6. / (32 * 9)));
    assert_gradients(&m, visit_conv,
                     tn_nn_conv_forward(&m, noise(TN_F32, TN_SHAPE(1, 16, 4, 4), 1)), 2);
    tn_nn_conv_finish(&m);

    tn_tensor *vector = tn_ones(TN_SHAPE(3)), *matrix = tn_ones(TN_SHAPE(2, 0));
    assert_null(tn_nn_kaiming_normal_(NULL, TN_NN_FAN_IN, 1));
    assert_int_equal(tn_error_status(), TN_OK);
    assert_fails(tn_nn_kaiming_normal_(TN_NONE, TN_NN_FAN_IN, 1), TN_ERR_INVALID_ARGUMENT,
                 "TN_NONE");
    assert_fails(tn_nn_kaiming_uniform_(vector, TN_NN_FAN_IN, 1), TN_ERR_SHAPE,
                 "tn_nn_kaiming_uniform_", "[3]");
    assert_fails(tn_nn_kaiming_normal_(matrix, (tn_nn_fan)7, 1), TN_ERR_INVALID_ARGUMENT,
                 "fan is 7");
    assert_fails(tn_nn_kaiming_normal_(matrix, TN_NN_FAN_IN, NAN), TN_ERR_INVALID_ARGUMENT,
                 "gain is nan");
    assert_fails(tn_nn_kaiming_normal_(matrix, TN_NN_FAN_IN, -1), TN_ERR_INVALID_ARGUMENT,
                 "gain is -1");
    assert_ptr_equal(tn_nn_kaiming_normal_(matrix, TN_NN_FAN_IN, 1), matrix);
}

/* ---- norms and dropout ------------------------------------------------------------------- */

static void norms_over_the_last_dimensions_begin_as_the_operators(void **state) {
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3, 4), 1);
    tn_nn_layer_norm layer;
    tn_nn_layer_norm_options o = {.normalized_shape = TN_SHAPE(3, 4)};
    assert_ok(tn_nn_layer_norm_init(&layer, &o, dev, TN_F32));
    tn_tensor *y = tn_nn_layer_norm_forward(&layer, x);
    double *want = values_of(tn_layer_norm(x, TN_SHAPE(3, 4)));
    assert_values(y, TN_SHAPE(2, 3, 4), 1e-6, want);
    assert_gradients(&layer, visit_layer_norm, y, 2);
    free(want);
    tn_nn_layer_norm_finish(&layer);

    tn_nn_rms_norm rms;
    assert_ok(tn_nn_rms_norm_init(
        &rms, &(tn_nn_rms_norm_options){.normalized_shape = TN_SHAPE(4), .eps = 0.5}, dev, TN_F32));
    y = tn_nn_rms_norm_forward(&rms, x);
    want = values_of(tn_rms_norm(x, TN_SHAPE(4), TN_NONE, tn_float(0.5)));
    assert_values(y, TN_SHAPE(2, 3, 4), 1e-6, want);
    assert_gradients(&rms, visit_rms_norm, y, 1);
    free(want);
    tn_nn_rms_norm_finish(&rms);

    o.no_affine = true;
    assert_ok(tn_nn_layer_norm_init(&layer, &o, dev, TN_F32));
    assert_null(layer.weight);
    assert_non_null(tn_nn_layer_norm_forward(&layer, x));
    tn_nn_layer_norm_finish(&layer);
}

static void batch_norm_averages_in_training_and_uses_the_averages_in_evaluation(void **state) {
    tn_nn_batch_norm m;
    assert_ok(
        tn_nn_batch_norm_init(&m, &(tn_nn_batch_norm_options){.num_features = 2}, dev, TN_F32));
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 1, 10, 3, 10);
    tn_tensor *y = tn_nn_batch_norm_forward(&m, x);
    assert_close(y, 1e-4, TN_SHAPE(2, 2), -1, 0, 1, 0);
    assert_close(m.running_mean, 1e-6, TN_SHAPE(2), 0.2, 1);
    assert_close(m.running_var, 1e-6, TN_SHAPE(2), 1.1, 0.9);
    assert_tensor(m.num_batches_tracked, TN_I64, TN_SCALAR_SHAPE, 0, 1);
    assert_gradients(&m, visit_batch_norm, y, 5);

    assert_ok(tn_nn_train(&m, visit_batch_norm, false));
    y = tn_nn_batch_norm_forward(&m, x);
    assert_close(y, 1e-4, TN_SHAPE(2, 2), 0.8 / sqrt(1.1), 9 / sqrt(0.9), 2.8 / sqrt(1.1),
                 9 / sqrt(0.9));
    assert_close(m.running_mean, 1e-6, TN_SHAPE(2), 0.2, 1);
    assert_tensor(m.num_batches_tracked, TN_I64, TN_SCALAR_SHAPE, 0, 1);
    tn_nn_batch_norm_finish(&m);

    tn_nn_batch_norm_options o = {.num_features = 2, .no_running_stats = true, .no_affine = true};
    assert_ok(tn_nn_batch_norm_init(&m, &o, dev, TN_F32));
    assert_ok(tn_nn_train(&m, visit_batch_norm, false));
    assert_close(tn_nn_batch_norm_forward(&m, x), 1e-4, TN_SHAPE(2, 2), -1, 0, 1, 0);
    tn_nn_batch_norm_finish(&m);
}

static void dropout_drops_in_training_alone(void **state) {
    tn_nn_dropout m;
    assert_ok(tn_nn_dropout_init(&m, &(tn_nn_dropout_options){1}));
    tn_tensor *x = of(TN_F32, TN_SHAPE(3), 1, 2, 3);
    assert_elements(tn_nn_dropout_forward(&m, x), TN_SHAPE(3), 0, 0, 0);
    assert_ok(tn_nn_train(&m, visit_dropout, false));
    assert_elements(tn_nn_dropout_forward(&m, x), TN_SHAPE(3), 1, 2, 3);
    assert_ok(tn_nn_train(&m, visit_dropout, true));
    assert_elements(tn_nn_dropout_forward(&m, x), TN_SHAPE(3), 0, 0, 0);
}

/* ---- attention --------------------------------------------------------------------------- */

static tn_tensor *attend(const tn_nn_multihead_attention *m, tn_tensor *x, tn_tensor *mask) {
    return tn_nn_multihead_attention_forward(m, x, x, x, mask);
}

static void assert_near(tn_tensor *a, tn_tensor *b) {
    double *want = values_of(b);
    assert_values(a, tn_sizes(b), 1e-5, want);
    free(want);
}

static void attention_is_that_of_the_formula(void **state) {
    tn_nn_multihead_attention m;
    tn_nn_multihead_attention_options o = {.embed_dim = 8, .num_heads = 2};
    assert_ok(tn_nn_multihead_attention_init(&m, &o, dev, TN_F32));
    assert_shape(m.in_proj_weight, 24, 8);
    assert_uniform(m.in_proj_weight, sqrt(6.0 / 32));
    assert_elements(m.out_proj.bias, TN_SHAPE(8), 0, 0, 0, 0, 0, 0, 0, 0);
    tn_tensor *query = noise(TN_F32, TN_SHAPE(2, 3, 8), 1),
              *x = noise(TN_F32, TN_SHAPE(2, 5, 8), 2);
    tn_tensor *y = tn_nn_multihead_attention_forward(&m, query, x, x, TN_NONE);
    assert_shape(y, 2, 3, 8);

    /* One head after the other, from slices. */
    tn_tensor *heads[2], *w = m.in_proj_weight;
    for (int64_t h = 0; h < 2; h++) {
        tn_tensor *q = tn_linear(query, tn_narrow(w, 0, h * 4, 4));
        tn_tensor *k = tn_linear(x, tn_narrow(w, 0, 8 + h * 4, 4));
        tn_tensor *v = tn_linear(x, tn_narrow(w, 0, 16 + h * 4, 4));
        tn_tensor *scores = tn_div_scalar(tn_matmul(q, tn_transpose(k, 1, 2)), tn_float(2));
        heads[h] = tn_matmul(tn_softmax(scores, -1), v);
    }
    assert_near(y, tn_linear(tn_cat(heads, 2, 2), m.out_proj.weight));
    assert_gradients(&m, visit_multihead_attention, y, 4);
    tn_nn_multihead_attention_finish(&m);
}

static void masks_hide_keys(void **state) {
    tn_nn_multihead_attention m;
    tn_nn_multihead_attention_options o = {.embed_dim = 4, .num_heads = 2, .no_bias = true};
    assert_ok(tn_nn_multihead_attention_init(&m, &o, dev, TN_F32));
    tn_tensor *x = noise(TN_F32, TN_SHAPE(1, 3, 4), 3);
    tn_tensor *seen = of(TN_BOOL, TN_SHAPE(3, 3), 1, 0, 0, 1, 1, 0, 1, 1, 1);
    tn_tensor *added = of(TN_F32, TN_SHAPE(3, 3), 0, -1e9, -1e9, 0, 0, -1e9, 0, 0, 0);
    tn_tensor *masked = attend(&m, x, seen);
    assert_near(attend(&m, x, added), masked);
    m.is_causal = true;
    assert_near(attend(&m, x, TN_NONE), masked);
    /* What comes later does not change what was. */
    tn_tensor *first = attend(&m, tn_narrow(x, 1, 0, 1), TN_NONE);
    assert_near(tn_narrow(masked, 1, 0, 1), first);
    tn_nn_multihead_attention_finish(&m);
}

static void a_transformer_block_computes_with_all_of_its_parameters(void **state) {
    for (int i = 0; i < 4; i++) {
        tn_nn_transformer_block m;
        tn_nn_transformer_block_options o = {.d_model = 8, .nhead = 2, .dim_feedforward = 16};
        o.norm_first = i & 1;
        o.activation = i & 2 ? TN_NN_GELU : TN_NN_RELU;
        o.dropout = 0.1;
        assert_ok(tn_nn_transformer_block_init(&m, &o, dev, TN_F32));
        tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3, 8), 1);
        tn_tensor *y = tn_nn_transformer_block_forward(&m, x, TN_NONE);
        assert_shape(y, 2, 3, 8);
        assert_gradients(&m, visit_transformer_block, y, 12);
        assert_ok(tn_nn_train(&m, visit_transformer_block, false));
        assert_same(tn_nn_transformer_block_forward(&m, x, TN_NONE),
                    tn_nn_transformer_block_forward(&m, x, TN_NONE));
        tn_nn_transformer_block_finish(&m);
    }
}

/* ---- errors ------------------------------------------------------------------------------ */

static void options_that_cannot_work_are_refused(void **state) {
#define REFUSED(type, why, ...) \
    do { \
        tn_nn_##type m; \
        assert_int_equal( \
            tn_nn_##type##_init(&m, &(tn_nn_##type##_options){__VA_ARGS__}, dev, TN_F32), \
            TN_ERR_INVALID_ARGUMENT); \
        assert_error(TN_ERR_INVALID_ARGUMENT, "tn_nn_" #type "_init", why, NULL); \
    } while (0)
    REFUSED(linear, "out_features 0", .in_features = 3);
    REFUSED(conv, "kernel_size", .in_channels = 3, .out_channels = 3);
    REFUSED(conv, "groups", .in_channels = 3, .out_channels = 4, .kernel_size = {1}, .groups = 3);
    REFUSED(conv, "padding -1", .in_channels = 1, .out_channels = 1, .kernel_size = {1},
            .padding = {-1});
    REFUSED(embedding, "num_embeddings is 0", .embedding_dim = 2);
    REFUSED(embedding, "padding_idx is 3", 3, 2, .has_padding_idx = true, .padding_idx = 3);
    REFUSED(layer_norm, "normalized_shape has 0", .eps = 1);
    REFUSED(rms_norm, "normalized_shape is 0", .normalized_shape = TN_SHAPE(0));
    REFUSED(batch_norm, "num_features is 0", .eps = 1);
    REFUSED(multihead_attention, "multiple of num_heads", .embed_dim = 8, .num_heads = 3);
    REFUSED(multihead_attention, "dropout is 2", .embed_dim = 8, .num_heads = 2, .dropout = 2);
#undef REFUSED
    tn_nn_transformer_block block;
    tn_nn_transformer_block_options o = {.d_model = 8, .nhead = 2, .activation = 7};
    assert_int_equal(tn_nn_transformer_block_init(&block, &o, dev, TN_F32),
                     TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "activation is 7", NULL);
    tn_nn_dropout dropout;
    assert_int_equal(tn_nn_dropout_init(&dropout, &(tn_nn_dropout_options){NAN}),
                     TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_nn_dropout_init", NULL);
}

/* Names the module by a visit, as every program does that trains. */
static void named(void *m, tn_nn_visit_fn visit) {
    assert_ok(tn_nn_train(m, visit, true));
}

static void wrong_shapes_are_refused_and_name_the_module(void **state) {
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3), 1);
    tn_nn_linear linear;
    assert_ok(tn_nn_linear_init(&linear, LINEAR(4, 2), dev, TN_F32));
    assert_fails(tn_nn_linear_forward(&linear, x), TN_ERR_SHAPE, "without a name", "[2, 3]", "4");
    named(&linear, visit_linear);
    assert_fails(tn_nn_linear_forward(&linear, x), TN_ERR_SHAPE, "part.it", "[2, 3]",
                 "in_features");
    /* What an operator refuses, too. */
    assert_fails(tn_nn_linear_forward(&linear, tn_zeros(TN_SHAPE(2, 4), TN_I64, dev)), TN_ERR_DTYPE,
                 "part.it: ");
    assert_null(tn_nn_linear_forward(&linear, NULL));
    assert_int_equal(tn_error_status(), TN_OK);
    tn_nn_linear_finish(&linear);
    assert_fails(tn_nn_linear_forward(&linear, x), TN_ERR_INVALID_ARGUMENT, "no weight");

    tn_nn_conv conv;
    tn_nn_conv_options o = {.in_channels = 3, .out_channels = 2, .kernel_size = {2, 2}};
    assert_ok(tn_nn_conv_init(&conv, &o, dev, TN_F32));
    named(&conv, visit_conv);
    assert_fails(tn_nn_conv_forward(&conv, x), TN_ERR_SHAPE, "part.it", "[N, 3, H, W]");
    tn_nn_conv_finish(&conv);

    tn_nn_layer_norm norm;
    assert_ok(tn_nn_layer_norm_init(
        &norm, &(tn_nn_layer_norm_options){.normalized_shape = TN_SHAPE(4)}, dev, TN_F32));
    named(&norm, visit_layer_norm);
    assert_fails(tn_nn_layer_norm_forward(&norm, x), TN_ERR_SHAPE, "part.it", "[2, 3]", "4");
    tn_nn_layer_norm_finish(&norm);

    tn_nn_batch_norm batch;
    assert_ok(
        tn_nn_batch_norm_init(&batch, &(tn_nn_batch_norm_options){.num_features = 2}, dev, TN_F32));
    named(&batch, visit_batch_norm);
    assert_fails(tn_nn_batch_norm_forward(&batch, x), TN_ERR_SHAPE, "part.it", "[N, 2, ...]");
    assert_tensor(batch.num_batches_tracked, TN_I64, TN_SCALAR_SHAPE, 0, 0);
    tn_nn_batch_norm_finish(&batch);

    tn_nn_multihead_attention attention;
    tn_nn_multihead_attention_options heads = {.embed_dim = 4, .num_heads = 2};
    assert_ok(tn_nn_multihead_attention_init(&attention, &heads, dev, TN_F32));
    named(&attention, visit_multihead_attention);
    assert_fails(attend(&attention, x, TN_NONE), TN_ERR_SHAPE, "part.it", "query", "embed_dim");
    tn_tensor *right = noise(TN_F32, TN_SHAPE(1, 3, 4), 1);
    assert_fails(attend(&attention, right, tn_zeros(TN_SHAPE(5, 5), TN_F32, dev)), TN_ERR_SHAPE,
                 "part.it: ");
    tn_nn_multihead_attention_finish(&attention);
}

static void visit_null(void *model, tn_nn_visitor *v) {
    tn_nn_linear_visit(NULL, "it", v);
}

static void null_is_refused_and_finished(void **state) {
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3, 4), 1);
    assert_fails(tn_nn_linear_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "linear_forward", "NULL");
    assert_fails(tn_nn_conv_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(tn_nn_embedding_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(tn_nn_layer_norm_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(tn_nn_rms_norm_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(tn_nn_batch_norm_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(tn_nn_dropout_forward(NULL, x), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(attend(NULL, x, TN_NONE), TN_ERR_INVALID_ARGUMENT, "NULL");
    assert_fails(tn_nn_transformer_block_forward(NULL, x, TN_NONE), TN_ERR_INVALID_ARGUMENT,
                 "NULL");
    assert_int_equal(tn_nn_train(x, visit_null, true), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "the module or its name is NULL", NULL);
    assert_int_equal(tn_nn_linear_init(NULL, LINEAR(1, 1), dev, TN_F32), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    tn_nn_linear_finish(NULL);
    tn_nn_dropout_finish(NULL);
    tn_nn_transformer_block_finish(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(linear_is_of_pytorchs_bounds_and_shape),
        OPS_TEST(modules_are_of_the_dtype_that_was_asked_for),
        OPS_TEST(conv_takes_one_to_three_dimensions),
        OPS_TEST(weights_are_filled_as_kaiming_he_has_it),
        OPS_TEST(the_row_of_an_embeddings_padding_is_zero_and_gets_no_gradient),
        OPS_TEST(norms_over_the_last_dimensions_begin_as_the_operators),
        OPS_TEST(batch_norm_averages_in_training_and_uses_the_averages_in_evaluation),
        OPS_TEST(dropout_drops_in_training_alone),
        OPS_TEST(attention_is_that_of_the_formula),
        OPS_TEST(masks_hide_keys),
        OPS_TEST(a_transformer_block_computes_with_all_of_its_parameters),
        OPS_TEST(null_is_refused_and_finished),
        OPS_TEST(options_that_cannot_work_are_refused),
        OPS_TEST(wrong_shapes_are_refused_and_name_the_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
