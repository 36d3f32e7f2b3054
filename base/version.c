/* The version of the library that runs. */
#include <tenon/base.h>

const char *tn_version(void) {
    return TN_VERSION;
}
