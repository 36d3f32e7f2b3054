/* Compares what Tenon computes with what PyTorch did: the lines of data/, on the device that TENON_DEVICE names.
 *
 *   values [--only TEXT] [--every N] [--disturb] DATA...
 *
 * DATA are files of lines (call.h); the values lie beside them, in FILE.bin.gz for FILE.txt. --only takes
 * the lines that begin with TEXT, --every one line in N. With --disturb an element of each result is
 * changed before it is compared, and it is a failure where too few notice. */
#include "tests/values/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MAX_LINE = 2048, MAX_FILES = 32, SHOWN = 60, SKIPPED = 77, MAX_NAMES = 1024 };

typedef struct options {
    const char *only;
    long every;
    bool disturb;
    const char *files[MAX_FILES];
    int n_files;
} options;

typedef struct counts {
    uint64_t calls, comparisons, gradients, tangents, failed, differs, no_better, anything,
        disturbed, noticed;
} counts;

/* Names of operators that lines were seen of, or are done without. */
static char names[MAX_NAMES][NAME_LENGTH];
static uint32_t n_names;

static bool is_named(const char *name) {
    for (uint32_t i = n_names; i-- > 0;) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static void note_name(const char *name, size_t length) {
    if (n_names < MAX_NAMES)
        snprintf(names[n_names], NAME_LENGTH, "%.*s", (int)length, name);
    if (n_names < MAX_NAMES && !is_named(names[n_names]))
        n_names++;
}

/* ---- a call ------------------------------------------------------------------------------ */

typedef struct run {
    const options *o;
    counts *counts;
    call *c;
    tn_device device;
    char type[64]; /* of the device: "cpu:0" */
    const tn_op *op;
    promise promise;
} run;

static void report(run *r, const char *what, const char *why) {
    if (r->o->disturb)
        return;
    if (r->counts->failed++ < SHOWN)
        printf("FAIL %s\n     %s%s\n", r->c->text, what, why);
}

/* Puts the inputs into the arguments; with `leaves`, as what gradients are wanted of. */
static bool place(run *r, tn_tensor **leaves, uint64_t *n_leaves) {
    call *c = r->c;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        tn_tensor *t = input_place(&c->inputs[i], r->device);
        if (leaves && (TN_DTYPES_FLOAT & TN_DTYPE_BIT(c->inputs[i].dtype))) {
            t = tn_set_requires_grad(tn_detach(t), true);
            leaves[(*n_leaves)++] = t;
        }
        if (!t)
            return false;
        if (c->places[i])
            *c->places[i] = t;
        else
            *c->cells[i] = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = t};
    }
    return true;
}

typedef struct written {
    const call *c;
    tn_tensor **out;
    uint32_t n;
} written;

static void take_written(const tn_op_info *info, void *user) {
    written *w = user;
    for (uint32_t i = 0; i < info->n_args && i < w->c->n_args; i++) {
        if (info->args[i].is_written)
            w->out[w->n++] = w->c->args[i].v.pointer;
    }
}

/* What the call returns, or where that is nothing, what it writes; of the scope. -1: an error. */
static int make_call(run *r, tn_tensor **out) {
    tn_cell rets[8] = {{0}};
    uint32_t n = 0;
    if (tn_op_call(r->op, r->c->args, tn_op_n_args(r->op), rets) != TN_OK)
        return -1;
    for (uint32_t i = 0; i < tn_op_n_rets(r->op); i++) {
        bool is_list = rets[i].tag == TN_CELL_TENSORS;
        tn_tensor **list = is_list ? rets[i].v.pointer : (tn_tensor **)&rets[i].v.pointer;
        for (uint32_t k = 0; k < (is_list ? rets[i].n : 1); k++) {
            if (list[k] && n < MAX_RESULTS) /* NULL: none was asked for */
                out[n++] = tn_give(list[k]);
        }
        if (is_list)
            tn_free_list(&rets[i]);
    }
    if (n == 0) {
        written w = {.c = r->c, .out = out};
        tn_op_describe(r->c->name, take_written, &w);
        n = w.n;
    }
    return (int)n;
}

/* Compares tensors with what is expected of them; a NULL is a gradient that there is none of, zeros. */
static void check(run *r, const char *what, const expected *e, uint32_t n, tn_tensor **got) {
    comparison all = {0};
    uint32_t i = 0;
    for (; i < n && !all.failed; i++) {
        if (e[i].how == EXPECT_NONE)
            continue;
        tn_tensor *t = got[i];
        if (!t)
            t = tn_zeros(tn_ints_of(e[i].sizes, e[i].rank), e[i].dtype, r->device);
        compare(&r->promise, &e[i], t, r->o->disturb, &all);
    }
    r->counts->comparisons++;
    r->counts->no_better += !all.failed && all.is_no_better;
    r->counts->anything += (uint64_t)all.n_anything;
    r->counts->disturbed += all.is_disturbed;
    r->counts->noticed += all.is_disturbed && all.failed;
    if (r->o->disturb && r->o->only && all.is_disturbed && !all.failed)
        printf("not noticed: %s%s\n", what, r->c->text);
    if (all.failed) {
        char which[64];
        snprintf(which, sizeof which, "%s %u: ", what, i - 1);
        report(r, which, all.why);
    }
}

static void check_results(run *r) {
    TN_SCOPE;
    tn_tensor *got[MAX_RESULTS];
    int n = place(r, NULL, NULL) ? make_call(r, got) : -1;
    if (n < 0)
        report(r, "refused: ", tn_error_message());
    else if ((uint32_t)n != r->c->n_results)
        report(r, "another number of results", "");
    else
        check(r, "result", r->c->results, (uint32_t)n, got);
    tn_error_clear();
}

static void check_gradients(run *r) {
    TN_SCOPE;
    tn_tensor *leaves[MAX_INPUTS], *got[MAX_RESULTS], *roots[MAX_RESULTS], *upstream[MAX_RESULTS],
        *grads[MAX_INPUTS] = {0};
    uint64_t n_leaves = 0, n_roots = 0;
    int n = place(r, leaves, &n_leaves) ? make_call(r, got) : -1;
    for (int i = 0; i < n; i++) {
        if (!tn_requires_grad(got[i]))
            continue;
        input up = {.kind = "any",
                    .dtype = tn_dtype_of(got[i]),
                    .rank = (int32_t)tn_rank(got[i]),
                    .seed = 1 + n_roots};
        memcpy(up.sizes, tn_sizes(got[i]).data, (size_t)up.rank * sizeof *up.sizes);
        upstream[n_roots] = input_place(&up, r->device);
        roots[n_roots++] = got[i];
    }
    r->counts->gradients++;
    if (n < 0)
        report(r, "refused: ", tn_error_message());
    else if (n_roots == 0)
        report(r, "no result requires a gradient", "");
    else if (tn_gradients(roots, upstream, n_roots, leaves, n_leaves, false, false, true, grads) !=
             TN_OK)
        report(r, "backward: ", tn_error_message());
    else if (n_leaves != r->c->n_gradients)
        report(r, "another number of gradients", "");
    else
        check(r, "gradient", r->c->gradients, (uint32_t)n_leaves, grads);
    tn_error_clear();
}

/* ---- forward mode ------------------------------------------------------------------------ */

/* The call as a function of its floating inputs, of whose results those that float count. */
static tn_status call_on(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                         uint64_t n_outputs, void *user) {
    run *r = user;
    tn_tensor *got[MAX_RESULTS];
    uint64_t n_taken = 0, n_given = 0;
    for (uint32_t i = 0; i < r->c->n_inputs && n_taken < n_inputs; i++) {
        if (!(TN_DTYPES_FLOAT & TN_DTYPE_BIT(r->c->inputs[i].dtype)))
            continue;
        tn_tensor *t = inputs[n_taken++];
        if (r->c->places[i])
            *r->c->places[i] = t;
        else
            r->c->cells[i]->v.pointer = t;
    }
    int n = make_call(r, got);
    for (int i = 0; i < n && n_given < n_outputs; i++) {
        if (TN_DTYPES_FLOAT & TN_DTYPE_BIT(tn_dtype_of(got[i])))
            outputs[n_given++] = got[i];
    }
    return n < 0 ? tn_error_status() : TN_OK;
}

static void check_tangents(run *r) {
    TN_SCOPE;
    tn_tensor *leaves[MAX_INPUTS], *along[MAX_INPUTS], *outputs[MAX_RESULTS], *got[MAX_RESULTS];
    uint64_t n_leaves = 0;
    bool placed = place(r, leaves, &n_leaves);
    for (uint64_t i = 0; placed && i < n_leaves; i++) {
        input v = {.kind = "any",
                   .dtype = tn_dtype_of(leaves[i]),
                   .rank = (int32_t)tn_rank(leaves[i]),
                   .seed = 101 + i};
        memcpy(v.sizes, tn_sizes(leaves[i]).data, (size_t)v.rank * sizeof *v.sizes);
        along[i] = input_place(&v, r->device);
    }
    r->counts->tangents++;
    if (!placed ||
        tn_jvp(call_on, r, leaves, along, n_leaves, false, outputs, got, r->c->n_tangents) != TN_OK)
        report(r, "forward mode: ", tn_error_message());
    else
        check(r, "tangent", r->c->tangents, r->c->n_tangents, got);
    tn_error_clear();
}

static void run_call(run *r) {
    call *c = r->c;
    r->op = tn_op_find(c->name);
    r->promise = (promise){.op = promised(c->name)};
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        double numel = 1;
        for (int32_t d = 0; d < c->inputs[i].rank; d++)
            numel *= (double)c->inputs[i].sizes[d];
        r->promise.n = numel > r->promise.n ? numel : r->promise.n;
    }
    r->counts->calls++;
    r->counts->differs += c->differs;
    if (!r->op) {
        report(r, "", tn_error_message());
        return;
    }
    if (r->promise.op && !(r->promise.op->flags & (TC_COMPOSITE | TC_VIEW)) && c->n_results)
        r->promise.in_steps = !tc_has_kernel(r->promise.op->name, r->type, c->results[0].dtype);
    check_results(r);
    if (c->n_gradients) {
        r->promise.is_gradient = true;
        check_gradients(r);
    }
    if (c->n_tangents) {
        r->promise.is_gradient = true;
        check_tangents(r);
    }
}

/* ---- files ------------------------------------------------------------------------------- */

/* The whole of FILE.bin.gz, for the lines of FILE.txt. */
static uint8_t *read_values(const char *lines, uint64_t *out_size) {
    char path[1024];
    snprintf(path, sizeof path, "%.*s.bin.gz", (int)(strlen(lines) - strlen(".txt")), lines);
    gzFile file = gzopen(path, "rb");
    uint64_t size = 0, room = 1 << 20;
    uint8_t *data = malloc(room);
    int n = -1;
    while (file && data && (n = gzread(file, data + size, (unsigned)(room - size))) > 0) {
        size += (uint64_t)n;
        if (size == room) {
            uint8_t *more = realloc(data, room *= 2);
            if (!more)
                free(data);
            data = more;
        }
    }
    if (file)
        gzclose(file);
    if (n == 0 && data) {
        *out_size = size;
        return data;
    }
    printf("%s cannot be read\n", path);
    free(data);
    return NULL;
}

static bool is_taken(const run *r, const char *line, long number) {
    if (r->o->only && strncmp(line, r->o->only, strlen(r->o->only)) != 0)
        return false;
    return number % r->o->every == 0;
}

/* Gives each expectation its bytes. */
static bool locate(expected *e, uint32_t n, const uint8_t *values, uint64_t size, uint64_t *at) {
    for (uint32_t i = 0; i < n; i++) {
        e[i].data = values + *at;
        *at += expected_bytes(&e[i]);
    }
    return *at <= size;
}

static bool run_file(run *r, const char *path) {
    static call c;
    char line[MAX_LINE], why[128];
    uint64_t size = 0, at = 0;
    uint8_t *values = read_values(path, &size);
    FILE *file = values ? fopen(path, "r") : NULL;
    bool is_good = file != NULL;
    for (long number = 1; is_good && fgets(line, sizeof line, file); number++) {
        static const char without[] = "# without: ";
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, without, strlen(without)) == 0)
            note_name(line + strlen(without), strcspn(line + strlen(without), ":"));
        if (line[0] == '#')
            continue;
        is_good = call_read(line, &c, why);
        if (!is_good) {
            printf("%s:%ld: %s\n", path, number, why);
            break;
        }
        is_good = locate(c.results, c.n_results, values, size, &at) &&
                  locate(c.gradients, c.n_gradients, values, size, &at) &&
                  locate(c.tangents, c.n_tangents, values, size, &at);
        if (!is_good)
            printf("%s:%ld: the values end before\n", path, number);
        note_name(c.name, strlen(c.name));
        r->c = &c;
        if (is_good && is_taken(r, line, number))
            run_call(r);
    }
    if (is_good && at != size) {
        printf("%s: there are more values than lines\n", path);
        is_good = false;
    }
    if (file)
        fclose(file);
    free(values);
    return is_good;
}

/* ---- all of them ------------------------------------------------------------------------- */

static void check_name(const tn_op_info *info, void *user) {
    if (is_named(info->name) || strcmp(info->kind, "custom") == 0)
        return;
    printf("FAIL %s: no line has it, and none says why: see tests/values/README.md\n", info->name);
    ++*(uint64_t *)user;
}

static bool read_options(int argc, char **argv, options *o) {
    *o = (options){.every = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--disturb") == 0)
            o->disturb = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc)
            o->every = strtol(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && o->n_files < MAX_FILES)
            o->files[o->n_files++] = argv[i];
        else
            return false;
    }
    return o->every > 0 && o->n_files > 0;
}

int main(int argc, char **argv) {
    options o;
    counts n = {0};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: values [--only TEXT] [--every N] [--disturb] DATA.txt...\n");
        return 2;
    }
    run r = {.o = &o, .counts = &n, .device = tn_default_device()};
    if (!r.device.type) {
        printf("skipped: %s\n", tn_error_message());
        return SKIPPED;
    }
    tn_device_name(r.device, r.type, sizeof r.type);
    bool is_good = true;
    for (int i = 0; i < o.n_files; i++)
        is_good &= run_file(&r, o.files[i]);
    if (!o.only)
        tn_op_list(check_name, &n.failed);
    printf("%s: %llu calls, %llu comparisons (%llu of gradients, %llu of forward mode), %llu "
           "failed\n",
           r.type, (unsigned long long)n.calls, (unsigned long long)n.comparisons,
           (unsigned long long)n.gradients, (unsigned long long)n.tangents,
           (unsigned long long)n.failed);
    printf("%llu calls differ from PyTorch by a rule; %llu comparisons are as near as PyTorch, not "
           "within the "
           "bound; %llu elements have no expectation\n",
           (unsigned long long)n.differs, (unsigned long long)n.no_better,
           (unsigned long long)n.anything);
    if (o.disturb) {
        printf("disturbed: %llu of %llu noticed\n", (unsigned long long)n.noticed,
               (unsigned long long)n.disturbed);
        is_good &= n.noticed > 0 && n.noticed >= n.disturbed / 100 * 99;
    }
    tn_shutdown();
    return !is_good || n.failed || !n.comparisons;
}
