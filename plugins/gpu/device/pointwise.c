/* pointwise.c: operators that compute each element from the elements in its place.
 *
 *   -DT=  the dtype of the tensors     -DOP=  the operator     -DN_IN= -DN_OUT=  tensors
 *   -DR=  the dtype of the outputs, where it is another        -DBOOL_IN=1  the first input is bool
 *   -DSCALAR=k  input k is a number    -DINDEX=i32 or i64      -DSTRIDED=1  by strides, not in a row
 *
 * One work item makes one element. */

#define N_STRIDED (N_IN + N_OUT)
#ifndef R
#define R T
#endif
#ifndef BOOL_IN
#define BOOL_IN 0
#endif
#ifndef SCALAR
#define SCALAR -1
#endif
#if BOOL_IN
#define FIRST bool
#else
#define FIRST T
#endif

typedef computed(T) C;
typedef wrap(T) U;

/* As the host writes it (pointwise.h). */
typedef struct pointwise_parameters {
    i64 numel;
    i64 offsets[N_IN + N_OUT]; /* outputs first, in elements */
    i64 numbers[8];            /* attributes of the operator, in its order */
    i64 scalar;                /* the input that is a number */
    walk at;                   /* outputs first */
} pointwise_parameters;

/* ---- functions that no device has as they are needed ------------------------------------------ */

#if IS_FLOAT(T)
DEVICE C pick_max(C a, C b) {
    return a != a ? a : (b != b || b > a) ? b : a;
}
DEVICE C pick_min(C a, C b) {
    return a != a ? a : (b != b || b < a) ? b : a;
}
#else
DEVICE C pick_max(C a, C b) {
    return b > a ? b : a;
}
DEVICE C pick_min(C a, C b) {
    return b < a ? b : a;
}
#endif
