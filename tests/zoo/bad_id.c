/* An id that is no reverse domain name. */
#define ZOO_ID "Acme NPU"
#include "tests/zoo/good.c"
