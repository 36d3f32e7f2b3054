/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_poverty_rows[] = {{0}};
