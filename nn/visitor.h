/* What goes through a model: a name that grows and shrinks, and what is done with each tensor. */
#ifndef TNI_NN_VISITOR_H
#define TNI_NN_VISITOR_H

#include <stddef.h>
#include <string.h>
#include <tenon/nn.h>

enum { TNN_PATH_BYTES = 512, TNN_DEPTH = 32 };

struct tn_nn_visitor {
    tn_status (*fn)(const tn_nn_entry *entry, void *user); /* NULL: nothing */
    void *user;
    const bool *training; /* the mode to set; NULL: none */
    tn_status status;     /* the first failure; nothing is done after it */
    size_t length;        /* of the path */
    size_t marks[TNN_DEPTH];
    int depth;
    char path[TNN_PATH_BYTES]; /* "blocks.0.norm1." */
};

/* Drops the tensors of a module by its own visit, and leaves zeros; NULL does nothing. */
#define TNN_FINISH(visit, m) \
    do { \
        tn_nn_visitor tnn_v = tnn_dropping(); \
        if (m) { \
            visit(m, "", &tnn_v); \
            memset(m, 0, sizeof *(m)); \
        } \
    } while (0)
tn_nn_visitor tnn_dropping(void);

/* Enters a module and gives it name and mode; false, to be followed by no leave, where something is
 * NULL, which is an error of the visit. */
bool tnn_enter_module(tn_nn_visitor *v, const char *name, tn_nn_module *module);

#endif
