/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_transfer_rows[] = {{0}};
