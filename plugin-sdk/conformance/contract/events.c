/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_event_rows[] = {{0}};
