/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_error_rows[] = {{0}};
