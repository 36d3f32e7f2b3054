/* Whole models: names, lists of parameters, modes, and states that are saved and loaded. */
#include "tests/nn/nn_test.h"

/* A model as a program has it: modules, a list of blocks, a tensor of its own, two that are one. */
enum { N_BLOCKS = 2 };
typedef struct net {
    tn_nn_embedding tokens;
    tn_tensor *positions; /* [5, 8] */
    tn_nn_transformer_block blocks[N_BLOCKS];
    tn_nn_batch_norm norm;
    tn_nn_linear head;
    tn_tensor *tied; /* the weight of `tokens` */
} net;

static void net_visit(void *model, tn_nn_visitor *v) {
    net *m = model;
    tn_nn_embedding_visit(&m->tokens, "tokens", v);
    tn_nn_visit_parameter(v, "positions", &m->positions);
    for (int i = 0; i < N_BLOCKS; i++) {
        tn_nn_enter(v, "blocks.%d", i);
        tn_nn_transformer_block_visit(&m->blocks[i], "", v);
        tn_nn_leave(v);
    }
    tn_nn_batch_norm_visit(&m->norm, "norm", v);
    tn_nn_linear_visit(&m->head, "head", v);
    tn_nn_visit_parameter(v, "tied", &m->tied);
}

static void net_init(net *m, tn_dtype dtype) {
    *m = (net){0};
    assert_ok(tn_nn_embedding_init(&m->tokens, EMBEDDING(7, 8), dev, dtype));
    m->positions = tn_nn_parameter(tn_zeros(TN_SHAPE(5, 8), dtype, dev));
    tn_nn_transformer_block_options block = {
        .d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = 0.5, .is_causal = true};
    for (int i = 0; i < N_BLOCKS; i++)
        assert_ok(tn_nn_transformer_block_init(&m->blocks[i], &block, dev, dtype));
    assert_ok(tn_nn_batch_norm_init(&m->norm, &(tn_nn_batch_norm_options){.num_features = 5}, dev,
                                    dtype));
    assert_ok(tn_nn_linear_init(&m->head, LINEAR(8, 7), dev, dtype));
    m->tied = tn_keep(m->tokens.weight);
}

/* [n, 5] numbers to [n, 5, 7] */
static tn_tensor *net_forward(net *m, tn_tensor *x) {
    x = tn_add(tn_nn_embedding_forward(&m->tokens, x), m->positions);
    for (int i = 0; i < N_BLOCKS; i++)
        x = tn_nn_transformer_block_forward(&m->blocks[i], x, TN_NONE);
    return tn_nn_linear_forward(&m->head, tn_nn_batch_norm_forward(&m->norm, x));
}

static tn_tensor *numbers(void) {
    return of(TN_I64, TN_SHAPE(2, 5), 0, 1, 2, 3, 4, 6, 5, 4, 3, 2);
}

/* ---- names ------------------------------------------------------------------------------- */

static tn_status add_name(const tn_nn_entry *entry, void *user) {
    char *text = user;
    size_t n = strlen(text);
    snprintf(text + n, 4096 - n, "%s%s\n", entry->name, entry->is_parameter ? "" : " (buffer)");
    return TN_OK;
}

static void every_tensor_has_its_name_in_the_order_of_the_visit(void **state) {
#define BLOCK(b) \
    b ".self_attn.in_proj_weight\n" b ".self_attn.in_proj_bias\n" b \
      ".self_attn.out_proj.weight\n" b ".self_attn.out_proj.bias\n" b ".linear1.weight\n" b \
      ".linear1.bias\n" b ".linear2.weight\n" b ".linear2.bias\n" b ".norm1.weight\n" b \
      ".norm1.bias\n" b ".norm2.weight\n" b ".norm2.bias\n"
    net m;
    net_init(&m, TN_F32);
    static char text[4096];
    text[0] = 0;
    assert_ok(tn_nn_each(&m, net_visit, add_name, text));
    assert_string_equal(
        text,
        "tokens.weight\npositions\n" BLOCK("blocks.0")
            BLOCK("blocks.1") "norm.weight\nnorm.bias\nnorm.running_mean "
                              "(buffer)\nnorm.running_var (buffer)\n"
                              "norm.num_batches_tracked (buffer)\nhead.weight\nhead.bias\ntied\n");
    assert_string_equal(m.blocks[1].self_attn.out_proj.module.name, "blocks.1.self_attn.out_proj");
    assert_string_equal(m.blocks[0].module.name, "blocks.0");
    tn_nn_finish(&m, net_visit);
    assert_null(m.tied);
    tn_nn_finish(&m, net_visit);
}

static void too_deep(void *model, tn_nn_visitor *v) {
    for (int i = 0; i < 40; i++)
        tn_nn_enter(v, "%d", i);
    tn_nn_linear_visit(model, "x", v);
    for (int i = 0; i < 40; i++)
        tn_nn_leave(v);
}

static void too_long(void *model, tn_nn_visitor *v) {
    tn_nn_enter(v, "%600d", 1);
    tn_nn_linear_visit(model, "x", v);
    tn_nn_leave(v);
}

static void left_open(void *model, tn_nn_visitor *v) {
    tn_nn_enter(v, "part");
    tn_nn_linear_visit(model, "x", v);
}

static void long_name(void *model, tn_nn_visitor *v) {
    tn_nn_enter(v, "%s", "0123456789012345678901234567890123456789012345678901234567890123456789");
    tn_nn_linear_visit(model, "x", v);
    tn_nn_leave(v);
}

static void visits_that_are_wrong_are_refused(void **state) {
    static const struct {
        tn_nn_visit_fn visit;
        const char *why;
    } wrong[] = {
        {too_deep, "at most 32 deep"}, {too_long, "too long"}, {left_open, "1 names open"}};
    tn_nn_linear m;
    assert_ok(tn_nn_linear_init(&m, LINEAR(4, 2), dev, TN_F32));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_nn_train(&m, wrong[i].visit, true), TN_ERR_INVALID_ARGUMENT);
        assert_error(TN_ERR_INVALID_ARGUMENT, wrong[i].why, NULL);
    }
    assert_int_equal(tn_nn_train(NULL, too_deep, true), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_nn_train", NULL);
    assert_ok(tn_nn_train(&m, long_name, true));
    assert_int_equal(strlen(m.module.name), TN_NN_NAME_BYTES - 1);
    assert_string_equal(m.module.name + TN_NN_NAME_BYTES - 7, "6789.x"); /* its end */
    tn_nn_linear_finish(&m);
}

/* ---- parameters and modes ---------------------------------------------------------------- */

static tn_status check_mode(const tn_nn_entry *entry, void *user) {
    return TN_OK;
}

static void an_optimizer_takes_the_parameters_and_shared_ones_once(void **state) {
    net m;
    net_init(&m, TN_F32);
    uint64_t n;
    tn_tensor **parameters = tn_nn_parameters(&m, net_visit, &n);
    assert_int_equal(n, 2 + 2 * 12 + 2 + 2); /* `tied` is there as the weight of `tokens` */
    tn_optimizer *sgd = tn_sgd_create(parameters, n, NULL);
    tn_nn_parameters_free(parameters);
    assert_non_null(sgd);
    tn_tensor *before = tn_copy(m.head.weight, m.head.weight);
    assert_ok(tn_backward(tn_mean(tn_mul(net_forward(&m, numbers()), net_forward(&m, numbers())))));
    assert_ok(tn_optimizer_step(sgd));
    double change;
    assert_ok(tn_item(tn_sum(tn_abs(tn_sub(m.head.weight, before))), &change));
    assert_true(change > 0);
    tn_optimizer_destroy(sgd);
    tn_nn_finish(&m, net_visit);
    assert_fails(tn_nn_parameters(&m, net_visit, &n), TN_ERR_INVALID_ARGUMENT, "has none");
    assert_ok(tn_nn_each(&m, net_visit, check_mode, NULL));
}

static void evaluation_reaches_every_module(void **state) {
    net m;
    net_init(&m, TN_F32);
    assert_true(m.blocks[1].dropout1.module.training && m.norm.module.training);
    assert_ok(tn_nn_train(&m, net_visit, false));
    assert_false(m.blocks[1].dropout1.module.training || m.norm.module.training ||
                 m.blocks[0].self_attn.module.training);
    assert_same(net_forward(&m, numbers()), net_forward(&m, numbers()));
    tn_nn_finish(&m, net_visit);
}

/* ---- states ------------------------------------------------------------------------------ */

static void a_state_comes_back_bit_for_bit(void **state) {
    net a, b;
    net_init(&a, TN_F32);
    net_init(&b, TN_F32);
    net_forward(&a, numbers()); /* changes the running statistics */
    tn_key_value metadata = {"format", "pt"};
    assert_ok(tn_nn_state_save(file_path("net"), &a, net_visit, &metadata, 1));
    tn_tensor *weight = b.head.weight;
    assert_ok(tn_nn_state_load(file_path("net"), &b, net_visit, true));
    assert_ptr_equal(b.head.weight, weight);
    assert_true(tn_requires_grad(weight));
    assert_same(b.blocks[1].self_attn.in_proj_weight, a.blocks[1].self_attn.in_proj_weight);
    assert_same(b.norm.running_var, a.norm.running_var);
    assert_tensor(b.norm.num_batches_tracked, TN_I64, TN_SCALAR_SHAPE, 0, 1);
    assert_ok(tn_nn_train(&a, net_visit, false));
    assert_ok(tn_nn_train(&b, net_visit, false));
    assert_same(net_forward(&a, numbers()), net_forward(&b, numbers()));

    assert_ok(tn_nn_state_save(file_path("net2"), &b, net_visit, &metadata, 1));
    size_t n, n2;
    char *bytes = read_file(file_path("net"), &n), *bytes2 = read_file(file_path("net2"), &n2);
    assert_int_equal(n, n2);
    assert_memory_equal(bytes, bytes2, n);
    free(bytes);
    free(bytes2);
    tn_nn_finish(&a, net_visit);
    tn_nn_finish(&b, net_visit);
}

static void a_state_is_cast_to_the_models_dtype(void **state) {
    tn_nn_linear a, b;
    assert_ok(tn_nn_linear_init(&a, LINEAR(4, 2), dev, TN_F32));
    assert_ok(tn_nn_linear_init(&b, LINEAR(4, 2), dev, TN_F16));
    assert_ok(tn_nn_state_save(file_path("f32"), &a, long_name, NULL, 0));
    assert_ok(tn_nn_state_load(file_path("f32"), &b, long_name, true));
    assert_same(b.weight, tn_to(a.weight, TN_F16));
    tn_nn_linear_finish(&a);
    tn_nn_linear_finish(&b);
}

static void visit_head(void *model, tn_nn_visitor *v) {
    net *m = model;
    tn_nn_linear_visit(&m->head, "head", v);
}

static void visit_other(void *model, tn_nn_visitor *v) {
    visit_head(model, v);
    net *m = model;
    tn_nn_visit_parameter(v, "other", &m->positions);
}

static void load_fails(net *m, tn_nn_visit_fn visit, tn_status status, const char *why,
                       const char *name) {
    tn_tensor *before = tn_copy(m->head.weight, m->head.weight);
    assert_int_equal(tn_nn_state_load(file_path("head"), m, visit, true), status);
    assert_error(status, "tn_nn_state_load", "head", why, name, NULL);
    assert_same(m->head.weight, before);
}

static void a_state_that_does_not_fit_is_refused_and_changes_nothing(void **state) {
    net a = {0}, b = {0};
    assert_ok(tn_nn_linear_init(&a.head, LINEAR(4, 2), dev, TN_F32));
    assert_ok(tn_nn_linear_init(&b.head, LINEAR(4, 2), dev, TN_F32));
    a.positions = tn_nn_parameter(tn_zeros(TN_SHAPE(2), TN_F32, dev));
    b.positions = tn_nn_parameter(tn_zeros(TN_SHAPE(3), TN_F32, dev));

    assert_ok(tn_nn_state_save(file_path("head"), &a, visit_other, NULL, 0));
    load_fails(&b, visit_head, TN_ERR_NOT_FOUND, "1 others, such as 'other'", "lacks 0");
    load_fails(&b, visit_other, TN_ERR_SHAPE, "'other' is [2] there and [3]", "other");
    assert_ok(tn_nn_state_load(file_path("head"), &b, visit_head, false));
    assert_same(b.head.weight, a.head.weight);

    assert_ok(tn_nn_state_save(file_path("head"), &a, visit_head, NULL, 0));
    load_fails(&b, visit_other, TN_ERR_NOT_FOUND, "lacks 1", "such as 'other'");
    assert_ok(tn_nn_state_load(file_path("head"), &b, visit_other, false));
    assert_int_equal(tn_nn_state_load(file_path("absent"), &b, visit_other, false),
                     TN_ERR_NOT_FOUND);
    assert_error(TN_ERR_NOT_FOUND, "absent", "does not exist", NULL);
    tn_nn_finish(&a, visit_other);
    tn_nn_finish(&b, visit_other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(every_tensor_has_its_name_in_the_order_of_the_visit),
        OPS_TEST(visits_that_are_wrong_are_refused),
        OPS_TEST(an_optimizer_takes_the_parameters_and_shared_ones_once),
        OPS_TEST(evaluation_reaches_every_module),
        OPS_TEST(a_state_comes_back_bit_for_bit),
        OPS_TEST(a_state_is_cast_to_the_models_dtype),
        OPS_TEST(a_state_that_does_not_fit_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
