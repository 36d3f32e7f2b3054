/* The built-in suite of a test that has none. */
#include "plugin-sdk/conformance/worker/suite.h"

const tc_suite tc_builtin_suite = {0};
