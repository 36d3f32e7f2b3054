/* Was linked without the library that has this function. */
int tiger_from_a_library_not_linked(void);
#define ZOO_INIT return tiger_from_a_library_not_linked();
#include "tests/zoo/good.c"
