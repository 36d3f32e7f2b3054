/* cumsum along one dimension. A team of work items has a line, or as many as it reads side
 * by side; where there are few lines, chunks of them.
 *
 *   T         the dtype
 *   STAGE     0: whole lines; 1: the sums of chunks; 2: chunks, behind the sums of those before
 *   UNIT      1: the elements that lanes read and write are neighbours
 *   INDEX, ROWS, L, M, P, W    see tiling.h; M is 1
 *
 * scan_rows is there with ROWS 1, scan_columns with ROWS 0. */
#include "plugins/shared/gpu/device/scan.params.h"
#include "plugins/shared/gpu/device/tiling.h"

typedef wide(T) A;

#define AT(k, j) (at[k] + (j)*p.along[k] + l * (UNIT ? 1 : p.lane_step[k]))
#define STORE(value) store(T)(out, AT(0, j), (computed(T))(value))

/* Where line `here` begins in the output and the input. */
#define PLACE(here) \
    i64 at[2] = {p.offsets[0] + (here).column * p.steps[0], \
                 p.offsets[1] + (here).column * p.steps[1]}; \
    WALK(p.others, 2, INDEX, (here).outer, at)

/* What came before the work item's chunk, of `count` lines from `line` on. */
DEVICE void add_before(GLOBAL const A *sums, const scan_params *p, i64 chunk, i64 line, int count,
                       A *sum, A *lost) {
    sums += p->sums + line;
    for (i64 before = 0; before < chunk; before++)
        for (int l = 0; l < count; l++) {
            ADD_WIDE(A, sum[l], lost[l], sums[before * p->n_lines + l]);
            lost[l] += sums[(p->n_chunks + before) * p->n_lines + l];
        }
}

/* The sums of the work item's chunk. */
DEVICE void keep_sums(GLOBAL A *sums, const scan_params *p, i64 chunk, i64 line, int count,
                      const A *sum, const A *lost) {
    sums += p->sums + chunk * p->n_lines + line;
    for (int l = 0; l < count; l++) {
        sums[l] = sum[l];
        sums[p->n_chunks * p->n_lines + l] = lost[l];
    }
}

#if ROWS

/* L work items have a tile of a line, L x W elements, and then the next. */
KERNEL(scan_rows)
(GLOBAL stored(T) * out, GLOBAL A *sums, GLOBAL const stored(T) * in, const scan_params p) {
#if L > 1 && (!BY_WARPS || L > WARP)
    LOCAL A parts[PARTS], parts_lost[PARTS];
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
        i64 line = here.outer * p.width + here.column;
        PLACE(here);
        A sum[1] = {0}, lost[1] = {0}, x[W];
        if (STAGE == 2)
            add_before(sums, &p, chunk, line, is_there, sum, lost);
        for (i64 tile = begin; tile < end; tile += L * W) {
            i64 j = tile + lane * W;
            int count = !is_there || j >= end ? 0 : end - j < W ? (int)(end - j) : W;
            computed(T) y[W];
            LOAD_LANES(count, y, in, at[1] + j * p.along[1], UNIT ? 1 : p.lane_step[1]);
            LANES(count, x[l] = (A)y[l]);
#if L == 1
            LANES(count, ADD_WIDE(A, sum[0], lost[0], x[l]); x[l] = TOTAL(sum[0], lost[0]));
#else
            A own = 0, own_lost = 0, to_here[W], lost_here[W];
            LANES(count, ADD_WIDE(A, own, own_lost, x[l]); to_here[l] = own;
                  lost_here[l] = own_lost);
#if BY_WARPS
            for (int h = 1; h < (L < WARP ? L : WARP); h *= 2) {
                A other = SHUFFLE_UP(own, h), other_lost = SHUFFLE_UP(own_lost, h);
                if (lane % WARP >= h) {
                    ADD_WIDE(A, own, own_lost, other);
                    own_lost += other_lost;
                }
            }
            A before = SHUFFLE_UP(own, 1), before_lost = SHUFFLE_UP(own_lost, 1);
#if L > WARP
            if (id % WARP == WARP - 1) {
                parts[id / WARP] = own;
                parts_lost[id / WARP] = own_lost;
            }
            BARRIER();
#else
            A last = SHUFFLE(own, (id - lane) % WARP + L - 1),
              last_lost = SHUFFLE(own_lost, (id - lane) % WARP + L - 1);
#endif
            for (int w = (id - lane) / WARP; w <= (id - lane + L - 1) / WARP; w++) {
                if (w == id / WARP) {
                    own = sum[0];
                    own_lost = lost[0];
                }
#if L > WARP
                ADD_WIDE(A, sum[0], lost[0], parts[w]);
                lost[0] += parts_lost[w];
#else
                ADD_WIDE(A, sum[0], lost[0], last);
                lost[0] += last_lost;
#endif
            }
            if (lane % WARP > 0) {
                ADD_WIDE(A, own, own_lost, before);
                own_lost += before_lost;
            }
            if (L > WARP)
                BARRIER();
#else
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
            ADD_WIDE(A, sum[0], lost[0], parts[id - lane + L - 1]);
            lost[0] += parts_lost[id - lane + L - 1];
            BARRIER();
#endif
            LANES(count, A hi = own; A lo = own_lost; ADD_WIDE(A, hi, lo, to_here[l]);
                  lo += lost_here[l]; x[l] = TOTAL(hi, lo));
#endif
            LANES(count, y[l] = (computed(T))x[l]);
            if (STAGE != 1)
                STORE_LANES(count, y, out, at[0] + j * p.along[0], UNIT ? 1 : p.lane_step[0]);
        }
        if (STAGE == 1 && lane == 0)
            keep_sums(sums, &p, chunk, line, is_there, sum, lost);
    }
}

#else

/* A work item has W lines side by side, and takes an element of each at a time. */
KERNEL(scan_columns)
(GLOBAL stored(T) * out, GLOBAL A *sums, GLOBAL const stored(T) * in, const scan_params p) {
    int lane = LANE_OF((int)LOCAL_ID(0));
    i64 chunk = (i64)GROUP_ID(1), begin = chunk * p.chunk,
        end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
    for (i64 t = 0; t < p.per; t++) {
        i64 team = (i64)GROUP_ID(0) * p.per + t;
        if (team >= p.n_teams)
            break;
        place here = place_of(team, p.width, lane);
        i64 line = here.outer * p.width + here.column;
        int count = here.lanes;
        PLACE(here);
        A sum[W], lost[W], x[W];
        for (int l = 0; l < W; l++)
            sum[l] = lost[l] = 0;
        if (STAGE == 2)
            add_before(sums, &p, chunk, line, count, sum, lost);
        for (i64 j = begin; j < end; j++) {
            LANES(count, x[l] = (A)load(T)(in, AT(1, j)));
            LANES(count, ADD_WIDE(A, sum[l], lost[l], x[l]));
            if (STAGE != 1) {
                LANES(count, x[l] = TOTAL(sum[l], lost[l]));
                LANES(count, STORE(x[l]));
            }
        }
        if (STAGE == 1)
            keep_sums(sums, &p, chunk, line, count, sum, lost);
    }
}

#endif
