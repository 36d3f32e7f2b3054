/* The end of what core/ops/init.c began; called by tn_shutdown before the registry ends. */
#ifndef TNI_CORE_OPS_INIT_H
#define TNI_CORE_OPS_INIT_H

void tni_core_finish(void);

#endif
