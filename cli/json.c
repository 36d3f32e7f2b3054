/* JSON on standard output; see json.h. */
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

enum { INDENT = 2 };

static int depth;
static bool is_first = true; /* nothing was written yet at this depth */

static void quoted(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            printf("\\n");
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void begin(const char *key) {
    if (!is_first)
        putchar(',');
    if (depth > 0)
        printf("\n%*s", depth * INDENT, "");
    is_first = false;
    if (key) {
        quoted(key);
        printf(": ");
    }
}

static void enter(const char *key, char bracket) {
    begin(key);
    putchar(bracket);
    depth++;
    is_first = true;
}

static void leave(char bracket) {
    depth--;
    if (!is_first)
        printf("\n%*s", depth * INDENT, "");
    putchar(bracket);
    is_first = false;
    if (depth == 0) {
        putchar('\n');
        is_first = true;
    }
}

void json_object_open(const char *key) {
    enter(key, '{');
}

void json_object_close(void) {
    leave('}');
}

void json_array_open(const char *key) {
    enter(key, '[');
}

void json_array_close(void) {
    leave(']');
}

void json_string(const char *key, const char *value) {
    begin(key);
    if (value)
        quoted(value);
    else
        printf("null");
}

void json_number(const char *key, uint64_t value) {
    begin(key);
    printf("%" PRIu64, value);
}

void json_bool(const char *key, bool value) {
    begin(key);
    printf(value ? "true" : "false");
}
