/* In the place of the interpreter of PTX until that is here: one kernel, for the double's own tests. */
#include "tests/cuda/double/ptx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct ptx_kernel {
    char name[64];
};
struct ptx_module {
    ptx_kernel k;
};
/* fake: .entry NAME */
ptx_module *ptx_module_create(const char *text, char *error, size_t room) {
    const char *at = strstr(text, "// fake") ? strstr(text, ".entry ") : NULL;
    ptx_module *m = at ? calloc(1, sizeof(*m)) : NULL;
    if (!m || sscanf(at, ".entry %63[a-z_0-9]", m->k.name) != 1) {
        free(m);
        snprintf(error, room, "there is no interpreter of PTX yet");
        return NULL;
    }
    return m;
}
void ptx_module_destroy(ptx_module *m) {
    free(m);
}
const ptx_kernel *ptx_module_kernel(const ptx_module *m, const char *name) {
    return strcmp(name, m->k.name) ? NULL : &m->k;
}
ptx_facts ptx_kernel_facts(const ptx_kernel *k) {
    return (ptx_facts){16, 2, 0, 0, 1024};
}
bool ptx_kernel_parameter(const ptx_kernel *k, uint32_t i, uint32_t *o, uint32_t *b) {
    *o = 8 * i;
    *b = 8;
    return i < 2;
}
ptx_result ptx_run(const ptx_launch *l, char *error, size_t room) {
    uint64_t p[2];
    memcpy(p, l->parameters, 16);
    ptx_range r;
    if (!l->find(l->user, p[0], &r)) {
        snprintf(error, room, "no such address");
        return PTX_ILLEGAL_ADDRESS;
    }
    uint32_t n = l->grid[0] * l->block[0];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v;
        memcpy(&v, r.host + (p[0] - r.begin) + 4 * i, 4);
        v += (uint32_t)p[1];
        memcpy(r.host + (p[0] - r.begin) + 4 * i, &v, 4);
    }
    return PTX_DONE;
}
