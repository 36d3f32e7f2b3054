/* Writes JSON to standard output: one value a line, commas and quotes where they belong.
 *
 * A key of NULL is for elements of an array. Strings that are NULL become null.
 */
#ifndef TNI_CLI_JSON_H
#define TNI_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

void json_object_open(const char *key);
void json_object_close(void);
void json_array_open(const char *key);
void json_array_close(void);
void json_string(const char *key, const char *value);
void json_number(const char *key, uint64_t value);
void json_bool(const char *key, bool value);

#endif
