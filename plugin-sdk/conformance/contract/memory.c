/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_memory_rows[] = {{0}};
