/* Cases to come. */
#include "contract.h"

const tc_contract_row tc_stream_rows[] = {{0}};
