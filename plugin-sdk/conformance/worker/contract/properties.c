/* Device properties: ranges, stability, and that unknown ones are refused. */
#include "plugin-sdk/conformance/worker/contract/properties.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct property {
    const char *name;
    uint32_t tag;
} properties[] = {
    [TN_PROP_NAME] = {"TN_PROP_NAME", TN_CELL_STRING},
    [TN_PROP_ALIGNMENT] = {"TN_PROP_ALIGNMENT", TN_CELL_I64},
    [TN_PROP_MAX_ALLOCATION] = {"TN_PROP_MAX_ALLOCATION", TN_CELL_I64},
    [TN_PROP_COMPUTE_UNITS] = {"TN_PROP_COMPUTE_UNITS", TN_CELL_I64},
    [TN_PROP_DTYPES] = {"TN_PROP_DTYPES", TN_CELL_I64},
    [TN_PROP_UNIFIED_MEMORY] = {"TN_PROP_UNIFIED_MEMORY", TN_CELL_BOOL},
    [TN_PROP_FLUSHES_SUBNORMALS] = {"TN_PROP_FLUSHES_SUBNORMALS", TN_CELL_I64},
    [TN_PROP_SPACES] = {"TN_PROP_SPACES", TN_CELL_I64},
    [TN_PROP_DRIVER_VERSION] = {"TN_PROP_DRIVER_VERSION", TN_CELL_STRING},
    [TN_PROP_FIRMWARE_VERSION] = {"TN_PROP_FIRMWARE_VERSION", TN_CELL_STRING},
};
enum { N_PROPERTIES = sizeof properties / sizeof *properties, POISON = 0xa7 };

/* Asks with a poisoned cell. */
static tn_status ask(const tc_subject *s, uint32_t index, int32_t property, tn_cell *out) {
    memset(out, POISON, sizeof *out);
    return s->ops->property(s->self, index, property, out);
}

static bool poisoned(const tn_cell *cell) {
    for (size_t i = 0; i < sizeof *cell; i++)
        if (((const unsigned char *)cell)[i] != POISON)
            return false;
    return true;
}

/* "" where the value may be, else what is wrong with it. */
static const char *wrong_value(int32_t property, const tn_cell *cell, bool newer) {
    int64_t v = cell->v.i64;
    switch (property) {
    case TN_PROP_NAME:
    case TN_PROP_DRIVER_VERSION:
    case TN_PROP_FIRMWARE_VERSION:
        if (!cell->v.string || !*cell->v.string)
            return "the string is NULL or empty";
        return tc_is_utf8(cell->v.string) ? "" : "the string is no UTF-8";
    case TN_PROP_ALIGNMENT:
        return v < 1 || (v & (v - 1)) ? "it is no power of two" : "";
    case TN_PROP_MAX_ALLOCATION:
        return v < 0 ? "it is negative" : "";
    case TN_PROP_COMPUTE_UNITS:
        return v < 1 ? "a device has one at least" : "";
    case TN_PROP_DTYPES:
        if (!newer && ((uint64_t)v & ~TC_DTYPES_KNOWN))
            return "there are bits of dtypes that do not exist";
        return v ? "" : "a device stores one dtype at least";
    case TN_PROP_UNIFIED_MEMORY:
        return v == 0 || v == 1 ? "" : "a BOOL is 0 or 1";
    case TN_PROP_FLUSHES_SUBNORMALS:
        return !newer && ((uint64_t)v & ~TN_DTYPES_FLOAT)
                   ? "only floating dtypes have subnormal numbers"
                   : "";
    case TN_PROP_SPACES:
        if (!(v & 1 << TN_SPACE_DEVICE))
            return "every device has TN_SPACE_DEVICE";
        return !newer && (v & ~(int64_t)(1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED))
                   ? "there are bits of spaces that do not exist"
                   : "";
    default:
        return "";
    }
}

static void check_known(tc_contract *k, const tc_subject *s, uint32_t index, int32_t property) {
    tn_cell cell, again;
    const char *name = properties[property].name;
    tn_status status = ask(s, index, property, &cell);
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED) {
        TC_BROKEN(k, TNP_PROPERTY_STABLE,
                  "device %u: %s is answered with %s, and should be with TN_OK or "
                  "TN_ERR_UNSUPPORTED",
                  index, name, tc_tn_status_name(status));
        return;
    }
    if (ask(s, index, property, &again) != status)
        TC_BROKEN(k, TNP_PROPERTY_STABLE, "device %u: %s is answered once and not the other time",
                  index, name);
    if (status == TN_ERR_UNSUPPORTED) {
        if (!poisoned(&cell))
            TC_BROKEN(k, TNP_PROPERTY_UNKNOWN,
                      "device %u: %s answered TN_ERR_UNSUPPORTED and wrote to *out_value", index,
                      name);
        return;
    }
    if (cell.tag != properties[property].tag)
        TC_BROKEN(k, TNP_PROPERTY_RANGE, "device %u: the cell of %s has tag %u, and should have %u",
                  index, name, cell.tag, properties[property].tag);
    else if (cell.n != 0)
        TC_BROKEN(k, TNP_PROPERTY_RANGE,
                  "device %u: the cell of %s has n = %u; only lists have one", index, name, cell.n);
    else if (*wrong_value(property, &cell, tc_is_newer(s->plugin)))
        TC_BROKEN(k, TNP_PROPERTY_RANGE, "device %u: %s is %lld: %s", index, name,
                  (long long)cell.v.i64, wrong_value(property, &cell, tc_is_newer(s->plugin)));
    else if (cell.tag == TN_CELL_STRING
                 ? !again.v.string || strcmp(cell.v.string, again.v.string) != 0
                 : cell.tag != again.tag || cell.v.i64 != again.v.i64)
        TC_BROKEN(k, TNP_PROPERTY_STABLE, "device %u: %s changed from one call to the next", index,
                  name);
}

void tc_check_properties(tc_contract *k, const tc_subject *s, uint32_t index) {
    for (int32_t p = 0; p < N_PROPERTIES; p++)
        check_known(k, s, index, p);
}

static uint64_t sum_up(const tc_subject *s, uint32_t index, bool texts) {
    uint64_t sum = 17;
    for (int32_t p = 0; p < N_PROPERTIES; p++) {
        tn_cell cell;
        if (ask(s, index, p, &cell) != TN_OK)
            continue;
        if (cell.tag != TN_CELL_STRING)
            sum = sum * 1000003 + (uint64_t)cell.v.i64;
        else
            for (const char *c = cell.v.string; texts && c && *c; c++)
                sum = sum * 31 + (unsigned char)*c;
        sum = sum * 1000003 + (uint64_t)p;
    }
    return sum;
}

uint64_t tc_properties_sum(const tc_subject *s, uint32_t index) {
    return sum_up(s, index, true);
}

uint64_t tc_numbers_sum(const tc_subject *s, uint32_t index) {
    return sum_up(s, index, false);
}

/* ---- rows -------------------------------------------------------------------------------- */

static void values(tc_contract *k) {
    for (uint32_t i = 0; i < k->subject->n_devices; i++)
        tc_check_properties(k, k->subject, i);
}

/* Asked in any order, between other questions and across some work, the answers are the same. */
static void stable(tc_contract *k) {
    tc_subject *s = k->subject;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        uint64_t before = tc_properties_sum(s, i);
        for (uint32_t j = s->n_devices; j-- > 0;)
            (void)tc_properties_sum(s, j);
        for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++) {
            tn_memory memory = 0;
            void *host;
            if (tc_alloc(s, space, 4096, &memory, &host) != TN_OK)
                continue;
            uint64_t during = tc_properties_sum(s, i);
            s->memory->dealloc(s->device, space, memory);
            if (during != before)
                TC_BROKEN(k, TNP_PROPERTY_STABLE,
                          "device %u: a property changed while memory was allocated", i);
        }
        for (int times = 0; times < 20; times++)
            if (tc_properties_sum(s, i) != before)
                TC_BROKEN(k, TNP_PROPERTY_STABLE,
                          "device %u: a property changed from one call to another", i);
    }
}

typedef struct asker {
    const tc_subject *s;
    uint64_t sum;
} asker;

static void *ask_on_one_processor(void *context) {
    asker *a = context;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) == 0)
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
            if (CPU_ISSET(i, &all))
                CPU_SET(i, &one);
    if (CPU_COUNT(&one) == 1)
        sched_setaffinity(0, sizeof one, &one);
    a->sum = tc_properties_sum(a->s, a->s->index);
    return NULL;
}

/* What a device is does not depend on who asks. */
static void asked_elsewhere(tc_contract *k) {
    asker a = {.s = k->subject};
    pthread_t thread;
    uint64_t before = tc_properties_sum(k->subject, k->subject->index);
    if (pthread_create(&thread, NULL, ask_on_one_processor, &a) != 0) {
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        return;
    }
    pthread_join(thread, NULL);
    if (a.sum != before)
        TC_BROKEN(k, TNP_PROPERTY_STABLE,
                  "device %u: a property is another one for a thread that may run on one processor "
                  "alone",
                  k->subject->index);
}

/* A text that was answered, and a copy of it. */
typedef struct text {
    const char *answer; /* NULL: none */
    char kept[256];
} text;

static void keep_texts(const tc_subject *s, uint32_t index, text texts[N_PROPERTIES]) {
    for (int32_t p = 0; p < N_PROPERTIES; p++) {
        tn_cell cell;
        texts[p].answer = NULL;
        if (properties[p].tag != TN_CELL_STRING || ask(s, index, p, &cell) != TN_OK ||
            cell.tag != TN_CELL_STRING || !cell.v.string)
            continue; /* property-values says so */
        texts[p].answer = cell.v.string;
        snprintf(texts[p].kept, sizeof texts[p].kept, "%s", cell.v.string);
    }
}

typedef struct keeper {
    const tc_subject *s;
    uint32_t index;
    text texts[N_PROPERTIES];
} keeper;

static void *keep_on_a_thread(void *context) {
    keeper *a = context;
    keep_texts(a->s, a->index, a->texts);
    return NULL;
}

/* Whoever gets the memory that an ended thread had writes to it. */
static void *write_to_what_is_free(void *context) {
    enum { SIZES = 64, EACH = 4, STEP = 16 };
    void *blocks[SIZES * EACH];
    (void)context;
    for (int i = 0; i < SIZES * EACH; i++) {
        size_t bytes = (size_t)(i / EACH + 1) * STEP;
        blocks[i] = malloc(bytes);
        if (blocks[i])
            memset(blocks[i], POISON, bytes);
    }
    for (int i = 0; i < SIZES * EACH; i++)
        free(blocks[i]);
    return NULL;
}

/* The texts of each device are still there when everything was asked of every device, here and on another thread, also
 * when the thread that asked for them has ended. */
static void names(tc_contract *k) {
    const tc_subject *s = k->subject;
    asker a = {.s = s};
    keeper kept = {.s = s};
    const text *texts = kept.texts;
    for (uint32_t i = 0; i < 2 * s->n_devices && !tc_failed(k); i++) {
        pthread_t thread;
        bool here = i < s->n_devices;
        kept.index = i % s->n_devices;
        if (here || pthread_create(&thread, NULL, keep_on_a_thread, &kept) != 0)
            keep_on_a_thread(&kept);
        else
            pthread_join(thread, NULL);
        write_to_what_is_free(NULL);
        if (pthread_create(&thread, NULL, write_to_what_is_free, NULL) == 0)
            pthread_join(thread, NULL);
        for (uint32_t j = 0; j < s->n_devices; j++)
            (void)tc_properties_sum(s, j);
        if (pthread_create(&thread, NULL, ask_on_one_processor, &a) == 0)
            pthread_join(thread, NULL);
        for (int32_t p = 0; p < N_PROPERTIES; p++)
            if (texts[p].answer &&
                strncmp(texts[p].kept, texts[p].answer, sizeof texts[p].kept - 1) != 0)
                TC_BROKEN(
                    k, TNP_PROPERTY_STABLE,
                    "%s of device %u became '%.100s' when every device was asked for all it has%s",
                    properties[p].name, kept.index, texts[p].answer,
                    here ? "" : ", the thread that had asked first having ended");
    }
}

static void unknown(tc_contract *k) {
    static const int32_t numbers[] = {-1, INT_MIN, N_PROPERTIES, 11,    16,
                                      63, 64,      1000,         65536, TN_PROP_VENDOR - 1};
    for (uint32_t i = 0; i < k->subject->n_devices; i++)
        for (size_t p = 0; p < sizeof numbers / sizeof *numbers; p++) {
            tn_cell cell;
            if (tc_is_newer(k->subject->plugin) && numbers[p] >= N_PROPERTIES)
                continue;
            tn_status status = ask(k->subject, i, numbers[p], &cell);
            if (status != TN_ERR_UNSUPPORTED)
                TC_BROKEN(k, TNP_PROPERTY_UNKNOWN,
                          "device %u: property %d, which does not exist, is answered with "
                          "%s, and should be with TN_ERR_UNSUPPORTED",
                          i, (int)numbers[p], tc_tn_status_name(status));
            else if (!poisoned(&cell))
                TC_BROKEN(k, TNP_PROPERTY_UNKNOWN,
                          "device %u: *out_value was written to for property %d, which does "
                          "not exist",
                          i, (int)numbers[p]);
        }
}

/* Those of the vendor's own are answered, the same each time, or refused like any other. */
static void vendors(tc_contract *k) {
    static const int32_t numbers[] = {TN_PROP_VENDOR, TN_PROP_VENDOR + 1, TN_PROP_VENDOR + 77,
                                      INT_MAX};
    for (uint32_t i = 0; i < k->subject->n_devices; i++)
        for (size_t p = 0; p < sizeof numbers / sizeof *numbers; p++) {
            tn_cell cell, again;
            tn_status status = ask(k->subject, i, numbers[p], &cell);
            if (status == TN_ERR_UNSUPPORTED && !poisoned(&cell))
                TC_BROKEN(k, TNP_PROPERTY_UNKNOWN,
                          "device %u: *out_value was written to for property 0x%x, which is "
                          "refused",
                          i, (unsigned)numbers[p]);
            else if ((status != TN_OK && status != TN_ERR_UNSUPPORTED) ||
                     ask(k->subject, i, numbers[p], &again) != status)
                TC_BROKEN(k, TNP_PROPERTY_STABLE,
                          "device %u: property 0x%x, of the vendor's own, is answered with %s, or "
                          "once and not the other time",
                          i, (unsigned)numbers[p], tc_tn_status_name(status));
        }
}

void tc_check_largest(tc_contract *k, const tc_subject *s, uint32_t index) {
    const tn_memory_ops *m = s->ops->memory;
    tn_memory_info info = {.struct_size = sizeof info};
    tn_cell largest;
    if (TN_HAS(m, tn_memory_ops, info) && m->info &&
        ask(s, index, TN_PROP_MAX_ALLOCATION, &largest) == TN_OK &&
        m->info(s->device, TN_SPACE_DEVICE, &info) == TN_OK && info.total_bytes &&
        largest.v.i64 > 0 && (uint64_t)largest.v.i64 > info.total_bytes)
        TC_BROKEN(k, TNP_PROPERTY_RANGE,
                  "device %u: TN_PROP_MAX_ALLOCATION is %lld, and the device has %llu bytes", index,
                  (long long)largest.v.i64, (unsigned long long)info.total_bytes);
}

/* What the properties promise of memory. */
static void memory(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_check_largest(k, s, k->options->device);
    static const uint64_t sizes[] = {1, 3, 64, 1000, 4096, 100001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_memory handle = 0;
        void *host = NULL;
        if (!tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, TN_SPACE_DEVICE, sizes[i], &handle, &host),
                     "alloc"))
            return;
        if (s->host_memory && !host)
            TC_BROKEN(k, TNP_PROPERTY_UNIFIED_MEMORY,
                      "alloc of %llu bytes gave no host pointer, though "
                      "TN_PROP_UNIFIED_MEMORY is 1",
                      (unsigned long long)sizes[i]);
        if (host && ((uint64_t)host & (s->alignment - 1)))
            TC_BROKEN(k, TNP_ALLOC_ALIGNMENT,
                      "alloc of %llu bytes gave %p, which is not aligned to %llu bytes",
                      (unsigned long long)sizes[i], host, (unsigned long long)s->alignment);
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, handle);
    }
}

const tc_contract_row tc_property_rows[] = {
    {"property-values", "", TC_SMOKE, values},
    {"property-stable-elsewhere", "", TC_SMOKE, asked_elsewhere},
    {"property-stable", "", TC_SMOKE, stable},
    {"property-names", "", TC_SMOKE, names},
    {"property-unknown", "", TC_SMOKE, unknown},
    {"property-vendors", "", TC_SMOKE, vendors},
    {"property-memory", "", TC_SMOKE, memory},
    {0},
};
