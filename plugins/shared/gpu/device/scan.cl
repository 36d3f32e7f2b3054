/* cumsum along one dimension. A team of work items has a line, or as many as it reads side
 * by side; where there are few lines, chunks of them.
 *
 *   T         the dtype
 *   STAGE     0: whole lines; 1: the sums of chunks; 2: chunks, behind the sums of those before
 *   UNIT      1: the elements that lanes read and write are neighbours
 *   INDEX, ROWS, L, M, P, W    see tiling.h; M is 1 */
#include "tiling.h"

typedef wide(T) A;

/* As the host writes it (gpu/scan.c): of the output and the input. */
typedef struct parameters {
    i64 offsets[2];
    i64 sums; /* where the sums of chunks begin, in A; what they lose is behind them */
    i64 length;
    i64 chunk;    /* elements of a line; a multiple of L * W by rows */
    i64 n_chunks; /* of a line */
    i64 n_lines;
    i64 along[2];     /* strides of the dimension */
    i64 lane_step[2]; /* strides from lane to lane */
    i64 n_teams, per; /* of the call; of a group, besides P */
    i64 width;        /* the innermost other dimension */
    i64 steps[2];     /* its strides */
    LOOP(2) others;
} parameters;

#define LINES (ROWS ? 1 : W)
#define AT(k, j) (at[k] + (j)*p.along[k] + l * (UNIT ? 1 : p.lane_step[k]))
#define STORE(value) store(T)(out, AT(0, j), (computed(T))(value))

KERNEL(scan)
(GLOBAL stored(T) * out, GLOBAL A *sums, GLOBAL const stored(T) * in, const parameters p) {
#if GROUP > 1
    LOCAL A parts[GROUP], parts_lost[GROUP];
#endif
    int id = (int)LOCAL_ID(0), lane = LANE_OF(id);
    i64 chunk = (i64)GROUP_ID(1), begin = chunk * p.chunk,
        end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
    for (i64 t = 0; t < p.per; t++) {
        i64 first_team = ((i64)GROUP_ID(0) * p.per + t) * P, team = first_team + TEAM_OF(id);
        if (first_team >= p.n_teams)
            break;
        bool is_there = team < p.n_teams;
        place here = place_of(team, p.width, lane);
        i64 at[2] = {p.offsets[0] + here.column * p.steps[0],
                     p.offsets[1] + here.column * p.steps[1]};
        WALK(p.others, 2, INDEX, here.outer, at);
#if STAGE > 0
        i64 line = here.outer * p.width + here.column, n_sums = p.n_chunks * p.n_lines;
        GLOBAL A *const to = sums + p.sums + chunk * p.n_lines + line;
#endif

        /* What came before, of each line. */
        A sum[LINES], lost[LINES];
        for (int l = 0; l < LINES; l++)
            sum[l] = lost[l] = 0;
#if STAGE == 2
        for (i64 before = -chunk; before < 0 && is_there; before++)
            for (int l = 0; l < (ROWS ? 1 : here.lanes); l++) {
                ADD_WIDE(A, sum[l], lost[l], to[before * p.n_lines + l]);
                lost[l] += to[n_sums + before * p.n_lines + l];
            }
#endif

        A x[W];
#if ROWS
        for (i64 tile = begin; tile < end; tile += L * W) {
            i64 j = tile + lane * W;
            int count = !is_there || j >= end ? 0 : end - j < W ? (int)(end - j) : W;
            LANES(count, x[l] = (A)load(T)(in, AT(1, j)));
#if L == 1
            for (int l = 0; l < count; l++) {
                ADD_WIDE(A, sum[0], lost[0], x[l]);
                x[l] = TOTAL(sum[0], lost[0]);
            }
#else
            A own = 0, own_lost = 0, to_here[W], lost_here[W];
            for (int l = 0; l < count; l++) {
                ADD_WIDE(A, own, own_lost, x[l]);
                to_here[l] = own;
                lost_here[l] = own_lost;
            }
            parts[id] = own;
            parts_lost[id] = own_lost;
            for (int h = 1; h < L; h *= 2) { /* the sums of up to 2 h work items, ending here */
                BARRIER();
                A other = lane >= h ? parts[id - h] : 0,
                  other_lost = lane >= h ? parts_lost[id - h] : 0;
                BARRIER();
                ADD_WIDE(A, own, own_lost, other);
                own_lost += other_lost;
                parts[id] = own;
                parts_lost[id] = own_lost;
            }
            BARRIER();
            own = sum[0];
            own_lost = lost[0];
            if (lane > 0) {
                ADD_WIDE(A, own, own_lost, parts[id - 1]);
                own_lost += parts_lost[id - 1];
            }
            for (int l = 0; l < count; l++) {
                A hi = own, lo = own_lost;
                ADD_WIDE(A, hi, lo, to_here[l]);
                lo += lost_here[l];
                x[l] = TOTAL(hi, lo);
            }
            ADD_WIDE(A, sum[0], lost[0], parts[id - lane + L - 1]);
            lost[0] += parts_lost[id - lane + L - 1];
            BARRIER();
#endif
#if STAGE != 1
            LANES(count, STORE(x[l]));
#endif
        }
#else
        int count = here.lanes;
        for (i64 j = begin; j < end; j++) {
            LANES(count, x[l] = (A)load(T)(in, AT(1, j)));
            LANES(count, ADD_WIDE(A, sum[l], lost[l], x[l]));
#if STAGE != 1
            LANES(count, x[l] = TOTAL(sum[l], lost[l]));
            LANES(count, STORE(x[l]));
#endif
        }
#endif

#if STAGE == 1
        if (is_there && (!ROWS || lane == 0))
            for (int l = 0; l < (ROWS ? 1 : here.lanes); l++) {
                to[l] = sum[l];
                to[n_sums + l] = lost[l];
            }
#endif
    }
}
