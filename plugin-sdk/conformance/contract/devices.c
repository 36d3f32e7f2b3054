/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_device_rows[] = {{0}};
