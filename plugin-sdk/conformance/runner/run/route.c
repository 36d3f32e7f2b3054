/* See route.h. */
#include "plugin-sdk/conformance/runner/run/route.h"

#include <string.h>

static const tc_route routes[] = {{"", false, false, false, false, 1},
#define ROUTE(class, core, fresh, alone, heap, patience) \
    {class, core, fresh, alone, heap, patience},
                                  TC_ROUTES(ROUTE)
#undef ROUTE
};

unsigned tc_n_routes(void) {
    return sizeof routes / sizeof *routes;
}

const tc_route *tc_route_get(unsigned route) {
    return &routes[route];
}

unsigned tc_route_of(const char *line) {
    size_t n = strcspn(line, "/ ");
    for (unsigned i = 1; i < tc_n_routes(); i++)
        if (strlen(routes[i].class) == n && memcmp(routes[i].class, line, n) == 0)
            return i;
    return TC_UNKNOWN_ROUTE;
}
