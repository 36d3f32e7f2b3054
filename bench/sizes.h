/* The rows of sizes.c and of peer/sizes.cpp: each operation, from one element to far past the caches. */
#ifndef TNI_BENCH_SIZES_H
#define TNI_BENCH_SIZES_H

/* X(operation, log2 of the elements, dtype). Their tensors are [2^e / c, c], c at most 1024; gather takes
 * as many rows, transpose copies what lies turned. */
#define BENCH_OPERATIONS(X, e, dtype) \
    X(add, e, dtype) \
    X(relu, e, dtype) \
    X(exp, e, dtype) \
    X(gelu, e, dtype) \
    X(where, e, dtype) \
    X(copy, e, dtype) \
    X(convert, e, dtype) \
    X(transpose, e, dtype) \
    X(gather, e, dtype) \
    X(sum, e, dtype) \
    X(sum_rows, e, dtype) \
    X(sum_columns, e, dtype) \
    X(argmax, e, dtype) \
    X(cumsum, e, dtype) \
    X(softmax, e, dtype) \
    X(layer_norm, e, dtype)

#define BENCH_BOTH(X, e) \
    BENCH_OPERATIONS(X, e, F32) \
    BENCH_OPERATIONS(X, e, BF16)

#define BENCH_SIZES(X) \
    BENCH_BOTH(X, 0) \
    BENCH_BOTH(X, 6) \
    BENCH_BOTH(X, 10) \
    BENCH_BOTH(X, 14) \
    BENCH_BOTH(X, 18) \
    BENCH_BOTH(X, 22) \
    BENCH_BOTH(X, 25)

/* X(operation, side, dtype): of square matrices. */
#define BENCH_PRODUCT(X, side) \
    X(matmul, side, F32) \
    X(matmul, side, BF16)

#define BENCH_PRODUCTS(X) \
    BENCH_PRODUCT(X, 8) \
    BENCH_PRODUCT(X, 32) \
    BENCH_PRODUCT(X, 128) \
    BENCH_PRODUCT(X, 512) \
    BENCH_PRODUCT(X, 1024)

#define BENCH_COLUMNS(e) (1 << ((e) < 10 ? (e) : 10))
#define BENCH_ROWS(e) ((1 << (e)) / BENCH_COLUMNS(e))

#endif
