/* A sample of an operator's arguments, as the generated cases fill it. */
#ifndef TNI_TESTS_OPS_GRADCHECK_CASES_H
#define TNI_TESTS_OPS_GRADCHECK_CASES_H

#include <tenon/tenon.h>

enum { MAX_ARGS = 16, MAX_TENSORS = 16, MAX_LIST = 8 };

typedef enum fill {
    FILL_ANY,      /* [-2, 2] */
    FILL_POSITIVE, /* [0.5, 2] */
    FILL_AWAY,     /* +-[0.3, 2] */
    FILL_APART,    /* distinct, 0.1 apart, none near a whole number */
    FILL_UNIT,     /* [0.1, 0.9] */
    FILL_ABOVE,    /* [1.5, 3] */
    FILL_MASK,     /* bool */
    FILL_INDEX     /* i64 below a limit */
} fill;

typedef struct sample {
    tn_device device;
    bool strided;   /* make every tensor non-contiguous */
    uint64_t state; /* of the numbers */
    tn_cell args[MAX_ARGS];
    tn_tensor *lists[MAX_ARGS][MAX_LIST];
    int64_t ints[MAX_ARGS * 8];
    unsigned n_ints;
    tn_tensor *inputs[MAX_TENSORS]; /* the f64 tensors among the arguments */
    tn_cell *input_cells[MAX_TENSORS];
    unsigned n_inputs;
} sample;

void make_tensor(sample *s, tn_cell *cell, fill how, int64_t limit, int rank, const int64_t *sizes);
void make_list(sample *s, tn_cell *cell, unsigned n);
/* A cell to be made into element i: its tensor lands in the list. */
tn_cell *list_element(sample *s, tn_cell *list, unsigned i);
void make_ints(sample *s, tn_cell *cell, unsigned n, const int64_t *values);
void make_string(tn_cell *cell, const char *text);

typedef enum order { CONSTANT, FIRST_ORDER, SECOND_ORDER } order;

typedef struct gradcheck_case {
    const char *op;
    const char *text;
    void (*make)(sample *s);
    order kind;
} gradcheck_case;

extern const gradcheck_case gradcheck_cases[];
extern const unsigned n_gradcheck_cases;

#endif
