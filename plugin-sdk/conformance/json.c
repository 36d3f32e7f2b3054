/* See json.h. */
#include "plugin-sdk/conformance/json.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at s; 0 where it is none. */
static size_t utf8(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
               : s[0] >= 0xe0 && s[0] <= 0xef ? 3
               : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                              : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, beyond U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* How the character at *p is written inside quotes; moves *p behind it. */
static size_t piece_of(const unsigned char **p, char piece[8]) {
    const unsigned char *at = *p;
    size_t take = utf8(at);
    *p += take ? take : 1;
    if (take == 0)
        return (size_t)snprintf(piece, 8, "\xef\xbf\xbd");
    if (*at == '"' || *at == '\\')
        return (size_t)snprintf(piece, 8, "\\%c", *at);
    if (*at == '\n')
        return (size_t)snprintf(piece, 8, "\\n");
    if (*at < 0x20 || *at == 0x7f)
        return (size_t)snprintf(piece, 8, "\\u%04x", *at);
    memcpy(piece, at, take);
    return take;
}

void tc_json_put(FILE *out, const char *s) {
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        char piece[8];
        fwrite(piece, 1, piece_of(&p, piece), out);
    }
    fputc('"', out);
}

size_t tc_json_quote(const char *s, char *out, size_t room) {
    size_t n = 0;
    out[n++] = '"';
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        char piece[8];
        size_t length = piece_of(&p, piece);
        if (n + length + 2 > room)
            break;
        memcpy(out + n, piece, length);
        n += length;
    }
    out[n++] = '"';
    out[n] = '\0';
    return n;
}
