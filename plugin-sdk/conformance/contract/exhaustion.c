/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_exhaustion_rows[] = {{0}};
