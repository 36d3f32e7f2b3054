/* Helpers with which families write the case lines of a set. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_SAMPLES_SAMPLE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_SAMPLES_SAMPLE_H

#include "plugin-sdk/conformance/worker/kernel/record.h"

/* How a tensor lies. Outputs may lie in the first TC_N_OUT_LAYOUTS ways. */
typedef enum tc_layout {
    TC_LAYOUT_DENSE,
    TC_LAYOUT_SHIFTED,  /* dense, three elements later: the least alignment there can be */
    TC_LAYOUT_PADDED,   /* rows with a gap of three elements between them */
    TC_LAYOUT_STEPPED,  /* every other element */
    TC_LAYOUT_REVERSED, /* the first dimension innermost */
    TC_N_OUT_LAYOUTS,
    TC_LAYOUT_ZERO_FIRST = TC_N_OUT_LAYOUTS, /* the first dimension broadcast */
    TC_LAYOUT_ZERO_LAST,
    TC_LAYOUT_ZERO_ALL,
    TC_N_LAYOUTS
} tc_layout;

typedef struct tc_line {
    char text[TC_MAX_LINE];
    size_t n;
} tc_line;

/* Starts "kernel/OP T=f32 …". */
tc_line tc_line_start(const tc_sampler *m);
/* Appends " format". */
void tc_line_add(tc_line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends " name=[sizes]/[strides]+offset". */
void tc_line_tensor(tc_line *l, const char *name, int32_t rank, const int64_t *sizes,
                    tc_layout layout);
/* The same of output k. */
void tc_line_out(tc_line *l, const tc_sampler *m, uint32_t k, int32_t rank, const int64_t *sizes,
                 tc_layout layout);
/* Appends " name=[sizes]/[strides]", broadcast along the dimensions whose bits are in `zeros`. */
void tc_line_broadcast(tc_line *l, const char *name, int32_t rank, const int64_t *sizes,
                       uint32_t zeros);
/* The same with these strides; NULL: dense. */
void tc_line_strided(tc_line *l, const char *name, int32_t rank, const int64_t *sizes,
                     const int64_t *strides);
void tc_line_ints(tc_line *l, const char *name, int32_t n, const int64_t *values);
void tc_emit(const tc_sampler *m, tc_line l);
/* The same with whole numbers, for this class alone (tc_is_extra), and no other line is made of it. */
void tc_emit_once(const tc_sampler *m, tc_line l);

/* Emits a line for each kind of data that a set has for such an operator, but for those in
 * `without` (TC_DATA_BIT). */
#define TC_DATA_BIT(data) (1u << (data))
void tc_emit_data(const tc_sampler *m, const tc_line *l, uint32_t without);

/* Is this the choice of dtypes for which a set has calls so large that work is split: f32 where the
 * operator takes it, else i64, which every device has, too? They take long. */
bool tc_has_large(const tc_sampler *m);

/* Elements of cheap work of which a device makes more than one part. Each dtype has loops of its own,
 * so that each is tried with so many. */
int64_t tc_split(const tc_sampler *m);

/* Does the set perf have calls of these dtypes? Of the dtypes of tc_has_large it has every
 * operator, of the other floating ones and i64 a few. */
bool tc_is_timed(const tc_sampler *m);

/* All dimensions there can be, none of one element: who counts those that are left when adjacent ones are joined may
 * stop earlier. */
#define TC_ALL_DIMENSIONS 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2

/* More elements than 20 bits count, in one dimension: once for each operator whose work is that long a line of. */
enum { TC_BEYOND = (1 << 20) + 77 };

#define TC_LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define TC_SIZES(...) \
    (const int64_t[]) { \
        __VA_ARGS__ \
    }

#endif
