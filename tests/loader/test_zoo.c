/* Every animal of the zoo is loaded or refused as the design says, with words that name the plugin,
 * the field and the fix, and none of them keeps the good one beside it from working. */
#define _GNU_SOURCE /* memmem */
#include "tests/loader/loader_test.h"

#include <elf.h>

enum { MAX_WORDS = 6 };

static const struct animal {
    const char *name;
    tni_plugin_state state;
    tn_status status;
    const char *words[MAX_WORDS]; /* of the reason; the path is always looked for */
} animals[] = {
    {"good", TNI_PLUGIN_READY, TN_OK, {0}},
    {"no_symbol",
     TNI_PLUGIN_REFUSED,
     TN_ERR_NOT_FOUND,
     {"exports no tenon_plugin_query_v1", "TN_PLUGIN_EXPORT", "nm -D"}},
    {"query_null",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"tenon_plugin_query_v1 returned NULL", ABI_NOW, "wants a host with rotor support"}},
    {"query_null_silent",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"returned NULL", "use a plugin built for", "a newer Tenon"}},
    {"next_major",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"tenon_plugin_query_v2", "newer plugin interface", "use a newer Tenon"}},
    {"old_minor",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"abi_version is 0.8", "takes " ABI_NOW " or later", "rebuild it against"}},
    {"requires_newer",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"abi_required " ABI_NEXT, "this Tenon has " ABI_NOW, "update Tenon"}},
    {"size_zero",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"tn_plugin->struct_size is 0", "set it to sizeof(tn_plugin)"}},
    {"size_odd",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"(org.tenon.zoo.size_odd)", "devices->struct_size is", "no multiple of 8",
      "sizeof(tn_device_ops)"}},
    {"no_alloc",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"(org.tenon.zoo.no_alloc)", "devices->memory->alloc is NULL",
      "implement it as tn_memory_ops.alloc"}},
    {"streams_without_events",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"devices->events is NULL", "streams", "provide a tn_event_ops"}},
    {"unknown_kernel", TNI_PLUGIN_READY, TN_OK, {0}},
    {"wrong_hash", TNI_PLUGIN_READY, TN_OK, {0}},
    {"no_dtypes",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"kernels[1] 'add'", "dtypes[0] is 0", "set the mask"}},
    {"duplicate_kernels", TNI_PLUGIN_READY, TN_OK, {0}},
    {"kernel_null",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"kernels[1] is NULL", "point it to a tn_kernel"}},
    {"no_run",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"kernels[0] 'add'", "run is NULL", "leave the record out"}},
    {"bad_id",
     TNI_PLUGIN_REFUSED,
     TN_ERR_ABI,
     {"id is 'Acme NPU'", "write one like 'com.acme.npu'"}},
    {"bad_type", TNI_PLUGIN_REFUSED, TN_ERR_ABI, {"device_type is 'Zoo-1'", "lower-case"}},
    {"meta_type", TNI_PLUGIN_REFUSED, TN_ERR_ABI, {"device_type is 'meta'", "choose another name"}},
    {"init_fails",
     TNI_PLUGIN_FAILED,
     TN_ERR_IO,
     {"(org.tenon.zoo.init_fails)", "init failed", "zebra.bin is missing; install zebra-fw"}},
    {"init_fails_silent",
     TNI_PLUGIN_FAILED,
     TN_ERR_DEVICE_LOST,
     {"(org.tenon.zoo.init_fails_silent)", "init failed", "the device is gone"}},
    {"init_bad_status", TNI_PLUGIN_FAILED, TN_ERR_INTERNAL, {"init failed", "-7", "no tn_status"}},
    {"count_fails",
     TNI_PLUGIN_FAILED,
     TN_ERR_DEVICE,
     {"(org.tenon.zoo.count_fails)", "devices->count failed",
      "zoo.ko is not loaded; modprobe zoo"}},
    {"count_garbage", TNI_PLUGIN_FAILED, TN_ERR_ABI, {"devices->count says 3000000000 devices"}},
    {"no_hardware", TNI_PLUGIN_READY, TN_OK, {"no devices found (driver reported none)"}},
    {"no_hardware_because",
     TNI_PLUGIN_READY,
     TN_OK,
     {"(org.tenon.zoo.no_hardware_because)", "no devices found: no slot holds a zoo card; plug"}},
    {"twin", TNI_PLUGIN_READY, TN_OK, {0}},
    {"undefined_symbol",
     TNI_PLUGIN_REFUSED,
     TN_ERR_IO,
     {"undefined symbol: tiger_from_a_library_not_linked", "link the one that does"}},
    {"newer_tables", TNI_PLUGIN_READY, TN_OK, {0}},
    {"short_tables", TNI_PLUGIN_READY, TN_OK, {0}},
    {"options", TNI_PLUGIN_FAILED, TN_ERR_INVALID_ARGUMENT, {"option stripes must be 7"}},
    {"uses_host", TNI_PLUGIN_READY, TN_OK, {0}},
    {"fork_safe", TNI_PLUGIN_READY, TN_OK, {0}},
    {"unloadable", TNI_PLUGIN_READY, TN_OK, {0}},
};
enum { N_ANIMALS = sizeof animals / sizeof *animals };

static void check_animal(const struct animal *a) {
    const tni_plugin *p = candidate(zoo(a->name));
    assert_non_null(p);
    if (p->state != a->state || p->status != a->status)
        print_error("%s: %s\n", a->name, p->reason ? p->reason : "no reason");
    assert_int_equal(p->state, a->state);
    assert_int_equal(p->status, a->status);
    if (!a->words[0]) {
        assert_null(p->reason);
        return;
    }
    assert_contains(p->reason, zoo(a->name));
    for (int i = 0; i < MAX_WORDS && a->words[i]; i++)
        assert_contains(p->reason, a->words[i]);
}

static void each_animal_alone(void **state) {
    for (int i = 0; i < N_ANIMALS; i++) {
        fresh_loader(NULL);
        load_only(zoo(animals[i].name));
        const tni_plugin *p = tni_loader_get("zoo");
        assert_int_equal(p != NULL, animals[i].state == TNI_PLUGIN_READY);
        if (!p) {
            assert_error(animals[i].status, "'zoo'", candidate(zoo(animals[i].name))->reason);
        }
        check_animal(&animals[i]);
    }
}

static void all_animals_in_one_directory(void **state) {
    search_only(ZOO_DIR);
    const tni_plugin *p = tni_loader_get("zoo");
    assert_non_null(p);
    assert_string_equal(p->key, "zoo");
    assert_int_equal(p->n_devices, 1);
    tni_loader_open_all();
    for (int i = 0; i < N_ANIMALS; i++)
        check_animal(&animals[i]);
    assert_int_equal(tn_error_status(), TN_OK);
}

static void each_bad_animal_beside_the_good_one(void **state) {
    for (int i = 0; i < N_ANIMALS; i++) {
        if (strcmp(animals[i].name, "good") == 0)
            continue;
        fresh_loader(NULL);
        char both[2048];
        snprintf(both, sizeof both, "%s:%s", zoo(animals[i].name), zoo("good"));
        load_only(both);
        const tni_plugin *p = tni_loader_get("zoo");
        assert_non_null(p);
        assert_int_equal(p->n_devices, 1);
        if (animals[i].state != TNI_PLUGIN_READY)
            assert_string_equal(p->key, "zoo");
        p = tni_loader_get("zoo@org.tenon.zoo.good");
        assert_non_null(p);
        assert_string_equal(p->path, zoo("good"));
    }
}

static void unknown_kernels_are_skipped_and_counted(void **state) {
    static const char *const names[] = {"unknown_kernel", "wrong_hash"};
    for (int i = 0; i < 2; i++) {
        load_only(zoo(names[i]));
        const tni_plugin *p = tni_loader_get("zoo");
        assert_non_null(p);
        assert_int_equal(p->n_kernels, 1);
        assert_int_equal(p->n_unknown, 1);
        fresh_loader(NULL);
    }
}

static void newer_and_older_tables_are_read_to_their_end_only(void **state) {
    load_only(zoo("newer_tables"));
    const tni_plugin *p = tni_loader_get("zoo");
    assert_non_null(p);
    assert_true(p->table->struct_size > sizeof(tn_plugin));
    assert_int_equal(p->n_kernels, 2);
    fresh_loader(NULL);
    load_only(zoo("short_tables"));
    p = tni_loader_get("zoo");
    assert_non_null(p);
    assert_true(p->table->struct_size < sizeof(tn_plugin));
    assert_null(TNI_SLOT(p->table, tn_plugin, extension));
    assert_null(TNI_SLOT(p->devices, tn_device_ops, streams));
    assert_int_equal(p->n_kernels, 2);
}

static void duplicate_id_is_refused_with_both_paths(void **state) {
    char both[2048];
    snprintf(both, sizeof both, "%s:%s", zoo("twin"), zoo("twin_again"));
    load_only(both);
    assert_non_null(tni_loader_get("zoo"));
    const tni_plugin *second = candidate(zoo("twin_again"));
    assert_int_equal(second->state, TNI_PLUGIN_REFUSED);
    assert_contains(second->reason, zoo("twin"), zoo("twin_again"), "'com.acme.twin'",
                    "remove one");
}

/* ---- files that are no plugins ----------------------------------------------------------- */

static long size_of(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (long)st.st_size;
}

static void truncated_file_is_refused_wherever_it_is_cut(void **state) {
    const char *dir = temp_dir();
    long whole = size_of(zoo("good"));
    long cuts[] = {0, 3, 40, 64, 500, 4096, whole / 2, whole * 3 / 4, whole - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/libtenon_zoo_cut_%zu.so", dir, i);
        copy_file(zoo("good"), path);
        assert_int_equal(truncate(path, cuts[i]), 0);
    }
    copy_file(zoo("twin"), in_dir(dir, "libtenon_zoo_whole.so"));
    search_only(dir);
    const tni_plugin *p = tni_loader_get("zoo");
    assert_non_null(p);
    assert_string_equal(p->table->id, "com.acme.twin");
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char name[64];
        snprintf(name, sizeof name, "libtenon_zoo_cut_%zu.so", i);
        p = candidate(in_dir(dir, name));
        assert_non_null(p);
        assert_int_equal(p->state, TNI_PLUGIN_REFUSED);
        assert_int_equal(p->status, TN_ERR_IO);
        if (i != 1)
            assert_contains(p->reason, name, "truncated", "copy or build it again");
    }
}

/* A power failure leaves the size that a file was to have, and zeros for what was not written. */
static void file_that_ends_in_zeros_is_refused(void **state) {
    enum { N_TAILS = 25 };
    const char *dir = temp_dir();
    long whole = size_of(zoo("good"));
    for (int i = 0; i < N_TAILS; i++) {
        long from = 64 + (whole - 128) * i / (N_TAILS - 1);
        char name[64];
        snprintf(name, sizeof name, "libtenon_zoo_tail_%d.so", i);
        const char *path = copy_file(zoo("good"), in_dir(dir, name));
        assert_int_equal(truncate(path, from), 0);
        assert_int_equal(truncate(path, whole), 0);
        assert_int_equal(tn_plugin_load(path), TN_ERR_IO);
        assert_error(TN_ERR_IO, path, "holds zeros where its", "copy or build it again");
    }
}

/* The same of one that a linker or strip left without a table of sections. */
static void zeros_are_seen_without_a_table_of_sections(void **state) {
    const char *dir = temp_dir(), *source = copy_file(zoo("good"), in_dir(dir, "whole.so"));
    FILE *f = fopen(source, "r+b");
    assert_non_null(f);
    Elf64_Ehdr head;
    Elf64_Phdr part, dynamic = {0};
    assert_int_equal(fread(&head, sizeof head, 1, f), 1);
    assert_int_equal(fseek(f, (long)head.e_phoff, SEEK_SET), 0);
    for (int i = 0; i < head.e_phnum; i++) {
        assert_int_equal(fread(&part, sizeof part, 1, f), 1);
        if (part.p_type == PT_DYNAMIC)
            dynamic = part;
    }
    head.e_shoff = head.e_shnum = head.e_shstrndx = 0;
    rewind(f);
    assert_int_equal(fwrite(&head, sizeof head, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tn_plugin_load(source), TN_OK);

    long whole = size_of(source), tails[] = {(long)dynamic.p_offset, 4096};
    for (int i = 0; i < 2; i++) {
        const char *path =
            copy_file(source, in_dir(dir, i ? "libtenon_zoo_1.so" : "libtenon_zoo_0.so"));
        assert_int_equal(truncate(path, tails[i]), 0);
        assert_int_equal(truncate(path, whole), 0);
        assert_int_equal(tn_plugin_load(path), TN_ERR_IO);
        assert_error(TN_ERR_IO, path, "holds zeros where its dynamic section",
                     "copy or build it again");
    }
}

static void file_that_is_no_object_is_refused(void **state) {
    const char *dir = temp_dir();
    const char *text = in_dir(dir, "libtenon_zoo_text.so");
    write_file(text, "INPUT(libtenon_zoo_good.so)\n");
    search_only(dir);
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_IO, text, "no shared object", "put the built plugin there");
}

/* Writes a copy of the good plugin with some bytes of its ELF header changed. */
static const char *patched(const char *dir, const char *name, long at, const char *bytes,
                           size_t n) {
    const char *path = copy_file(zoo("good"), in_dir(dir, name));
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    fwrite(bytes, 1, n, f);
    fclose(f);
    return path;
}

static void wrong_architecture_is_named(void **state) {
    const char *dir = temp_dir();
    patched(dir, "libtenon_a.so", 18, "\xf3", 1);     /* e_machine: RISC-V */
    patched(dir, "libtenon_b.so", 4, "\x01", 1);      /* EI_CLASS: 32 bits */
    patched(dir, "libtenon_c.so", 16, "\x01\x00", 2); /* e_type: relocatable */
    assert_int_equal(tn_plugin_load(in_dir(dir, "libtenon_a.so")), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "libtenon_a.so", "wrong architecture", "RISC-V",
                 "this process is");
    assert_int_equal(tn_plugin_load(in_dir(dir, "libtenon_b.so")), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "libtenon_b.so", "32-bit", "build it for");
    assert_int_equal(tn_plugin_load(in_dir(dir, "libtenon_c.so")), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "libtenon_c.so", "no shared object", "-shared");
}

/* Writes a copy of the good plugin in which every `from` is `to`, of the same length. */
static const char *replaced(const char *path, const char *from, const char *to) {
    static char bytes[1 << 20]; /* plenty for the good plugin */
    FILE *f = fopen(zoo("good"), "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f), replacements = 0;
    fclose(f);
    for (char *at = bytes; (at = memmem(at, n - (size_t)(at - bytes), from, strlen(from)));) {
        memcpy(at, to, strlen(to));
        replacements++;
    }
    if (replacements == 0)
        skip(); /* built with a sanitizer that brings its own */
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void missing_library_is_named(void **state) {
    const char *path = in_dir(temp_dir(), "libtenon_zoo.so");
    assert_int_equal(tn_plugin_load(replaced(path, "libc.so.6", "libq.so.6")), TN_ERR_IO);
    assert_error(TN_ERR_IO, path, "libq.so.6: cannot open shared object file", "is not installed",
                 "ldd shows");
}

static void newer_c_library_is_asked_for(void **state) {
    const char *path = in_dir(temp_dir(), "libtenon_zoo.so");
    assert_int_equal(tn_plugin_load(replaced(path, "GLIBC_2.", "GLIBC_9.")), TN_ERR_IO);
    assert_error(TN_ERR_IO, path, "version `GLIBC_9.", "built on a system with a newer C library");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_animal_alone, fresh_loader, fresh_loader),
        cmocka_unit_test_setup_teardown(all_animals_in_one_directory, fresh_loader, fresh_loader),
        cmocka_unit_test_setup_teardown(each_bad_animal_beside_the_good_one, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(unknown_kernels_are_skipped_and_counted, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(newer_and_older_tables_are_read_to_their_end_only,
                                        fresh_loader, fresh_loader),
        cmocka_unit_test_setup_teardown(duplicate_id_is_refused_with_both_paths, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(truncated_file_is_refused_wherever_it_is_cut, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(file_that_ends_in_zeros_is_refused, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(zeros_are_seen_without_a_table_of_sections, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(file_that_is_no_object_is_refused, fresh_loader,
                                        fresh_loader),
        cmocka_unit_test_setup_teardown(wrong_architecture_is_named, fresh_loader, fresh_loader),
        cmocka_unit_test_setup_teardown(missing_library_is_named, fresh_loader, fresh_loader),
        cmocka_unit_test_setup_teardown(newer_c_library_is_asked_for, fresh_loader, fresh_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
