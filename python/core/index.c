/* x[key] and x[key] = value: NumPy's rules. Integers, slices, None and ... are views; tensors, lists and
 * masks gather. A slice that runs backwards is a copy, since tensors have no negative strides. */
#include "python/core/core.h"

#include <stdbool.h>

/* How far a key has been followed. */
typedef struct path {
    PyObject *at; /* the view so far; ours */
    int64_t dim;  /* of `at` that the next item is about */
    PyObject *gathers
        [TN_MAX_RANK]; /* by dimension of `at`: a tensor of indices or a mask, or NULL; ours */
    bool is_turned[TN_MAX_RANK]; /* by dimension: to be read backwards */
    bool gathers_any, turns_any;
} path;

static void path_end(path *p) {
    Py_XDECREF(p->at);
    for (int i = 0; i < TN_MAX_RANK; i++)
        Py_XDECREF(p->gathers[i]);
}

static int move_to(path *p, PyObject *view) {
    if (!view)
        return -1;
    Py_DECREF(p->at);
    p->at = view;
    return 0;
}

static int select_one(path *p, int64_t i) {
    int64_t size = tn_size(tnp_handle(p->at), p->dim);
    if (i < -size || i >= size)
        return PyErr_Format(PyExc_IndexError,
                            "index %lld is outside of dimension %lld, whose size is %lld",
                            (long long)i, (long long)p->dim, (long long)size),
               -1;
    PyObject *dim = PyLong_FromLongLong(p->dim), *index = PyLong_FromLongLong(i);
    PyObject *view = dim && index ? TNP_CALL(select, p->at, dim, index) : NULL;
    Py_XDECREF(dim);
    Py_XDECREF(index);
    return move_to(p, view);
}

static int cut(path *p, PyObject *range) {
    Py_ssize_t start, stop, step, size = (Py_ssize_t)tn_size(tnp_handle(p->at), p->dim);
    if (PySlice_Unpack(range, &start, &stop, &step) < 0)
        return -1;
    Py_ssize_t n = PySlice_AdjustIndices(size, &start, &stop, step);
    int64_t dim = p->dim++;
    if (step < 0) { /* the same elements the other way round */
        p->is_turned[dim] = p->turns_any = true;
        start = n > 0 ? start + (n - 1) * step : 0;
        step = -step;
    }
    if (start == 0 && step == 1 && n == size)
        return 0;
    stop = n > 0 ? start + (n - 1) * step + 1 : start;
    PyObject *given[] = {p->at, PyLong_FromLongLong(dim), PyLong_FromSsize_t(start),
                         PyLong_FromSsize_t(stop), PyLong_FromSsize_t(step)};
    PyObject *view = given[1] && given[2] && given[3] && given[4]
                         ? tnp_call(tnp_packets[TNP_slice], given, 5, NULL)
                         : NULL;
    for (int i = 1; i < 5; i++)
        Py_XDECREF(given[i]);
    return move_to(p, view);
}

/* Dimensions added by None move those behind them. */
static int widen(path *p) {
    int64_t rank = tn_rank(tnp_handle(p->at));
    if (rank >= TN_MAX_RANK)
        return PyErr_Format(PyExc_IndexError, "a tensor has at most %d dimensions", TN_MAX_RANK),
               -1;
    PyObject *dim = PyLong_FromLongLong(p->dim);
    PyObject *view = dim ? TNP_CALL(unsqueeze, p->at, dim) : NULL;
    Py_XDECREF(dim);
    p->dim++;
    return move_to(p, view);
}

/* ---- items of a key ---------------------------------------------------------------------- */

/* A new reference to what stands for an item: None, Ellipsis, a slice, an int, a tensor of i32 or i64 with dimensions,
 * or a mask. What it is must be known before anything is counted. */
static PyObject *resolve(PyObject *item, PyObject *self) {
    if (item == Py_None || item == Py_Ellipsis || PySlice_Check(item) ||
        (PyLong_Check(item) && !PyBool_Check(item)))
        return Py_NewRef(item);
    bool is_array = PyBool_Check(item) || PyList_Check(item) || PyTuple_Check(item) ||
                    PyObject_CheckBuffer(item) || Py_IS_TYPE(item, &PyRange_Type);
    if (!tnp_is_tensor(item) && !is_array) {
        if (PyIndex_Check(item))
            return PyNumber_Index(item);
        return PyErr_Format(
            PyExc_TypeError,
            "an index is an integer, a slice, None, ..., a tensor or list of integers, or "
            "a mask, not %R",
            (PyObject *)Py_TYPE(item));
    }
    PyObject *t = tnp_is_tensor(item)
                      ? Py_NewRef(item)
                      : tnp_tensor_from(item, TN_DTYPE_NONE, tn_device_of(tnp_handle(self)));
    if (!t)
        return NULL;
    tn_dtype dtype = tn_dtype_of(tnp_handle(t));
    PyObject *made = NULL;
    if (dtype == TN_BOOL || ((dtype == TN_I64 || dtype == TN_I32) && tn_rank(tnp_handle(t)) > 0))
        return t;
    bool is_nothing = !tnp_is_tensor(item) && tn_numel(tnp_handle(t)) == 0; /* [] */
    bool is_index = dtype > TN_BF16 && dtype < TN_U64; /* of u64 not all would be numbers of i64 */
    if (!is_index && !is_nothing) {
        PyErr_Format(PyExc_IndexError,
                     "indices are of integers up to int64 or bool, not of %s: convert them first",
                     tn_dtype_name(dtype));
    } else if (tn_rank(tnp_handle(t)) == 0) {
        made = tnp_item(t, NULL);
    } else {
        PyObject *wide = tnp_dtype_object(TN_I64);
        made = wide ? TNP_CALL(to, t, wide) : NULL;
        Py_XDECREF(wide);
    }
    Py_DECREF(t);
    return made;
}

/* Dimensions that it is about. */
static int64_t width(PyObject *item) {
    if (item == Py_None || item == Py_Ellipsis)
        return 0;
    bool is_mask = tnp_is_tensor(item) && tn_dtype_of(tnp_handle(item)) == TN_BOOL;
    return is_mask ? tn_rank(tnp_handle(item)) : 1;
}

/* A mask for the dimensions from p->dim on: itself, or, where a size of it is 0, one that takes nothing. A new reference. */
static PyObject *fitting_mask(path *p, PyObject *mask) {
    tn_tensor *at = tnp_handle(p->at), *m = tnp_handle(mask);
    int64_t n = tn_rank(m);
    bool fits = true;
    for (int64_t d = 0; d < n; d++) {
        int64_t has = tn_size(m, d), needed = tn_size(at, p->dim + d);
        if (has != needed && has != 0)
            return PyErr_Format(
                PyExc_IndexError,
                "the mask's dimension %lld has size %lld, that of the tensor which it is for %lld",
                (long long)d, (long long)has, (long long)needed);
        fits = fits && has == needed;
    }
    if (fits)
        return Py_NewRef(mask);
    PyObject *sizes = PyTuple_New((Py_ssize_t)n), *names = Py_BuildValue("(ss)", "dtype", "device");
    for (int64_t d = 0; sizes && d < n; d++)
        PyTuple_SetItem(sizes, (Py_ssize_t)d, PyLong_FromLongLong(tn_size(at, p->dim + d)));
    PyObject *given[] = {sizes, tnp_dtype_object(TN_BOOL), tnp_device_object(tn_device_of(at))},
             *made = NULL;
    if (sizes && names && given[1] && given[2])
        made = tnp_call(tnp_packets[TNP_zeros], given, 1, names);
    Py_XDECREF(names);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(given[i]);
    return made;
}

static int gather(path *p, PyObject *indices) {
    int64_t n = width(indices);
    bool is_mask = tn_dtype_of(tnp_handle(indices)) == TN_BOOL;
    PyObject *taken = is_mask ? fitting_mask(p, indices) : Py_NewRef(indices);
    if (!taken)
        return -1;
    if (n == 0) { /* a dimension that is there or is not */
        if (widen(p) < 0)
            return Py_DECREF(taken), -1;
        p->dim--;
        PyObject *zero = PyLong_FromLong(0);
        PyObject *one = zero ? TNP_CALL(unsqueeze, taken, zero) : NULL;
        Py_XDECREF(zero);
        Py_DECREF(taken);
        if (!one)
            return -1;
        taken = one;
        n = 1;
    }
    p->gathers[p->dim] = taken;
    p->gathers_any = true;
    p->dim += n;
    return 0;
}

static int follow_one(path *p, PyObject *item) {
    if (item == Py_None)
        return widen(p);
    if (PySlice_Check(item))
        return cut(p, item);
    if (tnp_is_tensor(item))
        return gather(p, item);
    int64_t i = PyLong_AsLongLong(item);
    if (i == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return PyErr_Format(PyExc_IndexError, "index %R is outside of any dimension", item), -1;
    }
    return select_one(p, i);
}

/* The key's items, each resolved. */
static PyObject *resolve_all(PyObject *key, PyObject *self) {
    PyObject *all = PyTuple_Check(key) ? PySequence_Tuple(key) : PyTuple_Pack(1, key);
    Py_ssize_t n = all ? PyTuple_Size(all) : 0;
    PyObject *made = all ? PyTuple_New(n) : NULL;
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *one = resolve(PyTuple_GetItem(all, i), self);
        if (!one)
            Py_CLEAR(made);
        else
            PyTuple_SetItem(made, i, one);
    }
    Py_XDECREF(all);
    return made;
}

static int follow(path *p, PyObject *self, PyObject *key) {
    p->at = Py_NewRef(self);
    PyObject *items = resolve_all(key, self);
    if (!items)
        return -1;
    Py_ssize_t n = PyTuple_Size(items);
    int64_t needed = 0, rank = tn_rank(tnp_handle(self));
    int n_open = 0, done = -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        needed += width(PyTuple_GetItem(items, i));
        n_open += PyTuple_GetItem(items, i) == Py_Ellipsis;
    }
    if (n_open > 1)
        PyErr_SetString(PyExc_IndexError, "a key has one ... at most");
    else if (needed > rank)
        PyErr_Format(PyExc_IndexError, "%lld indices for a tensor of %lld dimensions",
                     (long long)needed, (long long)rank);
    else
        done = 0;
    for (Py_ssize_t i = 0; done == 0 && i < n; i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        if (item == Py_Ellipsis)
            p->dim += rank - needed;
        else
            done = follow_one(p, item);
    }
    Py_DECREF(items);
    return done;
}

/* `what`, with the dimensions that run backwards turned. A new reference. */
static PyObject *turn(const path *p, PyObject *what) {
    if (!p->turns_any)
        return Py_NewRef(what);
    PyObject *dims = PyList_New(0), *turned = NULL;
    for (int64_t d = 0; dims && d < tn_rank(tnp_handle(p->at)); d++)
        if (p->is_turned[d]) {
            PyObject *dim = PyLong_FromLongLong(d);
            if (!dim || PyList_Append(dims, dim) < 0)
                Py_CLEAR(dims);
            Py_XDECREF(dim);
        }
    if (dims)
        turned = TNP_CALL(flip, what, dims);
    Py_XDECREF(dims);
    return turned;
}

/* [indices or None ...] up to the last that gathers. */
static PyObject *gathers(const path *p) {
    PyObject *list = PyList_New(0);
    for (int64_t d = 0; list && d < TN_MAX_RANK; d++) {
        bool more = false;
        for (int64_t k = d; k < TN_MAX_RANK; k++)
            more = more || p->gathers[k];
        if (!more)
            break;
        if (PyList_Append(list, p->gathers[d] ? p->gathers[d] : Py_None) < 0)
            Py_CLEAR(list);
        if (list && p->gathers[d] && tn_dtype_of(tnp_handle(p->gathers[d])) == TN_BOOL)
            d += tn_rank(tnp_handle(p->gathers[d])) - 1; /* a mask stands for several dimensions */
    }
    return list;
}

PyObject *tnp_subscript(PyObject *self, PyObject *key) {
    path p = {.at = NULL};
    PyObject *made = NULL;
    if (follow(&p, self, key) == 0) {
        PyObject *turned = turn(&p, p.at), *list = turned && p.gathers_any ? gathers(&p) : NULL;
        if (turned && !p.gathers_any)
            made = Py_NewRef(turned);
        else if (list)
            made = TNP_CALL(index, turned, list);
        Py_XDECREF(list);
        Py_XDECREF(turned);
    }
    /* a new object even where the key was `...` or `:` alone */
    if (made == self) {
        Py_DECREF(made);
        made = tnp_wrap_borrowed(tnp_handle(self));
    }
    path_end(&p);
    return made;
}

/* The value as a tensor of the same dtype and device. */
static PyObject *value_like(PyObject *value, PyObject *self) {
    tn_tensor *t = tnp_handle(self);
    if (tnp_is_tensor(value) && tnp_is_complex(tn_dtype_of(tnp_handle(value))) &&
        !tnp_is_complex(tn_dtype_of(t)))
        return PyErr_Format(
            PyExc_TypeError,
            "complex numbers are no elements of a tensor of %s: take their real parts",
            tn_dtype_name(tn_dtype_of(t)));
    if (tnp_is_tensor(value))
        return Py_NewRef(value);
    return tnp_tensor_from(value, tn_dtype_of(t), tn_device_of(t));
}

/* Leading dimensions of size 1 that a target has not are dropped, as NumPy does. */
static PyObject *fitting(PyObject *value, int64_t rank) {
    while (value && tn_rank(tnp_handle(value)) > rank && tn_size(tnp_handle(value), 0) == 1) {
        PyObject *zero = PyLong_FromLong(0),
                 *less = zero ? TNP_CALL(select, value, zero, zero) : NULL;
        Py_XDECREF(zero);
        Py_DECREF(value);
        value = less;
    }
    return value;
}

int tnp_assign_subscript(PyObject *self, PyObject *key, PyObject *value) {
    if (!value)
        return PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted"), -1;
    path p = {.at = NULL};
    PyObject *done = NULL;
    if (follow(&p, self, key) == 0) {
        tn_cell number;
        int found = tnp_is_tensor(value)  ? 0
                    : PyLong_Check(value) ? 1 /* of u64 beyond what a cell says */
                                          : tnp_scalar_from(value, &number);
        bool is_number = found == 1;
        PyObject *given =
            found < 0 || (is_number && !p.gathers_any) ? NULL : value_like(value, self);
        if (is_number && !p.gathers_any) {
            done = TNP_CALL(fill_, p.at, value);
        } else if (given && !p.gathers_any) {
            given = fitting(given, tn_rank(tnp_handle(p.at)));
            PyObject *turned = given;
            if (given &&
                p.turns_any) { /* broadcast first, so that dimensions are those of the target */
                PyObject *room = TNP_CALL(clone, p.at),
                         *filled = room ? TNP_CALL(copy_, room, given) : NULL;
                turned = filled ? turn(&p, filled) : NULL;
                Py_XDECREF(filled);
                Py_XDECREF(room);
            }
            done = turned ? TNP_CALL(copy_, p.at, turned) : NULL;
            if (turned != given)
                Py_XDECREF(turned);
        } else if (given) {
            PyObject *list = gathers(&p), *want = tnp_dtype_object(tn_dtype_of(tnp_handle(self)));
            PyObject *same = list && want ? TNP_CALL(to, given, want) : NULL;
            if (same && p.turns_any) { /* a copy is written, and put back */
                PyObject *turned = turn(&p, p.at),
                         *put = turned ? TNP_CALL(index_put_, turned, list, same) : NULL;
                PyObject *back = put ? turn(&p, put) : NULL;
                done = back ? TNP_CALL(copy_, p.at, back) : NULL;
                Py_XDECREF(turned);
                Py_XDECREF(put);
                Py_XDECREF(back);
            } else if (same) {
                done = TNP_CALL(index_put_, p.at, list, same);
            }
            Py_XDECREF(want);
            Py_XDECREF(same);
            Py_XDECREF(list);
        }
        Py_XDECREF(given);
    }
    path_end(&p);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
