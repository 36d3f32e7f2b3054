/* Tables for people; see table.h. */
#include "cli/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2, NARROWEST = 20 };

typedef struct row {
    struct row *next;
    bool is_note; /* cells[0] alone, over the whole width */
    char *cells[TABLE_MAX_COLUMNS];
} row;

struct table {
    int n_columns;
    int widths[TABLE_MAX_COLUMNS];
    row *first, *last;
};

int terminal_width(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* Characters as a terminal shows them: UTF-8's continuation bytes take no place. */
static int columns_of(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static row *add_row(table *t) {
    row *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    if (t->last)
        t->last->next = r;
    else
        t->first = r;
    t->last = r;
    return r;
}

table *table_create(const char *const *headings) {
    table *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    while (headings[t->n_columns] && t->n_columns < TABLE_MAX_COLUMNS)
        t->n_columns++;
    table_row(t, headings);
    return t;
}

void table_destroy(table *t) {
    if (!t)
        return;
    for (row *r = t->first, *next; r; r = next) {
        next = r->next;
        for (int i = 0; i < TABLE_MAX_COLUMNS; i++)
            free(r->cells[i]);
        free(r);
    }
    free(t);
}

void table_row(table *t, const char *const *cells) {
    row *r = t ? add_row(t) : NULL;
    if (!r)
        return;
    for (int i = 0; i < t->n_columns && cells[i]; i++) {
        r->cells[i] = strdup(*cells[i] ? cells[i] : "-");
        int width = r->cells[i] ? columns_of(r->cells[i]) : 0;
        if (width > t->widths[i])
            t->widths[i] = width;
    }
}

void table_note(table *t, const char *text) {
    row *r = t ? add_row(t) : NULL;
    if (!r)
        return;
    r->is_note = true;
    r->cells[0] = strdup(text);
}

/* Prints `text` from column `start`, breaking at spaces before `width` (0: never); newlines in the
 * text are kept. */
static void print_wrapped(const char *text, int start, int width) {
    int room = width - start;
    if (width == 0 || room < NARROWEST)
        room = 1 << 20;
    for (bool first = true; *text; first = false) {
        int n = 0, used = 0, fits = 0; /* bytes, columns, bytes up to the last space */
        while (text[n] && text[n] != '\n') {
            if (((unsigned char)text[n] & 0xc0) != 0x80 && ++used > room)
                break;
            n++;
            if (text[n] == ' ' || text[n] == '\0' || text[n] == '\n')
                fits = n;
        }
        if (fits == 0)
            fits = n; /* one word longer than the line */
        printf("%*s%.*s\n", first ? 0 : start, "", fits, text);
        text += fits;
        if (*text == '\n' || *text == ' ')
            text++;
    }
}

void table_print(const table *t, int indent) {
    if (!t)
        return;
    int width = terminal_width();
    for (const row *r = t->first; r; r = r->next) {
        if (r->is_note) {
            printf("%*s", indent + 2 * GAP, "");
            print_wrapped(r->cells[0] ? r->cells[0] : "", indent + 2 * GAP, width);
            continue;
        }
        int at = indent;
        printf("%*s", indent, "");
        for (int i = 0; i < t->n_columns; i++) {
            const char *cell = r->cells[i] ? r->cells[i] : "";
            if (i == t->n_columns - 1) {
                print_wrapped(cell, at, width);
                break;
            }
            printf("%s%*s", cell, t->widths[i] - columns_of(cell) + GAP, "");
            at += t->widths[i] + GAP;
        }
    }
}
