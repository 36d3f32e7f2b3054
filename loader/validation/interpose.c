/* The functions of the tables that stand in front of a plugin's and of the host's.
 *
 * plugin.h hands no context to most slots, so a function must know by itself whose it is: each of
 * the TNI_MAX_WATCHES watches has a set of its own, made here from the list of slots.
 */
#include "loader/validation/internal.h"

#define DEFINE(N, table, slot, function, result, parameters, arguments) \
    static result function##_##N parameters { \
        return tni_watched_##function arguments; \
    }
#define PLACE(N, table, slot, function, ...) .table.slot = function##_##N,
#define PROXIES(N) \
    TNI_SLOTS(DEFINE, N) \
    static const tni_tables proxies_##N = {TNI_SLOTS(PLACE, N)};

PROXIES(0)
PROXIES(1)
PROXIES(2)
PROXIES(3)
PROXIES(4)
PROXIES(5)
PROXIES(6)
PROXIES(7)

const tni_tables *const tni_proxies_of[] = {&proxies_0, &proxies_1, &proxies_2, &proxies_3,
                                            &proxies_4, &proxies_5, &proxies_6, &proxies_7};
_Static_assert(sizeof tni_proxies_of / sizeof *tni_proxies_of == TNI_MAX_WATCHES,
               "one set of proxies for each watch");
