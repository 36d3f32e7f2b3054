/* Every differentiable operator of the table against numerical derivatives, first and second, on
 * contiguous and strided inputs; every operator without a derivative: its results need no gradient.
 *
 *   test_gradcheck_ops [DEVICE [OPERATOR | /N]]
 *
 * With /N every Nth check alone. Prints a line for each failure and, as its last, `N passed, N failed`. */
#include "tests/ops/gradcheck_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- samples ----------------------------------------------------------------------------- */

static double uniform(sample *s) {
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(s->state >> 11) * 0x1p-53;
}

static double value(sample *s, fill how, int64_t i, int64_t n) {
    double u = uniform(s);
    switch (how) {
    case FILL_POSITIVE:
        return 0.5 + 1.5 * u;
    case FILL_AWAY:
        return (uniform(s) < 0.5 ? -1 : 1) * (0.3 + 1.7 * u);
    case FILL_APART: /* a permutation of steps of 0.1, moved off every multiple of a tenth */
        return 0.1 * (double)((i * 7 + 3) % (n + (n % 7 == 0)) - n / 2) + 0.03;
    case FILL_UNIT:
        return 0.1 + 0.8 * u;
    case FILL_ABOVE:
        return 1.5 + 1.5 * u;
    default:
        return 4 * u - 2;
    }
}

void make_tensor(sample *s, tn_cell *cell, fill how, int64_t limit, int rank,
                 const int64_t *sizes) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= sizes[d];
    double *reals = calloc((size_t)n + 1, sizeof *reals);
    int64_t *whole = calloc((size_t)n + 1, sizeof *whole);
    uint8_t *flags = calloc((size_t)n + 1, 1);
    for (int64_t i = 0; i < n; i++) {
        reals[i] = value(s, how, i, n);
        whole[i] = (int64_t)(uniform(s) * (double)(limit ? limit : 1));
        flags[i] = uniform(s) < 0.5;
    }
    tn_dtype dtype = how == FILL_MASK ? TN_BOOL : how == FILL_INDEX ? TN_I64 : TN_F64;
    const void *data = how == FILL_MASK ? (void *)flags : how == FILL_INDEX ? (void *)whole : reals;
    tn_tensor *t = tn_from_data(data, tn_ints_of(sizes, rank), dtype, s->device);
    if (s->strided && rank > 0) {
        /* every second element of twice as many */
        tn_tensor *both[2] = {t, t};
        t = tn_select(tn_stack(both, 2, rank), rank, 0);
    }
    free(reals);
    free(whole);
    free(flags);
    t = tn_detach(t);
    if (dtype == TN_F64) {
        tn_set_requires_grad(t, true);
        s->input_cells[s->n_inputs] = cell;
        s->inputs[s->n_inputs++] = t;
    }
    *cell = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = t};
}

/* Cells for the elements of lists, filled by make_tensor. */
static tn_cell elements[MAX_ARGS][MAX_LIST];

void make_list(sample *s, tn_cell *cell, unsigned n) {
    memset(elements[cell - s->args], 0, sizeof elements[0]); /* those that are left out stay NULL */
    *cell = (tn_cell){.tag = TN_CELL_TENSORS, .n = n, .v.pointer = s->lists[cell - s->args]};
}

tn_cell *list_element(sample *s, tn_cell *list, unsigned i) {
    return &elements[list - s->args][i];
}

void make_ints(sample *s, tn_cell *cell, unsigned n, const int64_t *values) {
    memcpy(&s->ints[s->n_ints], values, n * sizeof *values);
    *cell = (tn_cell){.tag = TN_CELL_INTS, .n = n, .v.ints = &s->ints[s->n_ints]};
    s->n_ints += n;
}

void make_string(tn_cell *cell, const char *text) {
    *cell = (tn_cell){.tag = TN_CELL_STRING, .v.string = text};
}

/* ---- one case ---------------------------------------------------------------------------- */

typedef struct call {
    const tn_op *op;
    sample *s;
    bool inplace;
} call;

/* The operator with `inputs` in the places of the sample's, its floating results kept. */
static tn_status run(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                     uint64_t *n_outputs, void *user) {
    call *c = user;
    sample *s = c->s;
    for (uint64_t i = 0; i < n_inputs; i++)
        s->input_cells[i]->v.pointer = inputs[i];
    if (c->inplace) /* a leaf cannot be written */
        s->args[0].v.pointer = tn_clone(s->args[0].v.pointer);
    for (unsigned a = 0; a < MAX_ARGS; a++)
        for (unsigned i = 0; s->args[a].tag == TN_CELL_TENSORS && i < s->args[a].n; i++)
            s->lists[a][i] = elements[a][i].v.pointer;
    tn_cell rets[4] = {{0}};
    unsigned n_args = tn_op_n_args(c->op);
    tn_status status = tn_op_call(c->op, s->args, n_args, rets);
    if (status != TN_OK)
        return status;
    *n_outputs = 0;
    for (unsigned r = 0; r < tn_op_n_rets(c->op); r++) {
        tn_tensor **list =
            rets[r].tag == TN_CELL_TENSORS ? rets[r].v.pointer : (tn_tensor **)&rets[r].v.pointer;
        unsigned n = rets[r].tag == TN_CELL_TENSORS ? rets[r].n : 1;
        for (unsigned i = 0; i < n; i++) {
            tn_tensor *t = tn_give(list[i]);
            if (tn_dtype_of(t) == TN_F64 && tn_requires_grad(t))
                outputs[(*n_outputs)++] = t;
        }
        if (rets[r].tag == TN_CELL_TENSORS)
            tn_free_list(&rets[r]);
    }
    return TN_OK;
}

static bool check(const gradcheck_case *k, tn_device device, bool strided, bool second) {
    TN_SCOPE;
    static sample s;
    s = (sample){.device = device, .strided = strided, .state = 88172645463325252u};
    k->make(&s);
    call c = {tn_op_find(k->op), &s, false};
    const char *dot = strchr(k->op, '.');
    size_t base = dot ? (size_t)(dot - k->op) : strlen(k->op);
    c.inplace = k->op[base - 1] == '_';
    if (!c.op)
        return false;
    if (k->kind == CONSTANT) {
        tn_tensor *outputs[8];
        uint64_t n = 0;
        return run(s.inputs, s.n_inputs, outputs, &n, &c) == TN_OK && n == 0;
    }
    return (second ? tn_gradgradcheck : tn_gradcheck)(run, &c, s.inputs, s.n_inputs, NULL) == TN_OK;
}

int main(int argc, char **argv) {
    tn_device device = tn_device_parse(argc > 1 ? argv[1] : "cpu:0");
    if (device.type == 0) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 1;
    }
    /* an operator, or /N for every Nth check */
    const char *only = argc > 2 && argv[2][0] != '/' ? argv[2] : NULL;
    unsigned every = argc > 2 && !only ? (unsigned)strtoul(argv[2] + 1, NULL, 10) : 1;
    unsigned passed = 0, failed = 0, turn = 0;
    for (unsigned i = 0; i < n_gradcheck_cases; i++) {
        const gradcheck_case *k = &gradcheck_cases[i];
        if (only && strcmp(only, k->op) != 0)
            continue;
        for (int variant = 0; variant < 4; variant++) {
            bool strided = variant & 1, second = variant & 2;
            if ((second && k->kind != SECOND_ORDER) || turn++ % every != 0)
                continue;
            tn_error_clear();
            if (check(k, device, strided, second)) {
                passed++;
                continue;
            }
            failed++;
            printf("%s(%s)%s%s: %s\n", k->op, k->text, strided ? ", strided" : "",
                   second ? ", second derivative" : "", tn_error_message());
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
