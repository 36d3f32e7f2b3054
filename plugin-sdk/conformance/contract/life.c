/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_life_rows[] = {{0}};
