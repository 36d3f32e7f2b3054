/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_environment_rows[] = {{0}};
