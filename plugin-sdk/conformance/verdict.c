/* See verdict.h. */
#include "plugin-sdk/conformance/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/json.h"

static const char *const names[] = {
#define TC_STATUS_NAME(NAME, name, when) name,
    TC_STATUS_MAP(TC_STATUS_NAME)
#undef TC_STATUS_NAME
};

const char *tc_status_name(tc_status status) {
    return (unsigned)status < TC_N_STATUSES ? names[status] : "?";
}

static const char *const ceilings[] = {
#define TC_CEILING_NAME(NAME, name) name,
    TC_CEILING_MAP(TC_CEILING_NAME)
#undef TC_CEILING_NAME
};

const char *tc_requirement_name(uint32_t requirement) {
    switch (requirement) {
#define REQUIREMENT_NAME(name, number) \
    case number: \
        return #name;
        TN_REQUIREMENT_MAP(REQUIREMENT_NAME)
#undef REQUIREMENT_NAME
    default:
        return "";
    }
}

const char *tc_ceiling_name(tc_ceiling ceiling) {
    return (unsigned)ceiling < TC_N_CEILINGS ? ceilings[ceiling] : "?";
}

bool tc_status_find(const char *name, tc_status *out) {
    for (unsigned i = 0; i < TC_N_STATUSES; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (tc_status)i;
            return true;
        }
    return false;
}

bool tc_verdict_set(tc_verdict *v, tc_status status, tn_requirement requirement, const char *format,
                    ...) {
    if (v->status == TC_FAIL)
        return false;
    v->status = status;
    v->requirement = requirement;
    va_list args;
    va_start(args, format);
    vsnprintf(v->message, sizeof v->message, format, args);
    va_end(args);
    return false;
}

static int put_number(char *out, size_t room, const char *name, double value) {
    if (isnan(value))
        return snprintf(out, room, ",\"%s\":\"nan\"", name);
    if (isinf(value))
        return snprintf(out, room, ",\"%s\":\"%s\"", name, value < 0 ? "-inf" : "inf");
    return snprintf(out, room, ",\"%s\":%.9g", name, value);
}

/* Room that the members between the line and the message take at most. */
enum { NUMBERS = 512 };

static size_t put_figures(char *out, const tc_figures *f) {
    size_t n = (size_t)sprintf(out, ",\"figures\":{\"ns\":%.9g", f->ns);
#define PUT(member) n += (size_t)put_number(out + n, 64, #member, f->member);
    TC_FIGURES(PUT)
#undef PUT
    return n + (size_t)sprintf(out + n, ",\"bound\":\"%s\"}", tc_ceiling_name(f->bound));
}

size_t tc_verdict_write(const tc_verdict *v, const char *line, char out[TC_VERDICT_LINE]) {
    size_t n = (size_t)sprintf(out, "{\"case\":");
    n += tc_json_quote(line, out + n, TC_VERDICT_LINE - NUMBERS - 64 - n);
    n += (size_t)sprintf(out + n, ",\"status\":\"%s\"", tc_status_name(v->status));
    if (v->requirement)
        n += (size_t)sprintf(out + n, ",\"requirement\":%" PRIu32, v->requirement);
    if (v->measured) {
        n += (size_t)put_number(out + n, NUMBERS, "share", v->share);
        n += (size_t)put_number(out + n, NUMBERS, "bias", v->bias);
        n += (size_t)sprintf(out + n, ",\"worst\":%" PRId64, v->worst);
    }
    n += (size_t)put_number(out + n, NUMBERS, "ms", v->milliseconds);
    if (v->figures.ns > 0)
        n += put_figures(out + n, &v->figures);
    if (v->message[0]) {
        n += (size_t)sprintf(out + n, ",\"message\":");
        n += tc_json_quote(v->message, out + n, TC_VERDICT_LINE - 2 - n);
    }
    out[n++] = '}';
    out[n] = '\0';
    return n;
}
