/* An id that is no reverse domain name. */
#define ZOO_ID "Acme NPU"
#include "good.c"
