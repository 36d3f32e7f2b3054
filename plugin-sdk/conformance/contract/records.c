/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_record_rows[] = {{0}};
