/* As much of JSON (RFC 8259) as verdicts and logs need: text is quoted, and members of an
 * object are found in text that may have come from anywhere. Nothing is allocated.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_JSON_H
#define TNI_PLUGIN_SDK_CONFORMANCE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes s between quotes, whatever bytes it has: what is not UTF-8 becomes U+FFFD. Cut between
 * characters where `room` (at least 3) ends. Returns the length without the closing zero. */
size_t tc_json_quote(const char *s, char *out, size_t room);

/* The same to a stream, never cut. */
void tc_json_put(FILE *out, const char *s);

/* One past the value that starts at `at` (blanks before it are passed over), or NULL where there is
 * none: malformed, or nested deeper than 32. */
const char *tc_json_skip(const char *at);

/* Whether the whole text is one object. */
bool tc_json_is_object(const char *text);

/* The value of a member of the object, or NULL. The text must have been found to be an object. */
const char *tc_json_member(const char *object, const char *name);

/* Values; false where the value is NULL or of another kind. A string that is cut is no error. */
bool tc_json_string(const char *value, char *out, size_t room);
/* Numbers, and the strings "inf", "-inf" and "nan", which JSON has no numbers for. */
bool tc_json_number(const char *value, double *out);

#endif
