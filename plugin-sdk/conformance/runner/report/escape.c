/* See escape.h. */
#include "plugin-sdk/conformance/runner/report/escape.h"

#include <ctype.h>
#include <string.h>

void tc_put_xml(FILE *out, const char *text) {
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        switch (*p) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            /* U+FFFE and U+FFFF are no characters of XML, either. */
            if (p[0] == 0xef && p[1] == 0xbf && (p[2] == 0xbe || p[2] == 0xbf)) {
                fputc('?', out);
                p += 2;
            } else {
                fputc((*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f ? '?' : *p, out);
            }
        }
    }
}

void tc_put_markdown(FILE *out, const char *text) {
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < 0x20)
            fputc(' ', out);
        else if (*p == '<')
            fputs("&lt;", out);
        else if (*p == '&')
            fputs("&amp;", out);
        else
            fprintf(out, strchr("\\`*_{}[]()#+!|>~", *p) ? "\\%c" : "%c", *p);
    }
}

/* Between quotes that a shell takes nothing in for its own; a quote ends them, is escaped, and
 * begins them again. */
static char *quote(char *at, const char *text) {
    *at++ = '\'';
    for (; *text; text++)
        at = *text == '\'' ? stpcpy(at, "'\\''") : (*at = *text, at + 1);
    return stpcpy(at, "'");
}

char *tc_command_text(const char *plugin, const char *line, char out[TC_COMMAND]) {
    char *at = stpcpy(out, "tenon-conform run ");
    bool plain = *plugin != '-' && *plugin != '\0' && strlen(plugin) < PATH_MAX;
    for (const char *p = plugin; *p; p++)
        plain = plain && (isalnum((unsigned char)*p) || strchr("/._-+:,@%", *p));
    char path[PATH_MAX], text[TC_MAX_LINE]; /* a log's may be longer than any path */
    snprintf(path, sizeof path, "%s", plugin);
    snprintf(text, sizeof text, "%s", line);
    at = plain ? stpcpy(at, path) : quote(at, path);
    *at++ = ' ';
    quote(at, text);
    return out;
}
