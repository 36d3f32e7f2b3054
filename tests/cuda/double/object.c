/* Handles: the number of a slot that is never used twice. No pointer, so that a program that looks
 * behind one dies of it, as it would with a driver's. */
#include "tests/cuda/double/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* | 16 bits that no address has | 8 bits kind | 40 bits slot | */
static const uint64_t tag = UINT64_C(0xd0b1) << 48;
static object **slots;
static uint64_t n_slots, room;

void *take(size_t n, size_t bytes) {
    void *memory = calloc(n ? n : 1, bytes);
    if (!memory) {
        fprintf(stderr, "driver double: no host memory\n");
        abort();
    }
    return memory;
}

void *take_again(void *old, size_t n, size_t bytes) {
    void *memory = reallocarray(old, n, bytes);
    if (!memory) {
        fprintf(stderr, "driver double: no host memory\n");
        abort();
    }
    return memory;
}

void object_init(object *o, unsigned kind, context *c) {
    if (n_slots == room) {
        room = room ? 2 * room : 256;
        slots = take_again(slots, room, sizeof(slots[0]));
    }
    slots[n_slots] = o;
    o->kind = kind;
    o->handle = tag | (uint64_t)kind << 40 | n_slots++;
    o->context = c;
    if (kind <= DOUBLE_KINDS)
        driver.alive[kind]++;
    if (c) {
        o->previous = c->objects.previous;
        o->next = &c->objects;
        o->previous->next = o;
        o->next->previous = o;
    }
}

void object_finish(object *o) {
    slots[o->handle & 0xffffffffff] = NULL;
    if (o->kind <= DOUBLE_KINDS)
        driver.alive[o->kind]--;
    if (o->context) {
        o->previous->next = o->next;
        o->next->previous = o->previous;
    }
}

void *object_find(const void *handle, unsigned kind) {
    uint64_t number = (uint64_t)(uintptr_t)handle, slot = number & 0xffffffffff;
    if (number >> 40 != (tag >> 40 | kind) || slot >= n_slots)
        return NULL;
    return slots[slot];
}

void *object_handle(const object *o) {
    return (void *)(uintptr_t)o->handle; // NOLINT(performance-no-int-to-ptr)
}

object *object_any(unsigned kind) {
    for (uint64_t i = 0; i < n_slots && driver.alive[kind]; i++)
        if (slots[i] && slots[i]->kind == kind)
            return slots[i];
    return NULL;
}

void objects_forget(void) {
    free(slots);
    slots = NULL;
    n_slots = room = 0;
}
