/* contract/kernel-large: kernels that count elements, or bytes, in 32 bits. Outputs of one byte an element and of more
 * than 2^32 elements, dense and in rows with gaps, whose inputs are one row that is read again and again; of what came
 * out places are read back that lie where counters turn over, at both ends, and anywhere. Lines of kernel/ with few
 * elements that lie as far apart are far.c's. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 65536 + 16, COLUMNS = 65536, GAP = 4, BEFORE = 0x11 };
enum { WINDOW = 1 << 17, ANYWHERE = 32 };

/* Seconds for all of them; what takes longer is told from the call of so many times fewer rows. */
enum { PATIENCE = 10, FEWER = 64 };

/* Calls of four rows, which then have ROWS of them. */
static const struct large {
    const char *line;
    int64_t pitch;
    int value; /* of each element afterwards; that of the input's row is added */
} larges[] = {
    {"kernel/fill T=u8 out=[4,65536]/[65540,1] value=7", COLUMNS + GAP, 7},
    {"kernel/neg T=i8 in-place=self self=[4,65536]", COLUMNS, -BEFORE},
    {"kernel/copy D=i8 S=i8 out=[4,65536] self=[4,65536]/[0,1]", COLUMNS, 0},
    {"kernel/copy D=bool S=bool out=[4,65536]/[65540,1] self=[4,65536]/[0,1]", COLUMNS + GAP, 0},
    {"kernel/add T=i8 alpha=1 in-place=self other=[4,65536]/[0,1] self=[4,65536]", COLUMNS, BEFORE},
};
enum { N_LARGE = sizeof larges / sizeof *larges };

typedef struct scene {
    tc_contract *k;
    const struct large *large;
    tc_invocation call;
    tc_placed placed;
    tn_memory memory; /* for ROWS rows with gaps */
    int64_t sizes[2], strides[2];
    unsigned char row[COLUMNS]; /* that each row is afterwards */
} scene;

static uint64_t bytes_of(const scene *n) {
    return (uint64_t)ROWS * (uint64_t)n->large->pitch;
}

/* ---- the call ---------------------------------------------------------------------------- */

static void find_row(scene *n) {
    const tc_invocation *call = &n->call;
    memset(n->row, n->large->value, sizeof n->row);
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        const tc_operand *o = &call->args[a].tensor;
        bool is_row = call->record->args[a].kind == TC_ARG_TENSOR && call->in_place != (int32_t)a;
        for (int i = 0; i < COLUMNS && is_row; i++)
            n->row[i] = (unsigned char)(n->row[i] + o->image[o->shape.offset + i]);
    }
}

/* So many rows, in the large allocation where they are written. */
static void enlarge(scene *n, int64_t rows) {
    tc_placed *p = &n->placed;
    n->sizes[0] = rows;
    n->sizes[1] = COLUMNS;
    n->strides[0] = n->large->pitch;
    n->strides[1] = 1;
    for (uint32_t a = 0; a < n->call.record->n_args; a++) {
        p->arg_views[a].sizes = n->sizes;
        p->arg_views[a].numel = rows * COLUMNS;
    }
    tn_tensor_view *views[] = {&p->out_views[0],
                               n->call.in_place >= 0 ? &p->arg_views[n->call.in_place] : NULL};
    for (int i = 0; i < 2; i++)
        if (views[i]) {
            views[i]->memory = n->memory;
            views[i]->offset = 0;
            views[i]->sizes = n->sizes;
            views[i]->numel = rows * COLUMNS;
            views[i]->strides = n->strides;
        }
}

static bool place(scene *n) {
    tc_contract *k = n->k;
    tc_case c;
    char why[TC_MESSAGE];
    tc_verdict none = {.status = TC_PASS};
    if (!tc_case_parse(n->large->line, &c, why) ||
        !tc_invocation_parse(&c, &k->arena, &n->call, why) ||
        !tc_fill_for(k->subject, &n->call, n->call.seed, why))
        return TC_CASE_ERROR(k->out, "%s: %s", n->large->line, why);
    bool placed = tc_place_call(k->subject, k->subject->stream, &n->call, &n->placed, &none);
    while (placed && !(n->placed.kernel->flags & TN_KERNEL_INDEX64))
        placed = tc_next_record(&n->placed);
    if (none.status == TC_FAIL || none.status == TC_ERROR)
        tc_verdict_set(k->out, none.status, none.requirement, "%s", none.message);
    return placed;
}

/* False also where it declines. */
static bool call_it(scene *n, int64_t rows, double *out_seconds) {
    tc_contract *k = n->k;
    bool declined = false;
    enlarge(n, rows);
    double start = tc_now();
    if (!tc_supports_placed(&n->placed) || !tc_ready_call(&n->placed, &declined, k->out) ||
        declined)
        return false;
    tn_status status = tc_run_placed(&n->placed);
    if (status == TN_ERR_UNSUPPORTED ||
        !tc_must(k, TNP_KERNEL_INDEX64, status, "run of a call of more than 2^32 elements") ||
        !tc_must(k, TNP_KERNEL_INDEX64, tc_subject_sync(k->subject),
                 "synchronize behind a call of more than 2^32 elements"))
        return false;
    *out_seconds = tc_now() - start;
    return true;
}

/* ---- what came out ----------------------------------------------------------------------- */

static bool check_window(scene *n, uint64_t at, unsigned char *window) {
    tc_contract *k = n->k;
    const tc_subject *s = k->subject;
    uint64_t pitch = (uint64_t)n->large->pitch;
    if (!tc_must(k, TNP_READ_COMPLETE,
                 s->memory->copy_to_host(s->device, s->stream, window, 0, n->memory, at, WINDOW),
                 "read"))
        return false;
    for (uint64_t i = 0; i < WINDOW; i++) {
        uint64_t row = (at + i) / pitch, column = (at + i) % pitch;
        unsigned expected = column < COLUMNS ? n->row[column] : BEFORE;
        if (window[i] != expected)
            return TC_BROKEN(k, TNP_KERNEL_INDEX64,
                             "%.20s of [%d, %d] elements of a byte: at [%llu, %llu] is 0x%02x, "
                             "expected 0x%02x",
                             n->placed.kernel->op, ROWS, COLUMNS, (unsigned long long)row,
                             (unsigned long long)column, window[i], expected);
    }
    return true;
}

static void check(scene *n) {
    tc_contract *k = n->k;
    uint64_t last = bytes_of(n) - WINDOW, pitch = (uint64_t)n->large->pitch;
    unsigned char *window = tc_arena_bytes(&k->arena, WINDOW);
    if (!window)
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
    bool good = window && check_window(n, 0, window);
    for (int bits = 31; bits <= 32 && good; bits++) {
        uint64_t bytes = UINT64_C(1) << bits, elements = bytes / COLUMNS * pitch;
        good = check_window(n, bytes - WINDOW / 2, window) &&
               check_window(n, elements - WINDOW / 2, window);
    }
    good = good && check_window(n, last, window);
    for (int i = 0; i < ANYWHERE && good; i++)
        good = check_window(n, tc_next(&k->random) % last, window);
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool fill_before(scene *n) {
    const tc_subject *s = n->k->subject;
    return tc_must(n->k, TNP_FILL_VALUE,
                   s->memory->fill(s->device, s->stream, n->memory, 0, BEFORE, bytes_of(n)),
                   "fill of more than 2^32 bytes");
}

/* False where the device takes too long. */
static bool one(scene *n, double *left) {
    double few = 0, all;
    bool in_time = true;
    if (place(n) && call_it(n, ROWS / FEWER, &few)) {
        in_time = few * FEWER <= *left;
        *left -= few * FEWER;
        find_row(n);
        if (in_time && fill_before(n) && call_it(n, ROWS, &all))
            check(n);
    }
    if (n->placed.subject) {
        tc_subject_sync(n->k->subject);
        tc_unplace(&n->placed);
    }
    return in_time;
}

static bool read_number(const char *path, const char *name, uint64_t *out) {
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        size_t n = strlen(name);
        found = strncmp(line, name, n) == 0 && sscanf(line + n, "%" SCNu64, out) == 1;
    }
    if (file)
        fclose(file);
    return found;
}

/* What the machine has, and the group of processes (cgroups of either version) may still take: many a device has its
 * memory from there, and who takes more is killed. */
static uint64_t host_left(void) {
    static const char *const limits[][2] = {
        {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
         "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
    };
    uint64_t left, most, used;
    left = read_number("/proc/meminfo", "MemAvailable:", &left) ? left * 1024 : UINT64_MAX;
    for (int i = 0; i < 2; i++)
        if (read_number(limits[i][0], "", &most) && read_number(limits[i][1], "", &used)) {
            uint64_t rest = most > used ? most - used : 0;
            left = rest < left ? rest : left;
        }
    return left;
}

static void large(tc_contract *k) {
    tc_subject *s = k->subject;
    uint64_t bytes = (uint64_t)ROWS * (COLUMNS + GAP);
    scene *n = tc_arena_array(&k->arena, 1, sizeof *n);
    void *host;
    double left = PATIENCE;
    if (!n) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    if (tc_free_bytes(s) / 4 * 3 < bytes || host_left() / 4 * 3 < bytes) { /* others want some */
        TC_NOT_OFFERED(k, "6 GiB of memory are not free");
        return;
    }
    n->k = k;
    tn_status status = tc_alloc(s, TN_SPACE_DEVICE, bytes, &n->memory, &host);
    if (status == TN_ERR_OUT_OF_MEMORY) {
        TC_NOT_OFFERED(k, "the device gives no 4 GiB in one piece");
        return;
    }
    if (!tc_must(k, TNP_ALLOC_HANDLE, status, "alloc of more than 2^32 bytes"))
        return;
    int tried = 0;
    for (bool in_time = true; tried < N_LARGE && in_time && !tc_failed(k); tried += in_time) {
        memset(&n->placed, 0, sizeof n->placed);
        n->large = &larges[tried];
        in_time = one(n, &left);
    }
    tc_subject_sync(s);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, n->memory);
    if (tried == 0 && !tc_failed(k))
        TC_NOT_OFFERED(k, "the device takes too long for 2^32 elements");
}

const tc_contract_row tc_kernel_large_rows[] = {{"kernel-large", "", TC_STANDARD, large}, {0}};
