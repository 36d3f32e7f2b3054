/* Strings of JSON (RFC 8259): all that a worker, which writes records and reads none, needs of it.
 * Nothing is allocated, since a worker counts what its process has allocated. The runner reads with
 * jansson (runner/run/json_record.h).
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_JSON_H
#define TNI_PLUGIN_SDK_CONFORMANCE_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Writes s between quotes, whatever bytes it has: what is not UTF-8 becomes U+FFFD. Cut between
 * characters where `room` (at least 3) ends. Returns the length without the closing zero. */
size_t tc_json_quote(const char *s, char *out, size_t room);

/* The same to a stream, never cut. */
void tc_json_put(FILE *out, const char *s);

#endif
