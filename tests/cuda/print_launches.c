/* Prints the kernels that hot calls are made of on a large GPU, a line each:
 *
 *     CALL | ENTRY | FILE OPTIONS | work items of a group */
#include "tests/cuda/launches.h"

#include <stdio.h>

int main(void) {
    seen all[MAX_LAUNCHES];
    for (const described *d = hot_calls; d->name; d++) {
        tn_status status;
        int n = launches_of(d, &large_gpu, all, &status);
        if (status != TN_OK) {
            fprintf(stderr, "%s: status %d\n", d->name, (int)status);
            return 1;
        }
        for (int i = 0; i < n; i++) {
            uint64_t *local = all[i].launch.local, items = 1;
            for (int k = 0; k < 3; k++)
                items *= local[k] ? local[k] : 1;
            printf("%s | %s | %s %s -DIS_CPU=0 -DHAS_F64=1 | %llu\n", d->name, all[i].entry,
                   all[i].file, all[i].options, (unsigned long long)items);
        }
    }
    return 0;
}
