/* Has the id of libtenon_zoo_twin.so. */
#define ZOO_ID "com.acme.twin"
#include "tests/zoo/good.c"
