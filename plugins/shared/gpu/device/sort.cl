/* Stable sorting along one dimension. Elements become unsigned keys of the same order,
 * which are sorted with their places: first in runs of SORT_RUN, then runs are merged, two to one. The
 * last pass fetches the values by their places.
 *
 *   T            the dtype
 *   M            i8, i16, i32 or i64, as which its bits are read and written
 *   K            u32 or u64, a key
 *   P            i32 or i64, a place
 *   DESCENDING   1: the largest first
 *   INDEX        i32 or i64, what counts elements
 *
 * A pass writes the workspace; runs_last and merge_last write the result. */
#include "plugins/shared/gpu/device/sort.params.h"

/* ---- keys -------------------------------------------------------------------------------- */

#if DTYPE(T) == DTYPE_f64
#define MOST 0x7ff0000000000000u
#elif DTYPE(T) == DTYPE_f32
#define MOST 0x7f800000u
#elif DTYPE(T) == DTYPE_f16
#define MOST 0x7c00u
#elif DTYPE(T) == DTYPE_bf16
#define MOST 0x7f80u
#endif

/* The keys of -0 and 0 are equal, and so are those of all NaNs, the largest. */
DEVICE K key_of(stored(M) x) {
    K sign = (K)1 << (8 * sizeof x - 1), u = (K)x & (sign | (sign - 1));
#if IS_FLOAT(T)
    K size = u & (sign - 1);
    K key = size > MOST ? sign | (sign - 1) : u & sign ? sign - size : sign + size;
#elif DTYPE(T) == DTYPE_u8 || IS_BOOL(T)
    K key = u;
#else
    K key = u ^ sign;
#endif
    return DESCENDING ? ~key : key;
}

/* ---- what a pass writes ------------------------------------------------------------------ */

#define WRITE(i, key, place) \
    do { \
        if (!last) { \
            keys[p->keys[1] + line * p->n + (i)] = (key); \
            places[p->places[1] + line * p->n + (i)] = (place); \
            break; \
        } \
        values[at[0] + (i)*p->strides[0]] = in[at[2] + (i64)(place)*p->strides[2]]; \
        out_places[at[1] + (i)*p->strides[1]] = (place); \
    } while (0)

#define ARGUMENTS \
    GLOBAL stored(M) * values, GLOBAL i64 *out_places, GLOBAL const stored(M) * in, \
        GLOBAL K *keys, GLOBAL P *places
#define PASSED values, out_places, in, keys, places, &p

#define PLACE() \
    INDEX item = (INDEX)GLOBAL_ID(0); \
    if (item >= p->items) \
        return; \
    INDEX line = item / (INDEX)p->per_line, part = item % (INDEX)p->per_line; \
    i64 at[3] = {p->offsets[0], p->offsets[1], p->offsets[2]}; \
    WALK(p->loop, 3, INDEX, line, at)

/* ---- passes ------------------------------------------------------------------------------ */

/* What fills up the last run stays behind all else. On a GPU neighbours change places until none
 * would, in this order no more than SORT_RUN rounds: so all is in registers. */
DEVICE void make_runs(const bool last, ARGUMENTS, const sort_params *p) {
    PLACE();
    i64 first = (i64)part * SORT_RUN;
    int n = (int)(p->n - first < SORT_RUN ? p->n - first : SORT_RUN);
    K key[SORT_RUN];
    P place[SORT_RUN];
#if IS_CPU
    for (int i = 0; i < n; i++) {
        K x = key_of(in[at[2] + (first + i) * p->strides[2]]);
        int j = i;
        for (; j > 0 && key[j - 1] > x; j--) {
            key[j] = key[j - 1];
            place[j] = place[j - 1];
        }
        key[j] = x;
        place[j] = (P)(first + i);
    }
#else
#pragma unroll
    for (int i = 0; i < SORT_RUN; i++) {
        key[i] = i < n ? key_of(in[at[2] + (first + i) * p->strides[2]]) : (K) ~(K)0;
        place[i] = (P)(first + i);
    }
#pragma unroll
    for (int round = 0; round < SORT_RUN; round++) {
#pragma unroll
        for (int i = round & 1; i + 1 < SORT_RUN; i += 2) {
            K a = key[i], b = key[i + 1];
            P pa = place[i], pb = place[i + 1];
            bool down = a > b;
            key[i] = down ? b : a;
            key[i + 1] = down ? a : b;
            place[i] = down ? pb : pa;
            place[i + 1] = down ? pa : pb;
        }
    }
#endif
#pragma unroll
    for (int i = 0; i < SORT_RUN; i++)
        if (i < n)
            WRITE(first + i, key[i], place[i]);
}

/* Of two neighbouring runs, a and b, the elements that come to lie in a chunk. */
DEVICE void make_merge(const bool last, ARGUMENTS, const sort_params *p) {
    PLACE();
    i64 begin = (i64)part * p->chunk, end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
    i64 first = begin / (2 * p->run) * (2 * p->run), left = p->n - first;
    i64 n_a = left < p->run ? left : p->run;
    i64 n_b = left - n_a < p->run ? left - n_a : p->run;
    i64 before = begin - first;
    GLOBAL const K *a = keys + p->keys[0] + (i64)line * p->n + first, *b = a + n_a;
    GLOBAL const P *place_a = places + p->places[0] + (i64)line * p->n + first,
                   *place_b = place_a + n_a;
    i64 i = before > n_b ? before - n_b : 0, most = before < n_a ? before : n_a;
    while (i < most) { /* how many of those before come from a */
        i64 middle = (i + most) / 2;
        if (a[middle] <= b[before - 1 - middle])
            i = middle + 1;
        else
            most = middle;
    }
    i64 j = before - i;
    i64 to = begin;
    while (to < end && i < n_a && j < n_b) { /* no branches: they would be guessed wrong */
        K key_a = a[i], key_b = b[j];
        P from_a = place_a[i], from_b = place_b[j];
        bool is_a = key_a <= key_b;
        WRITE(to, is_a ? key_a : key_b, is_a ? from_a : from_b);
        i += is_a;
        j += !is_a;
        to++;
    }
    for (; to < end && i < n_a; to++, i++)
        WRITE(to, a[i], place_a[i]);
    for (; to < end; to++, j++)
        WRITE(to, b[j], place_b[j]);
}

KERNEL(runs)(ARGUMENTS, const sort_params p) {
    make_runs(false, PASSED);
}
KERNEL(runs_last)(ARGUMENTS, const sort_params p) {
    make_runs(true, PASSED);
}
KERNEL(merge)(ARGUMENTS, const sort_params p) {
    make_merge(false, PASSED);
}
KERNEL(merge_last)(ARGUMENTS, const sort_params p) {
    make_merge(true, PASSED);
}
