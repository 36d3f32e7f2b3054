/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_program_rows[] = {{0}};
