/* What a command found, printed once for people and for programs.
 *
 * A command makes a JSON array of objects; --json prints it as it is, else a table shows some of its
 * members. Texts may come from a plugin: what is not UTF-8 becomes U+FFFD, and no control character
 * reaches a terminal.
 */
#ifndef TNI_CLI_OUTPUT_H
#define TNI_CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One column of a table; the last of an array has no heading. */
typedef struct column {
    const char *heading, *key;
    const char *yes; /* for true */
    const char *no;  /* for false and for an empty text; NULL: "-" */
} column;

/* A string of any bytes, null for NULL. */
json_t *text(const char *bytes);

/* Aligned columns, each line after `indent` spaces; on a terminal the last column wraps at its
 * width. Members "reason" and "note" are shown below their row where they say something. */
void print_table(const json_t *rows, const column *columns, int indent);
void print_json(const json_t *value);

/* `text` with control characters as question marks, newlines too unless `lines`. */
void put_safely(FILE *out, const char *text, bool lines);

#endif
