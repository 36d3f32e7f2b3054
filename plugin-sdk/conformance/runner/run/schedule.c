/* See schedule.h. */
#include "plugin-sdk/conformance/runner/run/schedule.h"

#include <string.h>

static const tc_schedule schedules[] = {{"", false, false, false, false, 1},
#define SCHEDULE(class, core, fresh, alone, heap, patience) \
    {class, core, fresh, alone, heap, patience},
                                        TC_SCHEDULES(SCHEDULE)
#undef SCHEDULE
};

const tc_schedule *tc_schedule_get(unsigned schedule) {
    return &schedules[schedule];
}

unsigned tc_schedule_of(const char *line) {
    size_t n = strcspn(line, "/ ");
    for (unsigned i = 1; i < sizeof schedules / sizeof *schedules; i++)
        if (strlen(schedules[i].class) == n && memcmp(schedules[i].class, line, n) == 0)
            return i;
    return TC_UNKNOWN_SCHEDULE;
}
