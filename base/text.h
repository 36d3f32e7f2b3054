/* A growing string that is put together piece by piece, and JSON's way to write a string; texts
 * from outside; misspelt words. */
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

/* Lets no byte of `s` change a terminal: a control character but newline and tab, and each byte that is
 * no UTF-8, becomes a question mark. */
void tni_text_make_printable(char *s);

/* May who wrote `s` have meant `word`? One letter wrong, left out or too much, two in longer words; or
 * `s` goes on after it with an underscore. */
bool tni_text_is_near(const char *s, const char *word);

#endif
