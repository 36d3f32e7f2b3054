/* The version of the library that runs, which may differ from that of the headers. */
#include <tenon/base.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *tn_version(void) {
    return TEXT(TN_VERSION_MAJOR) "." TEXT(TN_VERSION_MINOR) "." TEXT(TN_VERSION_PATCH);
}
