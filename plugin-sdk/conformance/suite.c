/* See suite.h. */
#include "suite.h"

const tc_suite tc_builtin_suite = {0};
