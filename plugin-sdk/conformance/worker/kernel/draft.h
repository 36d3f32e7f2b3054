/* A case line that can be edited: parameters are set, changed and removed. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_DRAFT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_DRAFT_H

#include "plugin-sdk/conformance/case.h"

enum { TC_DRAFT_NAME = 64, TC_DRAFT_VALUE = 512 };

typedef struct tc_draft {
    char class[TC_DRAFT_NAME], subject[TC_DRAFT_NAME];
    uint32_t n;
    struct {
        char name[TC_DRAFT_NAME], value[TC_DRAFT_VALUE];
    } at[TC_MAX_PARAMS];
} tc_draft;

/* False with `why` where the line is no case, or has longer words than there is room for. */
bool tc_draft_read(const char *line, tc_draft *out, char why[TC_MESSAGE]);

/* The canonical line, or false where it would be none (too long). For cases of kernels: false too
 * where the operator has no such call, so that no worker need be asked. */
bool tc_draft_line(const tc_draft *d, char out[TC_MAX_LINE]);

/* The position of a parameter, or -1. */
int tc_draft_find(const tc_draft *d, const char *name);
/* Changes or adds a parameter; one too many is left out. */
void tc_draft_set(tc_draft *d, const char *name, const char *value);
void tc_draft_remove(tc_draft *d, int at);

/* A value in brackets, as sizes with strides; false where it is none (an integer below 0). */
bool tc_draft_shape(const tc_draft *d, int at, tc_shape *out);
/* Writes it back: densely where it was not placed. */
void tc_draft_put_shape(tc_draft *d, int at, const tc_shape *s);
/* The same by a name, which is added where it is not there, as by tc_draft_set. */
void tc_draft_set_shape(tc_draft *d, const char *name, const tc_shape *s);

#endif
