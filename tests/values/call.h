/* A line of the data: a call and what it is to give.
 *
 *   NAME(ARGUMENTS) -> RESULTS [grad RESULTS] [jvp RESULTS] [differs=RULE]
 *
 * An argument is a tensor (inputs.py: any:f32[2,3]strided#17), a list of such or None {a; b}, a list of integers
 * (2,3), a number, True, False, None, 'text', or a dtype @f32. A result is DTYPE[SIZES] with elements as they
 * are stored; followed by ~, numbers with scales and errors (expect.py); by ?, nothing but
 * shape and dtype. */
#ifndef TNI_TESTS_VALUES_CALL_H
#define TNI_TESTS_VALUES_CALL_H

#include "tests/values/inputs.h"

enum { MAX_INPUTS = 24, MAX_RESULTS = 32, MAX_LIST = 16, NAME_LENGTH = 64 };

/* What there is to compare a result with. */
typedef enum expectation {
    EXPECT_BITS,    /* elements of the dtype */
    EXPECT_ELEMENT, /* numbers; bounds go by each */
    EXPECT_LARGEST, /* numbers; bounds go by the tensor's largest too */
    EXPECT_SHAPE,   /* no elements */
    EXPECT_NONE     /* an input without gradient */
} expectation;

typedef struct expected {
    expectation how;
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK], numel;
    const uint8_t *data; /* in the file of values */
} expected;

typedef struct call {
    char name[NAME_LENGTH];
    const char *text; /* the line */
    tn_cell args[TC_MAX_ARGS];
    uint32_t n_args;
    input inputs[MAX_INPUTS];
    tn_cell *cells[MAX_INPUTS]; /* where each input stands; NULL: in a list */
    tn_tensor **places[MAX_INPUTS];
    uint32_t n_inputs;
    tn_tensor *lists[TC_MAX_ARGS][MAX_LIST];
    int64_t ints[TC_MAX_ARGS * 8];
    uint32_t n_ints;
    char words[TC_MAX_ARGS][48];
    expected results[MAX_RESULTS], gradients[MAX_RESULTS], tangents[MAX_RESULTS];
    uint32_t n_results, n_gradients, n_tangents;
    bool differs;
} call;

/* Reads a line; false where it is none, with `why`. */
bool call_read(const char *line, call *c, char why[128]);

/* Bytes that an expected result takes in the file of values. */
uint64_t expected_bytes(const expected *e);

#endif
