/* copy.c: from any dtype to any other, each element on its own. Of equal dtypes the bits move: S
 * and D are then i8, i16, i32 or i64.
 *
 *   S, D, STRIDED, INDEX    as in pointwise.c, the input's and the output's dtype */

typedef struct parameters {
    i64 numel;
    i64 scalar, numbers[8]; /* as pointwise.c has them; not used */
    i64 offsets[2];         /* output, input */
#if STRIDED
    LOOP(2) loop;
#endif
} parameters;

/* What does not fit an integer gives some integer. */
#if IS_BOOL(D)
#define STORE(x) store(D)(out, to, (x) != 0)
#elif IS_FLOAT(S) && IS_INT(D)
#define STORE(x) store(D)(out, to, (computed(D))(i64)(x))
#elif DTYPE(S) == DTYPE_f64 && IS_FLOAT(D)
#define STORE(x) store_of_f64(D)(out, to, x)
#else
#define STORE(x) store(D)(out, to, (computed(D))(x))
#endif

KERNEL(copy)(GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const parameters p) {
    const INDEX i = (INDEX)GLOBAL_ID(0);
    if (i >= p.numel)
        return;
    i64 at[2] = {p.offsets[0], p.offsets[1]};
#if STRIDED
    WALK(p.loop, 2, INDEX, i, at);
#else
    at[0] += i;
    at[1] += i;
#endif
    const i64 to = at[0];
    const computed(S) x = load(S)(in, at[1]);
    STORE(x);
}
