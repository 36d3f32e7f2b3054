/* See sets.h. */
#include "plugin-sdk/conformance/sets.h"

#include <stdio.h>
#include <string.h>

static const char *const set_names[TC_N_SETS] = {"smoke", "standard", "exhaustive", "perf"};

const char *tc_set_name(tc_set set) {
    return (unsigned)set < TC_N_SETS ? set_names[set] : "?";
}

bool tc_set_find(const char *name, tc_set *out) {
    for (unsigned i = 0; i < TC_N_SETS; i++)
        if (strcmp(set_names[i], name) == 0) {
            *out = (tc_set)i;
            return true;
        }
    return false;
}

char *tc_sets_name(tc_sets sets, char out[TC_SETS_NAME]) {
    size_t n = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < TC_N_SETS; i++)
        if (sets & TC_SET_BIT(i))
            n += (size_t)snprintf(out + n, TC_SETS_NAME - n, "%s%s", n ? "+" : "", set_names[i]);
    return out;
}

bool tc_sets_find(const char *names, tc_sets *out) {
    tc_sets sets = 0;
    for (const char *at = names;; at++) {
        char name[TC_SETS_NAME];
        tc_set set;
        size_t n = strcspn(at, "+");
        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, at);
        if (!tc_set_find(name, &set))
            return false;
        sets |= TC_SET_BIT(set);
        at += n;
        if (!*at)
            break;
    }
    *out = sets;
    return true;
}

tc_sets tc_sets_join(tc_sets a, tc_sets b) {
    tc_sets perf = (a | b) & TC_SET_BIT(TC_PERF);
    a &= ~perf;
    b &= ~perf;
    return perf | (a > b ? a : b);
}

bool tc_sets_have(tc_sets sets, tc_set set) {
    tc_sets perf = TC_SET_BIT(TC_PERF);
    return set == TC_PERF ? sets & perf : (sets & ~perf) >= TC_SET_BIT(set);
}
