/* Records that may come from anywhere, read with jansson: what is malformed in any way is refused
 * whole, what is missing or of another kind reads as nothing. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_JSON_RECORD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_JSON_RECORD_H

#include <jansson.h>

#include "plugin-sdk/conformance/verdict.h"

/* The one object that the n bytes are, to be given back with json_decref; NULL where they are
 * anything else. */
json_t *tc_json_parse(const char *text, size_t n);

/* A string of any bytes: what is not UTF-8 becomes U+FFFD. NULL: no memory. */
json_t *tc_json_text(const char *text);

/* A member's text, "" where the object (or NULL) has none; lives as long as the object. */
const char *tc_json_string(const json_t *object, const char *name);

/* A member's number, or the strings "inf", "-inf" and "nan", which JSON has no numbers for. Where
 * there is none *out stays as it is. */
bool tc_json_number(const json_t *object, const char *name, double *out);

/* Reads what tc_verdict_write wrote (unknown members are passed over); false where it is anything
 * else. `line` has room for TC_MAX_LINE bytes. */
bool tc_verdict_from_json(const json_t *object, tc_verdict *out, char *line);
bool tc_verdict_read(const char *text, tc_verdict *out, char *line);

#endif
