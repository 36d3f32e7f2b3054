/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_host_memory_rows[] = {{0}};
