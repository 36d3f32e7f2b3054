/* See cubin.h. A head with its own check, then pieces of text, each followed by a hash of all that
 * came before it. */
#include "tests/cuda/double/cubin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 56 }; /* bytes of text */

typedef struct head {
    char magic[8];
    uint64_t n_text;
    int32_t number, letter;
    uint64_t check;
} head;

typedef struct piece {
    char text[PIECE]; /* zeros behind the end */
    uint64_t check;
} piece;

static const char magic[8] = {'T', 'N', 'D', 'O', 'U', 'B', 'L', 'E'};

static uint64_t hash(uint64_t before, const void *bytes, size_t n) { /* FNV-1a */
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++)
        before = (before ^ at[i]) * UINT64_C(0x100000001b3);
    return before;
}

static uint64_t check_of(const head *h) {
    return hash(UINT64_C(0xcbf29ce484222325), h, offsetof(head, check));
}

bool architecture_of(const char *ptx, architecture *out) {
    const char *at = strstr(ptx, ".target");
    char letter = 0;
    int number = 0;
    if (!at || sscanf(at, ".target sm_%d%c", &number, &letter) < 1)
        return false;
    *out = (architecture){number, letter == 'a' || letter == 'f' ? letter : '\0'};
    return true;
}

bool cubin_is(const void *image) {
    return strncmp(image, magic, sizeof(magic)) == 0;
}

static size_t n_pieces(size_t n_text) {
    return (n_text + PIECE - 1) / PIECE;
}

size_t cubin_bytes(const char *ptx) {
    return sizeof(head) + n_pieces(strlen(ptx)) * sizeof(piece);
}

void cubin_write(const char *ptx, void *out) {
    head h = {.n_text = strlen(ptx)};
    architecture made_for = {0};
    architecture_of(ptx, &made_for);
    memcpy(h.magic, magic, sizeof(magic));
    h.number = made_for.number;
    h.letter = made_for.letter;
    h.check = check_of(&h);
    memcpy(out, &h, sizeof(h));
    uint64_t running = h.check;
    for (size_t i = 0; i < n_pieces(h.n_text); i++) {
        piece p = {{0}, 0};
        size_t rest = h.n_text - i * PIECE;
        memcpy(p.text, ptx + i * PIECE, rest < PIECE ? rest : PIECE);
        p.check = running = hash(running, p.text, PIECE);
        memcpy((char *)out + sizeof(h) + i * sizeof(p), &p, sizeof(p));
    }
}

char *cubin_read(const void *image, architecture *out) {
    head h;
    memcpy(&h, image, sizeof(h));
    if (h.check != check_of(&h))
        return NULL;
    char *text = calloc(n_pieces(h.n_text) + 1, PIECE);
    uint64_t running = h.check;
    for (size_t i = 0; i < n_pieces(h.n_text) && text; i++) {
        piece p;
        memcpy(&p, (const char *)image + sizeof(h) + i * sizeof(p), sizeof(p));
        running = hash(running, p.text, PIECE);
        if (running != p.check) {
            free(text);
            return NULL;
        }
        memcpy(text + i * PIECE, p.text, PIECE);
    }
    *out = (architecture){h.number, (char)h.letter};
    return text;
}
