/* Of the same type as the others, with an id of its own. */
#define ZOO_ID "com.acme.twin"
#include "tests/zoo/good.c"
