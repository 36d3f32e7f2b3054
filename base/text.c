/* See text.h. */
#include "base/text.h"
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>

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
