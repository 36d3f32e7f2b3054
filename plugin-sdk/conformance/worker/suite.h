/* The classes of cases that tenon-conform itself runs, as a worker. */
#ifndef TENON_CONFORMANCE_SUITE_H
#define TENON_CONFORMANCE_SUITE_H

#include "plugin-sdk/conformance/worker/worker.h"

extern const tc_suite tc_builtin_suite;

#endif
