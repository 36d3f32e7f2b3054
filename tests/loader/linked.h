/* The plugin of linked.c. */
#ifndef TNI_TESTS_LOADER_LINKED_H
#define TNI_TESTS_LOADER_LINKED_H

#include <tenon/plugin.h>

const tn_plugin *linked_query(const tn_host *host);

/* NULL: they succeed, with two devices. */
extern tn_status (*linked_init)(const tn_host *host);
extern tn_status (*linked_count)(uint32_t *out_count);
extern const tn_host *linked_host; /* what init was given */

#endif
