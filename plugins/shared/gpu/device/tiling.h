/* For kernels that make one result of many elements: what sums are carried in, and how the
 * work items of a group put their parts together. */

/* ---- sums -------------------------------------------------------------------------------- */

#if HAS_F64
typedef f64 wide_f32, wide_f64, wide_f16, wide_bf16;
#else
typedef f32 wide_f32, wide_f16, wide_bf16;
#endif
typedef u32 wide_i8, wide_i16, wide_i32, wide_u8, wide_bool;
typedef u64 wide_i64;
#define wide(X) CAT(wide_, X)

/* A number of wide(X) as the host sends it. */
#if HAS_F64
#define number_wide(bits) number_f64(bits)
#else
#define number_wide(bits) number_f32(bits)
#endif

/* Where nothing wider than X is to be had, what an addition loses is kept in a second number. */
#define IS_COMPENSATED(X) (IS_FLOAT(X) && (!HAS_F64 || DTYPE(X) == DTYPE_f64))

/* hi + lo grows by x, exactly but for lo's own rounding (D. E. Knuth, The Art of Computer
 * Programming, volume 2, 4.2.2, theorem B). */
#define ADD_TWO(A, hi, lo, x) \
    do { \
        A x_ = (x), s_ = (hi) + x_, t_ = s_ - (hi); \
        (lo) += ((hi) - (s_ - t_)) + (x_ - t_); \
        (hi) = s_; \
    } while (0)
#if IS_COMPENSATED(T)
#define ADD_WIDE(A, hi, lo, x) ADD_TWO(A, hi, lo, x)
/* Of infinities and NaN only hi is right. */
#define TOTAL(hi, lo) ((hi) - (hi) == 0 ? (hi) + (lo) : (hi))
#define LOST(...) __VA_ARGS__
#else
#define ADD_WIDE(A, hi, lo, x) ((hi) += (x))
#define TOTAL(hi, lo) (hi)
#define LOST(...)
#endif

/* ---- teams --------------------------------------------------------------------------- */

/* A team is the work items of a group that make a result together, or neighbouring ones.
 *
 *   ROWS     1: lanes lie along a line; 0: beside each other, a line each
 *   L        work items along the lanes; powers of two, as are
 *   M        work items that share a line besides
 *   P        teams of a group
 *   W        lanes of a work item
 *   INDEX    i32 or i64, what counts elements */

#define GROUP (L * M * P)

/* For each lane l of a work item, the first `count`. On a CPU of all of them, as most often, in a
 * loop whose length is known; elsewhere what lanes have is in registers, which have no index. */
#if IS_CPU
#define LANES(count, ...) \
    do { \
        if ((count) == W) \
            for (int l = 0; l < W; l++) { \
                __VA_ARGS__; \
            } \
        else \
            for (int l = 0; l < (count); l++) { \
                __VA_ARGS__; \
            } \
    } while (0)
#else
#define LANES(count, ...) \
    do { \
        for (int l = 0; l < W; l++) \
            if (l < (count)) { \
                __VA_ARGS__; \
            } \
    } while (0)
#endif

/* How many sums a work item keeps of its lanes, lane l's being number l % SUMS: one for each, which
 * become vectors; where lanes share a line and registers are few, two. */
#define SUMS (IS_CPU || !ROWS || W < 2 ? W : 2)

/* The same, x[l] being read from or written to p + at: where the lanes of a GPU's work item lie
 * side by side, at once. */
#if !IS_CPU && ROWS && UNIT && W > 1
#define HAS_PACKS 1
MAKE_PACK(T, W)
#define LOAD_LANES(count, x, p, at, step) LOAD_PACK(T, W, (p) + (at), count, x)
#define STORE_LANES(count, x, p, at, step) STORE_PACK(T, W, (p) + (at), count, x, narrow(T))
#else
#define HAS_PACKS 0
#define LOAD_LANES(count, x, p, at, step) LANES(count, (x)[l] = load(T)(p, (at) + l * (step)))
#define STORE_LANES(count, x, p, at, step) LANES(count, store(T)(p, (at) + l * (step), (x)[l]))
#endif

/* Work item `id` of a group: its place along the lanes, among those that share a line, and its team
 * in the group. */
#define LANE_OF(id) ((int)((u32)(id) % L))
#define SHARE_OF(id) ((int)((u32)(id) / L % M))
#define TEAM_OF(id) ((int)((u32)(id) / (L * M)))

/* ---- what a team makes together ------------------------------------------------------ */

/* STATES(X) is X(type, name) for each part of what a work item has, name[0]; MERGE(other) adds what
 * another has, of whose parts OTHER(name) are copies. */
#define OTHER(name) other_##name

/* Where work items read each other's registers, `id` being LOCAL_ID(0), and teams are neighbours,
 * local memory is for what the warps of a team have. */
#define BY_WARPS (WARP && ROWS && L * M * P > 1)
#if BY_WARPS
#define PARTS (GROUP > WARP ? GROUP / WARP : 1)
#define TO_PART(type, name) parts_##name[id / WARP] = name[0];
#else
#define PARTS GROUP
#define TO_PART(type, name) parts_##name[id] = name[0];
#endif
#define DECLARE_PART(type, name) LOCAL type parts_##name[PARTS];
#define OF_PART(type, name) name[0] = parts_##name[from_];
#define OTHER_PART(type, name) const type other_##name = parts_##name[from_];
#define OF_WARP(type, name) name[0] = SHUFFLE(name[0], from_);
#define OTHER_OF_WARP(type, name) const type other_##name = SHUFFLE_DOWN(name[0], half_);

/* Each of `span` work items, a power of two of them, which stand `step` apart, gets what all of them
 * have. `at` is a work item's number among them. Every work item of the group takes part. In which
 * order parts are added follows from these numbers alone. */
#if BY_WARPS
#define JOIN_TEAM(STATES, MERGE, at, span, step) \
    do { \
        for (int half_ = ((span) < WARP ? (span) : WARP) / 2; half_ > 0; half_ /= 2) { \
            STATES(OTHER_OF_WARP) \
            MERGE(); \
        } \
        if ((span) > WARP) { \
            if (id % WARP == 0) { \
                STATES(TO_PART) \
            } \
            BARRIER(); \
            int from_ = (id - (at)) / WARP; \
            STATES(OF_PART) \
            for (int n_ = (span) / WARP - 1; n_ > 0; n_--) { \
                from_++; \
                STATES(OTHER_PART) \
                MERGE(); \
            } \
            BARRIER(); \
        } else if ((span) > 1) { \
            const int from_ = (id - (at)) % WARP; \
            STATES(OF_WARP) \
        } \
    } while (0)
#else
#define JOIN_TEAM(STATES, MERGE, at, span, step) \
    do { \
        STATES(TO_PART) \
        for (int half_ = (span) / 2; half_ > 0; half_ /= 2) { \
            BARRIER(); \
            if ((at) < half_) { \
                const int from_ = id + half_ * (step); \
                STATES(OTHER_PART) \
                MERGE(); \
                STATES(TO_PART) \
            } \
        } \
        BARRIER(); \
        const int from_ = id - (at) * (step); \
        STATES(OF_PART) \
        BARRIER(); \
    } while (0)
#endif

/* ---- where a team stands ------------------------------------------------------------- */

/* Lines of elements, each of which ends in a result, are numbered along the innermost kept
 * dimension, of `width`, and then along the others. Where a team stands: at line `column` of that
 * width, with `lanes` lanes that have something to do, and number `outer` of the others. By rows a
 * team has one line, by columns L * W. */
typedef struct place {
    i64 outer, column;
    int lanes;
} place;

DEVICE place place_of(i64 team, i64 width, int lane) {
    place here;
    INDEX blocks = (INDEX)(ROWS ? width : (width + L * W - 1) / (L * W)),
          outer = (INDEX)team / blocks, block = (INDEX)team - outer * blocks;
    here.outer = outer;
    here.column = ROWS ? block : ((i64)block * L + lane) * W;
    here.lanes = ROWS || width - here.column > W ? W
                 : width > here.column           ? (int)(width - here.column)
                                                 : 0;
    return here;
}
