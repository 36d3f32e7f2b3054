/* Checks of device properties, for cases that ask at other times. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_PROPERTIES_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_PROPERTIES_H

#include "plugin-sdk/conformance/worker/contract/contract.h"

/* Tag, range and stability of every property of a device, open or not. */
void tc_check_properties(tc_contract *k, const tc_subject *s, uint32_t index);

/* Of an open device: the largest allocation is not more than there is. */
void tc_check_largest(tc_contract *k, const tc_subject *s, uint32_t index);

/* Follows from all answers; differs where one does. */
uint64_t tc_properties_sum(const tc_subject *s, uint32_t index);

/* The same, whatever the texts say. */
uint64_t tc_numbers_sum(const tc_subject *s, uint32_t index);

#endif
