/* See output.h. */
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2, NARROWEST = 20, MAX_COLUMNS = 8 };

json_t *text(const char *bytes) {
    if (!bytes)
        return json_null();
    json_t *whole = json_string(bytes);
    if (whole)
        return whole;
    char *clean = malloc(3 * strlen(bytes) + 1);
    size_t used = 0;
    while (clean && *bytes) {
        json_t *character = NULL;
        size_t n = 0;
        while (!character && n < 4 && bytes[n])
            character = json_stringn(bytes, ++n);
        n = character ? n : 1;
        const char *from = character ? bytes : "\xef\xbf\xbd";
        size_t length = character ? n : 3;
        memcpy(clean + used, from, length);
        used += length;
        bytes += n;
        json_decref(character);
    }
    whole = clean ? json_stringn(clean, used) : json_null();
    free(clean);
    return whole;
}

void print_json(const json_t *value) {
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
}

/* ---- text on a terminal ------------------------------------------------------------------ */

/* Bytes of the control character at `at` (C0, DEL, or C1 as UTF-8 has it), or 0. */
static int control(const char *at) {
    const unsigned char *p = (const unsigned char *)at;
    return *p < 0x20 || *p == 0x7f ? 1 : *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0 ? 2 : 0;
}

static void put_n(FILE *out, const char *s, size_t n, bool lines) {
    for (const char *end = s + n; s < end;) {
        int length = *s == '\n' && lines ? 0 : control(s);
        fputc(length ? '?' : *s, out);
        s += length ? length : 1;
    }
}

void put_safely(FILE *out, const char *text, bool lines) {
    put_n(out, text, strlen(text), lines);
}

/* Characters as a terminal shows them: UTF-8's continuation bytes take no place. */
static int columns_of(const char *s) {
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Columns of the terminal, or 0 when standard output is none. */
static int terminal_width(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* Prints `s` from column `start`, breaking at spaces before `width` (0: never); newlines in the
 * text are kept. */
static void print_wrapped(const char *s, int start, int width) {
    int room = width - start;
    if (width == 0 || room < NARROWEST)
        room = 1 << 20;
    for (bool first = true; *s; first = false) {
        int n = 0, used = 0, fits = 0; /* bytes, columns, bytes up to the last space */
        while (s[n] && s[n] != '\n') {
            if (((unsigned char)s[n] & 0xc0) != 0x80 && ++used > room)
                break;
            n++;
            if (s[n] == ' ' || s[n] == '\0' || s[n] == '\n')
                fits = n;
        }
        if (fits == 0)
            fits = n; /* one word longer than the line */
        printf("%*s", first ? 0 : start, "");
        put_n(stdout, s, (size_t)fits, false);
        putchar('\n');
        s += fits;
        if (*s == '\n' || *s == ' ')
            s++;
    }
}

/* ---- tables ------------------------------------------------------------------------------ */

/* What a row has in a column; `number` is for the text of one. */
static const char *cell(const json_t *row, const column *c, char number[24]) {
    const json_t *value = json_object_get(row, c->key);
    const char *s = json_string_value(value);
    if (json_is_integer(value))
        snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_true(value))
        return c->yes;
    else if (!s || !*s)
        return c->no ? c->no : "-";
    return s ? s : number;
}

static void print_row(const json_t *row, const column *columns, const int *widths, int indent,
                      int width) {
    int at = indent;
    printf("%*s", indent, "");
    for (int i = 0; columns[i].heading; i++) {
        char number[24];
        const char *s = row ? cell(row, &columns[i], number) : columns[i].heading;
        if (!columns[i + 1].heading) {
            print_wrapped(s, at, width);
            return;
        }
        put_safely(stdout, s, false);
        printf("%*s", widths[i] - columns_of(s) + GAP, "");
        at += widths[i] + GAP;
    }
}

void print_table(const json_t *rows, const column *columns, int indent) {
    static const char *const notes[] = {"reason", "note"};
    int widths[MAX_COLUMNS] = {0}, width = terminal_width();
    size_t r;
    const json_t *row;
    for (int i = 0; columns[i].heading; i++) {
        widths[i] = columns_of(columns[i].heading);
        json_array_foreach(rows, r, row) {
            char number[24];
            int n = columns_of(cell(row, &columns[i], number));
            widths[i] = n > widths[i] ? n : widths[i];
        }
    }
    print_row(NULL, columns, widths, indent, width);
    json_array_foreach(rows, r, row) {
        print_row(row, columns, widths, indent, width);
        for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
            const char *note = json_string_value(json_object_get(row, notes[i]));
            if (note && *note) {
                printf("%*s", indent + 2 * GAP, "");
                print_wrapped(note, indent + 2 * GAP, width);
            }
        }
    }
}
