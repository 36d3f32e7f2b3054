/* See json.h. */
#include "plugin-sdk/conformance/json.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static const char *blanks(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

static const char *skip_string(const char *at) {
    for (at++; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u') {
            for (int i = 0; i < 4; i++)
                if (!isxdigit((unsigned char)*++at))
                    return NULL;
        } else if (*at == '\0' || !strchr("\"\\/bfnrt", *at)) {
            return NULL;
        }
    }
    return at + 1;
}

static const char *skip_number(const char *at) {
    at += *at == '-';
    if (!isdigit((unsigned char)*at))
        return NULL;
    while (isdigit((unsigned char)*at))
        at++;
    if (*at == '.') {
        if (!isdigit((unsigned char)*++at))
            return NULL;
        while (isdigit((unsigned char)*at))
            at++;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '-' || *at == '+';
        if (!isdigit((unsigned char)*at))
            return NULL;
        while (isdigit((unsigned char)*at))
            at++;
    }
    return at;
}

static const char *skip(const char *at, int depth) {
    at = blanks(at);
    if (*at == '"')
        return skip_string(at);
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        if (depth == 32)
            return NULL;
        at = blanks(at + 1);
        if (*at == end)
            return at + 1;
        for (;;) {
            if (end == '}') {
                if (*at != '"' || !(at = skip_string(at)))
                    return NULL;
                at = blanks(at);
                if (*at++ != ':')
                    return NULL;
            }
            if (!(at = skip(at, depth + 1)))
                return NULL;
            at = blanks(at);
            if (*at == end)
                return at + 1;
            if (*at++ != ',')
                return NULL;
            at = blanks(at);
        }
    }
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    return skip_number(at);
}

const char *tc_json_skip(const char *at) {
    return skip(at, 0);
}

bool tc_json_is_object(const char *text) {
    text = blanks(text);
    const char *end = *text == '{' ? tc_json_skip(text) : NULL;
    return end && *blanks(end) == '\0';
}

const char *tc_json_member(const char *object, const char *name) {
    const char *at = blanks(blanks(object) + 1);
    size_t length = strlen(name);
    while (*at == '"') {
        const char *end = skip_string(at);
        bool found = end == at + length + 2 && memcmp(at + 1, name, length) == 0;
        at = blanks(blanks(end) + 1);
        if (found)
            return at;
        at = blanks(tc_json_skip(at));
        if (*at != ',')
            break;
        at = blanks(at + 1);
    }
    return NULL;
}

static size_t put_utf8(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static uint32_t four(const char *hex) {
    char text[5] = {hex[0], hex[1], hex[2], hex[3], 0};
    return (uint32_t)strtoul(text, NULL, 16);
}

bool tc_json_string(const char *value, char *out, size_t room) {
    if (!value || *value != '"' || !skip_string(value))
        return false;
    size_t n = 0;
    for (const char *p = value + 1; *p != '"';) {
        char piece[4];
        size_t length = 1;
        if (*p != '\\') {
            length = utf8((const unsigned char *)p);
            length = length ? length : 1;
            memcpy(piece, p, length);
            p += length;
        } else if (p[1] != 'u') {
            static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
            const char *special = strchr(from, p[1]);
            piece[0] = special ? to[special - from] : p[1];
            p += 2;
        } else {
            uint32_t c = four(p + 2);
            p += 6;
            if (c >= 0xd800 && c < 0xdc00 && p[0] == '\\' && p[1] == 'u' && four(p + 2) >= 0xdc00 &&
                four(p + 2) < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (four(p + 2) - 0xdc00);
                p += 6;
            }
            /* A zero would end the text, a lone surrogate is no character. */
            length = put_utf8(c == 0 || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c, piece);
        }
        if (n + length + 1 > room)
            break;
        memcpy(out + n, piece, length);
        n += length;
    }
    out[n] = '\0';
    return true;
}

bool tc_json_number(const char *value, double *out) {
    char word[8];
    if (tc_json_string(value, word, sizeof word)) {
        if (strcmp(word, "inf") && strcmp(word, "-inf") && strcmp(word, "nan"))
            return false;
        *out = strtod(word, NULL);
        return true;
    }
    if (!value || !(*value == '-' || isdigit((unsigned char)*value)) || !skip_number(value))
        return false;
    *out = strtod(value, NULL);
    return true;
}
