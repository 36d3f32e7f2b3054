/* See text.h. */
#include "base/text.h"
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 64 };

void tni_text_add(tni_text *t, const char *format, ...) {
    for (int attempt = 0; attempt < 2 && !t->failed; attempt++) {
        size_t room = t->capacity - t->n;
        va_list args;
        va_start(args, format);
        int n = vsnprintf(t->data ? t->data + t->n : NULL, room, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < room) {
            t->n += (size_t)n;
            return;
        }
        t->failed = n < 0 || !tni_reserve(&t->data, t->n + (size_t)n + 1, &t->capacity, 1);
    }
}

/* How many bytes the character at s has, 0 where it is no UTF-8 (RFC 3629: the shortest form, no
 * surrogates, up to U+10FFFF). */
static int utf8_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    int n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : s[0] >= 0xe0 && s[0] <= 0xef ? 3 : 4;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    unsigned low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    for (int i = 1; i < n; i++, low = 0x80, high = 0xbf)
        if (s[i] < low || s[i] > high)
            return 0;
    return n;
}

void tni_text_add_json(tni_text *t, const char *s) {
    tni_text_add(t, "\"");
    for (int n; *s; s += n ? n : 1) {
        n = utf8_length((const unsigned char *)s);
        if (*s == '"' || *s == '\\')
            tni_text_add(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            tni_text_add(t, "\\u%04x", *s);
        else if (n)
            tni_text_add(t, "%.*s", n, s);
        else
            tni_text_add(t, "\\ufffd");
    }
    tni_text_add(t, "\"");
}

void tni_text_make_printable(char *s) {
    for (int n; *s; s += n) {
        const unsigned char *at = (unsigned char *)s;
        n = utf8_length(at);
        bool control = (*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f ||
                       (*at == 0xc2 && at[1] < 0xa0);
        if (n == 0 || control) {
            n = n ? n : 1;
            memset(s, '?', (size_t)n);
        }
    }
}

/* Levenshtein's distance, by rows. */
static size_t distance(const char *a, const char *b, size_t n_b) {
    size_t row[MAX_WORD + 1];
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (; *a; a++) {
        size_t diagonal = row[0]++;
        for (size_t j = 1; j <= n_b; j++) {
            size_t changed = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            size_t shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = changed < shorter ? changed : shorter;
        }
    }
    return row[n_b];
}

bool tni_text_is_near(const char *s, const char *word) {
    size_t n = strlen(word);
    if (n == 0 || n > MAX_WORD)
        return false;
    return (strncmp(s, word, n) == 0 && s[n] == '_') || distance(s, word, n) <= (n < 5 ? 1 : 2);
}
