/* Every pointwise operator, in every dtype, layout and way of calling it, against the table. */
#include "pointwise_table.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const pointwise *row; /* the one under test */

static int n_outputs(void) {
    return row->n_out ? row->n_out : 1;
}

static int n_variants(void) {
    return row->n_variants ? row->n_variants : 1;
}

static tn_dtype dtype_of_input(int k, tn_dtype dtype) {
    return k == 0 && row->bool_in ? TN_BOOL : dtype;
}

static double ulps_of(tn_dtype dtype) {
    return dtype == TN_F16 || dtype == TN_BF16 ? row->half_ulps : row->ulps;
}

/* Floating numbers of the row's range, in eighths where it is wide: many quotients are then whole.
 * Integers: small ones and ones of all bits. */
static operand *random_input(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l) {
    operand *o = operand_random(dtype, rank, sizes, l, row->low, row->high);
    for (int64_t i = 0; i < o->numel; i++) {
        number x = o->values[i];
        if (is_float(dtype) && row->high - row->low > 50)
            x.f = nearbyint(x.f * 8) / 8;
        else if (!is_float(dtype))
            x.i = i % 2 ? (int64_t)(random_u64() % 15) - 7 : (int64_t)random_u64();
        if (dtype == TN_BOOL)
            x.i &= 1;
        operand_set(o, i, x);
    }
    operand_upload(o);
    return o;
}

/* One call. Inputs of which `in` is NULL arrive as `scalars`; outputs may be inputs. */
typedef struct work {
    tn_dtype dtype;
    int variant;
    operand *in[MAX_IN], *out[MAX_OUTS];
    tn_cell scalars[MAX_IN];
} work;

static number of_cell(const tn_cell *cell, tn_dtype dtype) {
    const number n = {cell->tag == TN_CELL_F64 ? cell->v.f64 : (double)cell->v.i64,
                      cell->tag == TN_CELL_F64 ? (int64_t)cell->v.f64 : cell->v.i64};
    int64_t element[1] = {0};
    set(dtype, element, 0, n);
    return get(dtype, element, 0);
}

static void run_and_check(work *w) {
    tn_cell args[MAX_ARGS];
    for (int k = 0; k < row->n_in; k++)
        args[k] = w->in[k] ? cell_of(w->in[k]) : w->scalars[k];
    tn_cell *attrs = args + row->n_in;
    *attrs = mini_none();
    const uint32_t n_attrs = row->attrs ? row->attrs(w->variant, is_float(w->dtype), attrs) : 0;

    const int64_t n = w->out[0]->numel;
    number *expected[MAX_OUTS];
    double *scales[MAX_OUTS];
    for (int k = 0; k < n_outputs(); k++) {
        expected[k] = scratch((size_t)n * sizeof *expected[k]);
        scales[k] = scratch((size_t)n * sizeof *scales[k]);
    }
    for (int64_t i = 0; i < n; i++) {
        number x[MAX_IN] = {{0}}, r[MAX_OUTS] = {{0}};
        double scale[MAX_OUTS] = {-1, -1, -1};
        for (int k = 0; k < row->n_in; k++)
            x[k] = w->in[k] ? w->in[k]->values[i]
                            : of_cell(&w->scalars[k], dtype_of_input(k, w->dtype));
        row->f(x, attrs, r, scale);
        for (int k = 0; k < n_outputs(); k++) {
            expected[k][i] = r[k];
            scales[k][i] = scale[k] < 0 ? fabs(r[k].f) : fmax(scale[k], fabs(r[k].f));
        }
    }
    assert_ok(call_kernel(row->op, w->dtype, TN_DTYPE_NONE, (uint32_t)row->n_in + n_attrs, args,
                          (uint32_t)n_outputs(), w->out));
    for (int k = 0; k < n_outputs(); k++)
        check_elements(w->out[k], expected[k], scales[k], ulps_of(w->dtype));
    for (int k = 0; k < row->n_in; k++) {
        bool is_output = !w->in[k];
        for (int o = 0; o < n_outputs(); o++)
            is_output |= w->in[k] == w->out[o];
        if (!is_output)
            check_untouched(w->in[k]);
    }
}

static void for_rows(void (*each)(tn_dtype dtype)) {
    for (int i = 0; i < n_pointwise; i++) {
        row = &pointwise_table[i];
        for_dtypes(row->op, each);
    }
}

/* ---- layouts -------------------------------------------------------------------------------- */

/* Sizes straddle vectors (7, 1003), the length from which rows are taken one by one (128), blocks
 * (512), and what is worth a thread for operators that are dear (4096). */
static const struct {
    int32_t rank;
    int64_t sizes[4];
} shapes[] = {
    {1, {1}},    {1, {7}},       {1, {1003}},       {2, {5, 129}},
    {2, {1, 9}}, {3, {3, 1, 6}}, {4, {2, 3, 4, 5}}, {2, {67, 130}},
};

static operand *output(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l) {
    return operand_out(row->bool_out ? TN_BOOL : dtype, rank, sizes, l);
}

static void in_every_layout(tn_dtype dtype) {
    for (int s = 0; s < LENGTH(shapes); s++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            describe("%s, dtype %d, shape %d, layout %d", row->op, dtype, s, l);
            work w = {.dtype = dtype, .variant = l % n_variants()};
            for (int k = 0; k < row->n_in; k++)
                w.in[k] = random_input(dtype_of_input(k, dtype), shapes[s].rank, shapes[s].sizes,
                                       (layout)((l + 2 * k) % N_LAYOUTS));
            for (int k = 0; k < n_outputs(); k++)
                w.out[k] = output(dtype, shapes[s].rank, shapes[s].sizes,
                                  (layout)((l + k) % N_OUT_LAYOUTS));
            run_and_check(&w);
            case_end(NULL);
        }
}

static void every_layout_agrees_with_the_reference(void **state) {
    for_rows(in_every_layout);
}

static void in_place(tn_dtype dtype) {
    const int64_t sizes[] = {9, 131};
    if (row->bool_out || !(flags_of(row->op, dtype) & TN_KERNEL_IN_PLACE))
        return;
    for (int l = 0; l < N_OUT_LAYOUTS; l++)
        for (int target = 0; target < row->n_in; target++) {
            if (dtype_of_input(target, dtype) != dtype)
                continue;
            describe("%s, dtype %d, layout %d, onto input %d", row->op, dtype, l, target);
            work w = {.dtype = dtype};
            for (int k = 0; k < row->n_in; k++)
                w.in[k] = random_input(dtype_of_input(k, dtype), 2, sizes,
                                       k == target || n_outputs() > 1 ? (layout)l : DENSE);
            /* Further outputs onto further inputs, as an optimizer's state. */
            for (int k = 0; k < n_outputs(); k++)
                w.out[k] = w.in[(target + k) % row->n_in];
            run_and_check(&w);
            case_end(NULL);
        }
}

static void outputs_may_be_inputs(void **state) {
    for_rows(in_place);
}

static void same_input_twice(tn_dtype dtype) {
    const int64_t n = 300;
    if (row->n_in < 2 || row->bool_in)
        return;
    describe("%s, dtype %d, of one tensor", row->op, dtype);
    work w = {.dtype = dtype, .out = {output(dtype, 1, &n, DENSE)}};
    w.in[0] = random_input(dtype, 1, &n, DENSE);
    for (int k = 1; k < row->n_in; k++)
        w.in[k] = w.in[0];
    for (int k = 1; k < n_outputs(); k++)
        w.out[k] = output(dtype, 1, &n, DENSE);
    run_and_check(&w);
}

static void inputs_may_be_one_tensor(void **state) {
    for_rows(same_input_twice);
}

/* ---- scalars -------------------------------------------------------------------------------- */

static void with_scalars(tn_dtype dtype) {
    const tn_cell values[] = {mini_i64(3), mini_f64(is_float(dtype) ? 1.7 : 2.0), mini_bool(true)};
    const int64_t sizes[] = {3, 70};
    if (row->n_in < 2 || !(flags_of(row->op, dtype) & TN_KERNEL_SCALARS))
        return;
    for (int c = 0; c < LENGTH(values); c++)
        for (int position = 0; position < row->n_in; position++) {
            describe("%s, dtype %d, cell %d as input %d", row->op, dtype, c, position);
            work w = {.dtype = dtype};
            for (int k = 0; k < row->n_in; k++)
                if (k != position)
                    w.in[k] = random_input(dtype_of_input(k, dtype), 2, sizes, (layout)c);
            w.scalars[position] = values[c];
            for (int k = 0; k < n_outputs(); k++)
                w.out[k] = output(dtype, 2, sizes, DENSE);
            run_and_check(&w);
            case_end(NULL);
        }
}

static void one_input_may_be_a_scalar(void **state) {
    for_rows(with_scalars);
}

/* ---- special values ------------------------------------------------------------------------- */

/* The numbers that operators go wrong at, for a dtype; returns how many. */
static int special_values(tn_dtype dtype, number *out) {
    static const double floats[] = {NAN, INFINITY, -INFINITY, 0,   -0.0,  1,
                                    -1,  0.5,      -2.5,      3.0, 0.125, -7};
    const int bits = 8 * (int)mini_dtype_bytes(dtype);
    const int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
    const int64_t integers[] = {0, 1, 2, -1, -2, 7, top, top - 1, -top, -top - 1};
    int n = 0;
    if (is_float(dtype)) {
        for (; n < LENGTH(floats); n++)
            out[n] = (number){.f = floats[n]};
        if (row->specials == EXTREME) {
            const double large = dtype == TN_F64   ? DBL_MAX
                                 : dtype == TN_F32 ? FLT_MAX
                                 : dtype == TN_F16 ? 65504
                                                   : 0x1.fep127;
            const double small = smallest_normal(dtype);
            const double more[] = {large, -large, small, small * epsilon(dtype)};
            for (int k = 0; k < LENGTH(more); k++)
                out[n++] = (number){.f = more[k]};
        }
        return n;
    }
    if (dtype == TN_BOOL) {
        out[0] = (number){.i = 0};
        out[1] = (number){.i = 1};
        return 2;
    }
    for (; n < LENGTH(integers); n++)
        out[n] = (number){.i = integers[n]};
    return n;
}

/* All pairs of them; a third and fourth input go through them at another pace. */
static void special(tn_dtype dtype) {
    number values[24];
    const int n = special_values(dtype, values);
    const int64_t numel = n * n;
    if (is_float(dtype) && row->specials == PLAIN)
        return;
    for (int v = 0; v < n_variants(); v++) {
        describe("%s, dtype %d, special values, variant %d", row->op, dtype, v);
        work w = {.dtype = dtype, .variant = v};
        for (int k = 0; k < row->n_in; k++) {
            w.in[k] = operand_create(dtype_of_input(k, dtype), 1, &numel, DENSE);
            for (int64_t i = 0; i < numel; i++) {
                number x = values[k == 0 ? i % n : k == 1 ? i / n : (3 * i + i / n) % n];
                if (k == 0 && row->bool_in)
                    x = (number){.i = i % 3 != 0};
                operand_set(w.in[k], i, x);
            }
            operand_upload(w.in[k]);
        }
        for (int k = 0; k < n_outputs(); k++)
            w.out[k] = output(dtype, 1, &numel, DENSE);
        run_and_check(&w);
        case_end(NULL);
    }
}

static void special_values_come_out_as_in_the_table(void **state) {
    for_rows(special);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void on_threads(tn_dtype dtype) {
    const int64_t sizes[] = {3, 13007}; /* more than one share of cheap work */
    const uint64_t computed_in = TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64) |
                                 TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_I32) |
                                 TN_DTYPE_BIT(TN_BOOL);
    void *alone = NULL;
    if (!(computed_in & TN_DTYPE_BIT(dtype)))
        return;
    operand *in[MAX_IN] = {NULL};
    for (int k = 0; k < row->n_in; k++)
        in[k] = random_input(dtype_of_input(k, dtype), 2, sizes, k % 2 ? PERMUTED : DENSE);
    for (uint32_t n = 1; n <= 4; n += 3) {
        describe("%s, dtype %d, %u threads", row->op, dtype, n);
        use_threads(n);
        work w = {.dtype = dtype};
        memcpy(w.in, in, sizeof in);
        for (int k = 0; k < n_outputs(); k++)
            w.out[k] = output(dtype, 2, sizes, DENSE);
        run_and_check(&w);
        void *now = elements_of(w.out[0]);
        const size_t bytes = (size_t)w.out[0]->numel * (size_t)mini_dtype_bytes(w.out[0]->dtype);
        if (alone && memcmp(now, alone, bytes) != 0)
            fail_msg("%s: other bits than on one thread", description());
        alone = now;
    }
    use_threads(THREADS);
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    for_rows(on_threads);
}

int test_pointwise(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_layout_agrees_with_the_reference),
        TEST(outputs_may_be_inputs),
        TEST(inputs_may_be_one_tensor),
        TEST(one_input_may_be_a_scalar),
        TEST(special_values_come_out_as_in_the_table),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
