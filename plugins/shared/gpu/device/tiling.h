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
#else
#define ADD_WIDE(A, hi, lo, x) ((hi) += (x))
#define TOTAL(hi, lo) (hi)
#endif

/* ---- teams --------------------------------------------------------------------------- */

/* A team is the work items of a group that make a result together, or neighbouring ones.
 *
 *   ROWS     1: lanes lie along a line; 0: beside each other, a line each
 *   L        work items along the lanes; powers of two, as are
 *   M        work items that share a line besides
 *   P        teams of a group; 1 for columns
 *   W        lanes of a work item
 *   INDEX    i32 or i64, what counts elements */

#define GROUP (L * M * P)

/* For each lane l of a work item, the first `count`: of all of them, as most often, in a loop whose
 * length is known. */
#define LANES(count, statement) \
    do { \
        if ((count) == W) \
            for (int l = 0; l < W; l++) \
                statement; \
        else \
            for (int l = 0; l < (count); l++) \
                statement; \
    } while (0)

/* Work item `id` of a group: its place along the lanes, among those that share a line, and its team
 * in the group. */
#define LANE_OF(id) ((int)((u32)(id) % L))
#define SHARE_OF(id) ((int)((u32)(id) / L % M))
#define TEAM_OF(id) ((int)((u32)(id) / (L * M)))

/* `span` work items, a power of two of them, stand `step` apart and have a part each in local
 * memory; JOIN(other) adds that of local id `other` to the work item's own. Afterwards the first
 * has the whole, and all may read it. Every work item of the group takes part. */
#define JOIN_TEAM(at, span, step, JOIN) \
    do { \
        for (int half_ = (span) / 2; half_ > 0; half_ /= 2) { \
            BARRIER(); \
            if ((at) < half_) { \
                JOIN((int)LOCAL_ID(0) + half_ * (step)); \
            } \
        } \
        BARRIER(); \
    } while (0)

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
