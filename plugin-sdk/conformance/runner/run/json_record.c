/* See json_record.h. */
#include "plugin-sdk/conformance/runner/run/json_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/json.h"

json_t *tc_json_parse(const char *text, size_t n) {
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}

json_t *tc_json_text(const char *text) {
    json_t *value = json_string(text);
    if (value)
        return value;
    size_t room = 6 * strlen(text) + 3;
    char *quoted = malloc(room);
    if (quoted)
        value = json_loadb(quoted, tc_json_quote(text, quoted, room), JSON_DECODE_ANY, NULL);
    free(quoted);
    return value;
}

const char *tc_json_string(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

bool tc_json_number(const json_t *object, const char *name, double *out) {
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    if (json_is_number(value))
        *out = json_number_value(value);
    else if (text && (!strcmp(text, "inf") || !strcmp(text, "-inf") || !strcmp(text, "nan")))
        *out = strtod(text, NULL);
    else
        return false;
    return true;
}

/* As much as fits, without half a character at its end. */
static void copy(const char *text, char *out, size_t room) {
    size_t n = strlen(text);
    if (n >= room)
        for (n = room - 1; n > 0 && (text[n] & 0xc0) == 0x80; n--)
            ;
    memcpy(out, text, n);
    out[n] = '\0';
}

static void read_figures(const json_t *json, tc_figures *f) {
    tc_json_number(json, "ns", &f->ns);
#define READ(member) tc_json_number(json, #member, &f->member);
    TC_FIGURES(READ)
#undef READ
    for (unsigned i = 0; i < TC_N_CEILINGS; i++)
        if (strcmp(tc_ceiling_name((tc_ceiling)i), tc_json_string(json, "bound")) == 0)
            f->bound = (tc_ceiling)i;
}

bool tc_verdict_from_json(const json_t *object, tc_verdict *out, char *line) {
    memset(out, 0, sizeof *out);
    double number = 0;
    copy(tc_json_string(object, "case"), line, TC_MAX_LINE);
    if (!json_is_string(json_object_get(object, "case")) ||
        !tc_status_find(tc_json_string(object, "status"), &out->status))
        return false;
    if (tc_json_number(object, "requirement", &number) && number >= 0 && number < 1e6)
        out->requirement = (uint32_t)number;
    out->measured = tc_json_number(object, "share", &out->share);
    tc_json_number(object, "bias", &out->bias);
    if (tc_json_number(object, "worst", &number) && fabs(number) < 9e18)
        out->worst = (int64_t)number;
    tc_json_number(object, "ms", &out->milliseconds);
    read_figures(json_object_get(object, "figures"), &out->figures);
    copy(tc_json_string(object, "message"), out->message, sizeof out->message);
    return true;
}

bool tc_verdict_read(const char *text, tc_verdict *out, char *line) {
    json_t *object = tc_json_parse(text, strlen(text));
    bool good = object && tc_verdict_from_json(object, out, line);
    json_decref(object);
    return good;
}
