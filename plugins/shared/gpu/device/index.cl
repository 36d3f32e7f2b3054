/* Reading and adding at places named by an index tensor. Work items are cut out of rows:
 * of the loop's innermost dimension each takes a run. An index out of range is reported, and no
 * memory is touched for it.
 *
 *   INDEX    i32 or i64, what counts elements
 *   T        the dtype, for adding
 *   A        the dtype sums are kept in: f32 for halves
 *   SHARED   1: all lines have one index (add_sorted)
 *   P        i32 or i64, places of add_sorted
 *
 * Without T there is gather_i8 and so on, which only move. Of `gather` and `add` there are forms,
 * which are known when they are compiled: with _same the index does not change along a row, with
 * _unit elements of a row lie side by side, but for the index. */
#include "plugins/shared/gpu/device/index.params.h"

#define ALONG(k) (unit ? 1 : p->row_strides[k])
#define IN_RANGE(k) ((u64)(k) < (u64)p->size)
#define FORMS(X) X(, 0, 0) X(_same, 1, 0) X(_unit, 0, 1) X(_same_unit, 1, 1)

/* Of this work item: the part of a row, and where the row begins in each tensor. */
#define PLACE() \
    INDEX item = (INDEX)GLOBAL_ID(0); \
    if (item >= p->items) \
        return; \
    i64 begin = item % (INDEX)p->runs * p->run; \
    i64 end = begin + p->run < p->row ? begin + p->run : p->row; \
    i64 at[3] = {p->offsets[0], p->offsets[1], p->offsets[2]}; \
    WALK(p->loop, 3, INDEX, item / (INDEX)p->runs, at)

#ifndef T

#define MOVE_EACH() \
    for (i64 j = begin; j < end; j++) \
    out[j * ALONG(1)] = in[j * ALONG(2)]
#if IS_CPU
#define MOVE(T, unit) MOVE_EACH()
#else
/* Where rows lie side by side, runs are of 16 bytes. */
MAKE_PACK(i8, 16)
MAKE_PACK(i16, 8)
MAKE_PACK(i32, 4)
MAKE_PACK(i64, 2)
#define MOVE(T, unit) \
    do { \
        if ((unit) && end - begin == 16 / BYTES(T) && IS_PACK(T, in + begin) && \
            IS_PACK(T, out + begin)) \
            *(GLOBAL packed(T) *)(out + begin) = *(GLOBAL const packed(T) *)(in + begin); \
        else \
            MOVE_EACH(); \
    } while (0)
#endif

#define GATHER(T) \
    DEVICE void gather_of_##T(const bool same, const bool unit, GLOBAL const i64 *RESTRICT index, \
                              GLOBAL stored(T) * RESTRICT out, \
                              GLOBAL const stored(T) * RESTRICT in, GLOBAL i32 * error, \
                              const index_params *p) { \
        PLACE(); \
        index += at[0]; \
        out += at[1]; \
        in += at[2]; \
        if (same) { \
            i64 k = index[0]; \
            if (!IN_RANGE(k)) { \
                report_index(error, k, p->size); \
                return; \
            } \
            in += k * p->stride; \
            MOVE(T, unit); \
            return; \
        } \
        for (i64 j = begin; j < end; j++) { \
            i64 k = index[j * p->row_strides[0]]; \
            if (IN_RANGE(k)) \
                out[j * ALONG(1)] = in[j * ALONG(2) + k * p->stride]; \
            else \
                report_index(error, k, p->size); \
        } \
    }
GATHER(i8)
GATHER(i16)
GATHER(i32)
GATHER(i64)

#define MAKE(T, suffix, same, unit) \
    KERNEL(gather_##T##suffix) \
    (GLOBAL const i64 *RESTRICT index, GLOBAL stored(T) * RESTRICT out, \
     GLOBAL const stored(T) * RESTRICT in, GLOBAL i32 * error, const index_params p) { \
        gather_of_##T(same, unit, index, out, in, error, &p); \
    }
#define MAKE_ALL(suffix, same, unit) \
    MAKE(i8, suffix, same, unit) \
    MAKE(i16, suffix, same, unit) MAKE(i32, suffix, same, unit) MAKE(i64, suffix, same, unit)
FORMS(MAKE_ALL)

#else

/* ---- adding ------------------------------------------------------------------------------ */

#if IS_BOOL(T)
#define SUM(a, b) ((a) | (b))
#elif IS_FLOAT(T)
#define SUM(a, b) ((a) + alpha * (b))
#else
#define SUM(a, b) (computed(A))((wrap(A))(a) + (wrap(A))alpha * (wrap(A))(b))
#endif

/* A work item adds all that goes to its lines, one index after the other. */
DEVICE void add_to(const bool same, const bool unit, GLOBAL const i64 *RESTRICT index,
                   GLOBAL const stored(T) * RESTRICT in, GLOBAL stored(A) * RESTRICT out,
                   GLOBAL i32 *error, const index_params *p) {
    PLACE();
    computed(T) alpha = number(T)(p->alpha);
    index += at[0];
    in += at[1];
    out += at[2];
    for (i64 i = 0; i < p->n; i++) {
        if (same) {
            i64 k = index[0];
            if (IN_RANGE(k)) {
                GLOBAL stored(A) *to = out + k * p->stride;
                for (i64 j = begin; j < end; j++)
                    store(A)(to, j * ALONG(2),
                             SUM(load(A)(to, j * ALONG(2)), load(T)(in, j * ALONG(1))));
            } else {
                report_index(error, k, p->size);
            }
        } else {
            for (i64 j = begin; j < end; j++) {
                i64 k = index[j * p->row_strides[0]];
                if (IN_RANGE(k)) {
                    i64 to = j * ALONG(2) + k * p->stride;
                    store(A)(out, to, SUM(load(A)(out, to), load(T)(in, j * ALONG(1))));
                } else {
                    report_index(error, k, p->size);
                }
            }
        }
        index += p->strides[0];
        in += p->strides[1];
    }
    (void)alpha;
}

#define MAKE(suffix, same, unit) \
    KERNEL(add##suffix) \
    (GLOBAL const i64 *RESTRICT index, GLOBAL const stored(T) * RESTRICT in, \
     GLOBAL stored(A) * RESTRICT out, GLOBAL i32 * error, const index_params p) { \
        add_to(same, unit, index, in, out, error, &p); \
    }
FORMS(MAKE)

/* The indices of a line were sorted (sort.cl): a work item looks at one, and where it is the first
 * of equals adds what goes there, in the order of places. */
KERNEL(add_sorted)
(GLOBAL const u64 *keys, GLOBAL const P *places, GLOBAL const stored(T) * RESTRICT in,
 GLOBAL stored(A) * RESTRICT out, GLOBAL i32 *error, const index_params p) {
    INDEX item = (INDEX)GLOBAL_ID(0);
    if (item >= p.items)
        return;
#if SHARED
    INDEX lines = (INDEX)p.items / (INDEX)p.n, line = item % lines, i = item / lines;
#else
    INDEX line = item / (INDEX)p.n, i = item % (INDEX)p.n;
    keys += line * p.n;
    places += line * p.n;
#endif
    keys += p.keys;
    places += p.places;
    u64 key = keys[i];
    if (i > 0 && keys[i - 1] == key)
        return;
    i64 k = (i64)(key ^ (u64)1 << 63);
    if ((u64)k >= (u64)p.size) {
        report_index(error, k, p.size);
        return;
    }
    i64 at[3] = {p.offsets[0], p.offsets[1], p.offsets[2]};
    WALK(p.loop, 3, INDEX, line, at);
    computed(T) alpha = number(T)(p.alpha);
    i64 to = at[2] + k * p.stride;
    computed(A) sum = load(A)(out, to);
    for (i64 j = i; j < p.n && keys[j] == key; j++)
        sum = SUM(sum, load(T)(in, at[1] + places[j] * p.strides[1]));
    store(A)(out, to, sum);
    (void)alpha;
}
#endif
