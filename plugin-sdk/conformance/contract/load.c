/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_load_rows[] = {{0}};
