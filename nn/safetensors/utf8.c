/* The rows of RFC 3629's grammar; see utf8.h. */
#include "nn/safetensors/utf8.h"

#include <stdint.h>

/* Sequences whose first byte is first..last; the second byte is low..high, others are 80..bf. */
typedef struct row {
    uint8_t first, last, low, high;
    int n; /* bytes */
} row;

static const row rows[] = {
    {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

/* Bytes of the sequence at p; 0 where there is none. */
static int sequence(const uint8_t *p) {
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        if (*p < r->first || *p > r->last)
            continue;
        if (r->n > 1 && (p[1] < r->low || p[1] > r->high))
            return 0;
        for (int k = 2; k < r->n; k++)
            if (p[k] < 0x80 || p[k] > 0xbf)
                return 0;
        return r->n;
    }
    return 0;
}

bool tnn_is_utf8(const char *text) {
    const uint8_t *p = (const uint8_t *)text;
    while (*p) {
        int n = sequence(p);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}
