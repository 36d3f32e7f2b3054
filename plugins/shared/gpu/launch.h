/* From an operator's call to a queued kernel: the variant is found, or built at its first call. */
#ifndef TNI_PLUGINS_SHARED_GPU_LAUNCH_H
#define TNI_PLUGINS_SHARED_GPU_LAUNCH_H

#include "plugins/shared/gpu/driver.h"

/* One for each file of device/; embed.py makes them. */
extern const gpu_source gpu_source_pointwise;
extern const gpu_source gpu_source_copy;
extern const gpu_source gpu_source_gemm;
extern const gpu_source gpu_source_pad;
extern const gpu_source gpu_source_reduce;
extern const gpu_source gpu_source_fill;
extern const gpu_source gpu_source_arange;
extern const gpu_source gpu_source_random_bits;
extern const gpu_source gpu_source_max_pool2d;
extern const gpu_source gpu_source_max_pool2d_backward;
extern const gpu_source gpu_source_avg_pool2d;
extern const gpu_source gpu_source_index;
extern const gpu_source gpu_source_sort;
extern const gpu_source gpu_source_softmax;
extern const gpu_source gpu_source_attention;
extern const gpu_source gpu_source_norm;
extern const gpu_source gpu_source_scan;
extern const gpu_source gpu_source_step;
extern const gpu_source gpu_source_loss;
extern const gpu_source *const gpu_all_sources[]; /* NULL behind the last */

/* What a variant is kept under: the family, and in 48 bits what distinguishes it there. */
#define GPU_KEY(family, bits) ((uint64_t)(family) << 48 | (uint64_t)(bits))

/* Queues the kernel that is kept under `key` on the call's stream. Where there is none yet, it is
 * built from `source`; `format` then gives its name and the options: "scan_rows -DT=f32 -DL=32".
 * Only then is it looked at. [any-thread] */
tn_status gpu_run(const tn_call *call, const gpu_launch *launch, uint64_t key,
                  const gpu_source *source, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Elements that indices of 32 bits can count, and a step of all work items more. */
static inline bool gpu_is_int32(int64_t n) {
    return n < INT32_MAX / 2;
}

/* Makes it a launch of `n` work items, and more where they do not fill the last group of `group`.
 */
static inline void gpu_launch_items(gpu_launch *launch, int64_t n, int64_t group) {
    launch->groups[0] = (uint64_t)((n + group - 1) / group);
    launch->local[0] = (uint64_t)group;
}

/* Makes it a launch of work items that make `each` elements of `n` at a time and then, where the
 * driver chose fewer of them, those that lie so many further on. Of a CPU's, which make one each, there
 * is one for each. */
void gpu_launch_elements(gpu_launch *launch, const gpu_traits *traits, int64_t n, int64_t each);

#endif
