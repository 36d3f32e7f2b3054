/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_thread_rows[] = {{0}};
