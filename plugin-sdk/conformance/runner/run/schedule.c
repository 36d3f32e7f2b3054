/* See schedule.h. */
#include "plugin-sdk/conformance/runner/run/schedule.h"

#include <string.h>

static const tc_schedule schedules[] = {{"", TC_PROGRAM_PLUGIN, false, false, false, 1, 1},
#define SCHEDULE(class, program, fresh, alone, heap, patience, cost) \
    {class, TC_PROGRAM_##program, fresh, alone, heap, patience, cost},
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

/* Looks at how much memory is free, of which other workers take, too, or takes all of it; loses the
 * device; compiles a kernel of each record, where nothing is in the device's cache yet. */
static const struct {
    const char *begins;
    bool alone;
    int patience;
} exceptions[] = {
    {"process/exhaustion-", true, 2},
    {"process/host-memory-", true, 2},
    {"process/life-leaves-nothing of=memory-", true, 2},
    {"process/lost-", true, 2},
    {"process/memory-", true, 2},
    {"contract/memory-", true, 1},
    {"contract/kernel-large", false, 4},
    {"contract/kernel-prepare", false, 4},
    {"contract/capture-kernels", false, 4},
    {"contract/record-", false, 4},
};

enum { N_EXCEPTIONS = sizeof exceptions / sizeof *exceptions };

static int exception_of(const char *line) {
    int i = 0;
    while (i < N_EXCEPTIONS &&
           strncmp(line, exceptions[i].begins, strlen(exceptions[i].begins)) != 0)
        i++;
    return i < N_EXCEPTIONS ? i : -1;
}

bool tc_schedule_alone(const char *line) {
    int i = exception_of(line);
    return i >= 0 ? exceptions[i].alone : schedules[tc_schedule_of(line)].alone;
}

int tc_schedule_patience(const char *line) {
    int i = exception_of(line);
    return i >= 0 ? exceptions[i].patience : schedules[tc_schedule_of(line)].patience;
}
