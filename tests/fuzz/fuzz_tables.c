/* Feeds tni_plugin_validate tables made of bytes: sizes, holes, masks and strings, each table
 * before a page that cannot be read, so that reading past a struct_size is a crash.
 *
 * With clang: -fsanitize=fuzzer. With -DFUZZ_STANDALONE a program that runs the files it is given,
 * or without any a fixed series of random inputs. */
#define _GNU_SOURCE
#include "base/error.h"
#include "loader/internal.h"

#include <tenon/kernels.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the bytes --------------------------------------------------------------------------- */

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t byte(input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

static uint64_t word(input *in) {
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n = n << 8 | byte(in);
    return n;
}

/* ---- memory that ends at a page that cannot be read -------------------------------------- */

enum { N_ARENAS = 48, ROOM = 1 << 17 };

static char *arenas[N_ARENAS];
static int n_used;

static void *place(const void *bytes, size_t n) {
    if (n_used == N_ARENAS)
        abort();
    char **arena = &arenas[n_used++];
    if (!*arena) {
        *arena =
            mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (*arena == MAP_FAILED || mprotect(*arena + ROOM, 4096, PROT_NONE) != 0)
            abort();
    }
    return memcpy(*arena + ROOM - n, bytes, n);
}

/* Changes words of a table (to NULL, or to anything where none is a pointer), chooses its
 * struct_size, and places just what that promises. */
static void *table_of(input *in, const void *whole, size_t bytes, bool any_words) {
    static char copy[1 << 16];
    memset(copy, 0xee, sizeof copy);
    memcpy(copy, whole, bytes);
    uint8_t how = byte(in);
    for (uint8_t n = how & 3; n > 0; n--) {
        size_t i = 8 + byte(in) * 8u % (bytes - 8);
        uint64_t value = how & 4 ? word(in) : 0, old;
        /* Pointers must stay good or become NULL: the contract says so, and no check can. */
        memcpy(&old, copy + i, 8);
        if (!any_words || i == offsetof(tn_kernel, op))
            value = 0;
        memcpy(copy + i, &value, 8);
    }
    uint64_t said = bytes;
    if (how & 16)
        said = byte(in) * 8u;
    if (how & 32)
        said = word(in);
    if (how & 64)
        said = (said & 0xffff) / 8 * 8;
    memcpy(copy, &said, sizeof said);
    /* An impossible size is refused before anything behind it is read. */
    size_t there = said <= sizeof copy ? (size_t)said : 8;
    there = there < 8 ? 8 : there;
    char *placed = place(copy, there / 8 * 8 == there ? there : there / 8 * 8 + 8);
    return how & 128 ? placed + (how & 4 ? 4 : 0) : placed;
}

static const char *text_of(input *in, const char *usual) {
    uint8_t how = byte(in);
    if (how < 160)
        return place(usual, strlen(usual) + 1);
    if (how == 255)
        return NULL;
    char text[300];
    size_t n = how < 240 ? how % 24 : sizeof text - 1;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)("acme.npu_-A0:@ \xc3"[byte(in) % 16]);
    text[n] = '\0';
    n = strlen(text);
    return place(text, n + 1);
}

/* ---- the tables -------------------------------------------------------------------------- */

static void any(void) {}

static void fill_with_functions(void *table, size_t bytes) {
    void (*fn)(void) = any;
    for (size_t i = 8; i < bytes; i += 8)
        memcpy((char *)table + i, &fn, 8);
}

enum { MAX_KERNELS = 8 };

static const tn_kernel *kernel_of(input *in) {
    static const struct {
        const char *name;
        uint64_t hash;
    } known[] = {{TN_KERNEL_add, TN_KERNEL_HASH_add}, {TN_KERNEL_copy, TN_KERNEL_HASH_copy}};
    int which = byte(in) & 1;
    tn_kernel record = {.op = text_of(in, known[which].name),
                        .schema_hash = known[which].hash,
                        .dtypes = {1ull << (byte(in) % 12), byte(in) % 4}};
    void (*fn)(void) = any;
    memcpy(&record.run, &fn, sizeof record.run);
    return byte(in) == 255 ? NULL : table_of(in, &record, sizeof record, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in_ = {data, data + size}, *in = &in_;
    n_used = 0;
    tn_memory_ops memory;
    tn_stream_ops streams;
    tn_event_ops events;
    tn_device_ops devices;
    fill_with_functions(&memory, sizeof memory);
    fill_with_functions(&streams, sizeof streams);
    fill_with_functions(&events, sizeof events);
    fill_with_functions(&devices, sizeof devices);
    devices.memory = table_of(in, &memory, sizeof memory, false);
    devices.streams = byte(in) & 1 ? table_of(in, &streams, sizeof streams, false) : NULL;
    devices.events = byte(in) & 1 ? table_of(in, &events, sizeof events, false) : NULL;
    const tn_kernel *list[MAX_KERNELS];
    uint64_t n_kernels = byte(in) % (MAX_KERNELS + 1);
    for (uint64_t i = 0; i < n_kernels; i++)
        list[i] = kernel_of(in);
    tn_plugin plugin;
    fill_with_functions(&plugin, sizeof plugin);
    plugin.abi_version = byte(in) < 250 ? TN_ABI_VERSION : (uint32_t)word(in);
    plugin.abi_required = byte(in) < 250 ? TN_ABI_VERSION : (uint32_t)word(in);
    plugin.id = text_of(in, "com.acme.npu");
    plugin.device_type = text_of(in, "npu");
    plugin.name = text_of(in, "Acme NPU");
    plugin.version = text_of(in, "1.0");
    plugin.devices = table_of(in, &devices, sizeof devices, false);
    plugin.kernels = n_kernels ? place(list, n_kernels * sizeof *list) : NULL;
    plugin.n_kernels = n_kernels;
    const tn_plugin *table = table_of(in, &plugin, sizeof plugin, false);
    tn_status status = tni_plugin_validate(table, "fuzz.so");
    if (status != tn_error_status())
        abort();
    if (status && !tn_error_message()[0])
        abort();
    if (!status) {
        uint32_t known, unknown;
        tni_plugin_count_kernels(table, &known, &unknown);
        if (known + unknown > n_kernels)
            abort();
    }
    tn_error_clear();
    return 0;
}

#ifdef FUZZ_STANDALONE
int main(int argc, char **argv) {
    static uint8_t bytes[4096];
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            perror(argv[i]);
            return 1;
        }
        LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof bytes, f));
        fclose(f);
    }
    uint64_t state = 88172645463325252u; /* xorshift64 */
    for (int i = 0; argc == 1 && i < 100000; i++) {
        size_t n = (size_t)(state % 256);
        for (size_t j = 0; j < n; j++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            /* Mostly zeros: the more is changed, the earlier the tables are refused. */
            bytes[j] = state >> 60 < 13 ? 0 : (uint8_t)(state >> 32);
        }
        state ^= state << 13;
        state ^= state >> 7;
        LLVMFuzzerTestOneInput(bytes, n);
    }
    return 0;
}
#endif
