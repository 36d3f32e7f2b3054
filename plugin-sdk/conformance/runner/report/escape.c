/* See escape.h. */
#include "plugin-sdk/conformance/runner/report/escape.h"

#include <ctype.h>
#include <string.h>

void tc_put_xml(FILE *out, const char *text) {
    static const char *const entities[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (entities[*p]) {
            fputs(entities[*p], out);
        } else if (p[0] == 0xef && p[1] == 0xbf && (p[2] == 0xbe || p[2] == 0xbf)) {
            fputc('?', out); /* U+FFFE and U+FFFF are no characters of XML, either */
            p += 2;
        } else {
            fputc((*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f ? '?' : *p, out);
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

void tc_put_markdown_code(FILE *out, const char *text) {
    bool plain = true;
    for (const char *p = text; *p; p++)
        plain = plain && isprint((unsigned char)*p) && !strchr("`|<&\\", *p);
    if (plain)
        fprintf(out, "`%s`", text);
    else
        tc_put_markdown(out, text);
}

/* Between quotes that a shell takes nothing in for its own; a quote ends them, is escaped, and
 * begins them again. */
static void put_quoted(FILE *out, const char *word) {
    fputc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    fputc('\'', out);
}

void tc_put_shell(FILE *out, const char *word) {
    bool plain = *word != '\0';
    for (const char *p = word; *p; p++)
        plain = plain && (isalnum((unsigned char)*p) || strchr("/._-+:,@%=", *p));
    if (plain)
        fputs(word, out);
    else
        put_quoted(out, word);
}

char *tc_command_text(const char *plugin, unsigned device, const char *line, char out[TC_COMMAND]) {
    FILE *text = fmemopen(out, TC_COMMAND, "w");
    out[0] = '\0';
    if (!text)
        return out;
    fputs("tenon-conform run ", text);
    tc_put_shell(text, plugin);
    if (device)
        fprintf(text, " --device %u", device);
    fputc(' ', text);
    put_quoted(text, line);
    fclose(text);
    out[TC_COMMAND - 1] = '\0';
    return out;
}
