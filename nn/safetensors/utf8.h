/* Is a string UTF-8? jansson refuses what is not, in the same way as it refuses for want of
 * memory. */
#ifndef TNI_NN_SAFETENSORS_UTF8_H
#define TNI_NN_SAFETENSORS_UTF8_H

#include <stdbool.h>

/* As RFC 3629 has it: no longer forms, no surrogates, nothing past U+10FFFF. */
bool tnn_is_utf8(const char *text);

#endif
