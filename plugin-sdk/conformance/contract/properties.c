/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_property_rows[] = {{0}};
