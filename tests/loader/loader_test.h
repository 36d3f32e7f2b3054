/* What the loader's tests share: the environment, temporary directories, the zoo, errors. */
#ifndef TNI_TESTS_LOADER_LOADER_TEST_H
#define TNI_TESTS_LOADER_LOADER_TEST_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/internal.h"
#include "dispatcher/registry.h"

#include <tenon/plugins.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Puts the loader back to the state of a fresh process. Use as setup and as teardown. */
int fresh_loader(void **state);

/* A new directory, removed with all in it by fresh_loader. */
const char *temp_dir(void);
/* dir/name, in a buffer that lives until the 32nd call from now. */
const char *in_dir(const char *dir, const char *name);
/* The zoo's plugin of that name. */
const char *zoo(const char *animal);
/* Copies a file; returns `to`. */
const char *copy_file(const char *from, const char *to);
void write_file(const char *path, const char *text);

/* Searches `dirs` only / loads `paths` only (both colon-separated). */
void search_only(const char *dirs);
void load_only(const char *paths);

/* The candidate of a path, or NULL. */
const tni_plugin *candidate(const char *path);
uint32_t count_candidates(void);

/* Fails unless `text` contains every one of the words (up to NULL). */
void contains(const char *file, int line, const char *text, ...) __attribute__((sentinel));
#define assert_contains(text, ...) contains(__FILE__, __LINE__, text, __VA_ARGS__, NULL)
/* The same of the standing error, which is then cleared. */
#define assert_error(expected_status, ...) \
    do { \
        assert_int_equal(tn_error_status(), expected_status); \
        assert_contains(tn_error_message(), __VA_ARGS__); \
        tn_error_clear(); \
    } while (0)

/* Everything that was logged since fresh_loader, one line each: "level subsystem: text". */
const char *log_text(void);
/* Begins to keep it. */
void keep_log(void);

/* Memory that ends where its page does; the next page cannot be touched. Freed by fresh_loader. */
void *before_guard_page(const void *bytes, size_t n);

#endif
