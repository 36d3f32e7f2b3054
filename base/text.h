/* A growing string that is put together piece by piece, and JSON's way to write a string. */
#ifndef TNI_BASE_TEXT_H
#define TNI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as zeros; data is of tni_alloc, or NULL. Once memory was short it stays as it is. */
typedef struct tni_text {
    char *data;
    size_t n, capacity;
    bool failed;
} tni_text;

void tni_text_add(tni_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `s` in quotes, escaped as RFC 8259 has it; bytes that are no UTF-8 become U+FFFD. */
void tni_text_add_json(tni_text *t, const char *s);

#endif
