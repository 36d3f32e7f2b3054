/* A tensor as text, by the rules of PyTorch's torch/_tensor_str.py, so that what users have learned
 * to read stays readable: one format for all numbers, chosen from the finite ones that are not
 * zero; columns of one width; lines of 80; from 1001 elements on only three at each edge. */
#include "core/autograd/autograd.h"
#include "core/tensor/tensor.h"
#include "base/alloc.h"
#include "base/error.h"
#include "core/graph/graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PRECISION = 4, THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 80, INDENT = 7 /* "tensor(" */ };

/* Up to here the whole tensor is copied to the host and cut there; a larger one is read at its
 * edges only. */
enum { WHOLE = 65536 };

/* ---- text -------------------------------------------------------------------------------- */

typedef struct text {
    char *s;
    size_t n, capacity;
    bool failed; /* no memory; everything later is ignored */
} text;

static void append_n(text *out, const char *s, size_t n) {
    if (out->failed)
        return;
    if (out->n + n + 1 > out->capacity) {
        size_t capacity = (out->n + n + 1) * 2;
        char *grown = tni_realloc(out->s, capacity);
        if (!grown) {
            out->failed = true;
            return;
        }
        out->s = grown;
        out->capacity = capacity;
    }
    memcpy(out->s + out->n, s, n);
    out->s[out->n += n] = 0;
}

static void append(text *out, const char *s) {
    append_n(out, s, strlen(s));
}

static void append_repeated(text *out, char c, int64_t n) {
    while (n-- > 0)
        append_n(out, &c, 1);
}

/* ---- numbers ----------------------------------------------------------------------------- */

enum { NUMBER_TEXT = 352 }; /* -1.8e308 with %.4f */

typedef struct format {
    tn_dtype dtype;  /* of complex that of its halves, each of which has a format */
    bool integral;   /* all are whole: "1." */
    bool scientific; /* "1.0000e+00" */
    int width;
} format;

/* printf of a double that knows neither the locale's decimal point nor a NaN's sign. */
static int print_double(char out[NUMBER_TEXT], const char *how, double value) {
    if (isnan(value))
        return snprintf(out, NUMBER_TEXT, "nan");
    int n = snprintf(out, NUMBER_TEXT, how, value), kept = 0;
    bool point = false;
    for (int i = 0; i < n; i++) {
        bool plain = strchr("0123456789+-einf", out[i]) != NULL;
        if (plain)
            out[kept++] = out[i];
        else if (!point)
            out[kept++] = '.';
        point |= !plain;
    }
    out[kept] = 0;
    return kept;
}

static int print_value(const format *f, char out[NUMBER_TEXT], tn_scalar value) {
    if (value.tag == TN_CELL_BOOL)
        return snprintf(out, NUMBER_TEXT, value.v.boolean ? "True" : "False");
    if (f->dtype == TN_U64)
        return snprintf(out, NUMBER_TEXT, "%llu", (unsigned long long)value.v.i64);
    if (value.tag == TN_CELL_I64)
        return snprintf(out, NUMBER_TEXT, "%lld", (long long)value.v.i64);
    if (f->scientific)
        return print_double(out, "%.4e", value.v.f64);
    if (!f->integral)
        return print_double(out, "%.4f", value.v.f64);
    int n = print_double(out, "%.0f", value.v.f64);
    if (isfinite(value.v.f64)) {
        out[n++] = '.';
        out[n] = 0;
    }
    return n;
}

/* Of the elements first, first + step ... below n. */
static format choose_format(const void *data, tn_dtype dtype, int64_t n, int64_t first,
                            int64_t step) {
    format f = {.dtype = dtype, .integral = true, .width = 1};
    bool floating = tni_is_float(dtype);
    double smallest = INFINITY, largest = 0;
    for (int64_t i = first; i < n && floating; i += step) {
        double value = tni_element(data, dtype, i).v.f64;
        if (!isfinite(value) || value == 0)
            continue;
        smallest = fmin(smallest, fabs(value));
        largest = fmax(largest, fabs(value));
        f.integral &= value == ceil(value);
    }
    if (floating && largest == 0)
        return f;
    f.scientific = floating &&
                   (largest / smallest > 1000 || largest > 1e8 || (!f.integral && smallest < 1e-4));
    for (int64_t i = first; i < n; i += step) {
        char number[NUMBER_TEXT];
        tn_scalar value = tni_element(data, dtype, i);
        if (floating && (!isfinite(value.v.f64) || value.v.f64 == 0))
            continue; /* may stick out, as PyTorch's do */
        int width = print_value(&f, number, value);
        if (width > f.width)
            f.width = width;
    }
    return f;
}

/* ---- the elements that are shown --------------------------------------------------------- */

typedef struct shown {
    tn_tensor *tensor;
    char *data; /* row-major, of the tensor's dtype */
    int64_t n;
    int64_t sizes[TN_MAX_RANK];
    bool cut[TN_MAX_RANK]; /* only 2 * EDGE of this dimension are there */
    format format;         /* of complex the real part's */
    format imaginary;
} shown;

/* Position in dimension d of the tensor that the shown position i stands for. */
static int64_t original(const shown *s, int32_t d, int64_t i) {
    return s->cut[d] && i >= EDGE ? s->tensor->sizes[d] - 2 * EDGE + i : i;
}

/* Copies what is shown below dimension d out of a row-major copy of the whole tensor. */
static char *pick(const shown *s, int32_t d, const char *whole, int64_t index, char *to) {
    int64_t item = tni_dtype_size(s->tensor->view.dtype);
    if (d == s->tensor->view.rank) {
        memcpy(to, whole + index * item, (size_t)item);
        return to + item;
    }
    for (int64_t i = 0; i < s->sizes[d]; i++)
        to = pick(s, d + 1, whole, index * s->tensor->sizes[d] + original(s, d, i), to);
    return to;
}

/* Reads `n` elements, `stride` apart, that start `offset` elements into the storage. */
static tn_status read_run(const shown *s, int64_t n, int64_t stride, int64_t offset, char *to) {
    int64_t item = tni_dtype_size(s->tensor->view.dtype);
    int64_t one = 1, run = stride == 1 ? n : 1;
    for (int64_t i = 0; i < n; i += run) {
        tn_tensor *part = tni_tensor_view(s->tensor, 1, &run, &one, offset + i * stride);
        if (!part)
            return tn_error_status();
        tn_status status =
            tni_tensor_read(part, to + i * item, (uint64_t)(run * item), "tn_to_string");
        tni_drop(part);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Reads what is shown below dimension d from the device. */
static tn_status read_edges(const shown *s, int32_t d, int64_t offset, char **to) {
    int64_t item = tni_dtype_size(s->tensor->view.dtype), stride = s->tensor->strides[d];
    if (d < s->tensor->view.rank - 1) {
        for (int64_t i = 0; i < s->sizes[d]; i++) {
            TNI_TRY(read_edges(s, d + 1, offset + original(s, d, i) * stride, to));
        }
        return TN_OK;
    }
    int64_t run = s->cut[d] ? EDGE : s->sizes[d];
    for (int64_t i = 0; i < s->sizes[d]; i += run) {
        TNI_TRY(read_run(s, run, stride, offset + original(s, d, i) * stride, *to));
        *to += run * item;
    }
    return TN_OK;
}

static tn_status fetch(shown *s) {
    tn_tensor *t = s->tensor;
    int64_t item = tni_dtype_size(t->view.dtype);
    s->n = 1;
    for (int32_t d = 0; d < t->view.rank; d++) {
        s->cut[d] = t->view.numel > THRESHOLD && t->sizes[d] > 2 * EDGE;
        s->sizes[d] = s->cut[d] ? 2 * EDGE : t->sizes[d];
        s->n *= s->sizes[d];
    }
    s->data = tni_alloc((size_t)(s->n * item));
    if (!s->data)
        return tni_fail_memory("the text of a tensor");
    if (s->n == t->view.numel)
        return tn_to_host(t, s->data, (uint64_t)(s->n * item));
    if (t->view.numel > WHOLE) {
        char *to = s->data;
        return read_edges(s, 0, tni_offset_elements(t), &to);
    }
    uint64_t bytes = (uint64_t)(t->view.numel * item);
    char *whole = tni_alloc(bytes);
    if (!whole)
        return tni_fail_memory("the text of a tensor");
    tn_status status = tn_to_host(t, whole, bytes);
    if (status == TN_OK)
        pick(s, 0, whole, 0, s->data);
    tni_free(whole);
    return status;
}

/* ---- layout ------------------------------------------------------------------------------ */

static void choose_formats(shown *s) {
    tn_dtype dtype = s->tensor->view.dtype;
    if (!tni_is_complex(dtype)) {
        s->format = choose_format(s->data, dtype, s->n, 0, 1);
        return;
    }
    s->format = choose_format(s->data, tni_real_dtype(dtype), 2 * s->n, 0, 2);
    s->imaginary = choose_format(s->data, tni_real_dtype(dtype), 2 * s->n, 1, 2);
}

static void append_value(text *out, const shown *s, int64_t index) {
    char number[NUMBER_TEXT];
    bool is_complex = tni_is_complex(s->tensor->view.dtype);
    int64_t real = is_complex ? 2 * index : index;
    int n = print_value(&s->format, number, tni_element(s->data, s->format.dtype, real));
    append_repeated(out, ' ', s->format.width - n);
    append_n(out, number, (size_t)n);
    if (!is_complex)
        return;
    n = print_value(&s->imaginary, number, tni_element(s->data, s->imaginary.dtype, real + 1));
    append(out, number[0] == '-' ? "" : "+");
    append_n(out, number, (size_t)n);
    append(out, "j");
}

/* Columns from one element to the next, in the widest case. */
static int width_of(const shown *s) {
    bool is_complex = tni_is_complex(s->tensor->view.dtype);
    return s->format.width + 2 + (is_complex ? s->imaginary.width + 1 : 0);
}

static void append_vector(text *out, const shown *s, int32_t d, int64_t index) {
    int64_t per_line = (LINE_WIDTH - (INDENT + d)) / width_of(s), placed = 0;
    if (per_line < 1)
        per_line = 1;
    int64_t n = s->sizes[d] + s->cut[d]; /* with the dots */
    append(out, "[");
    for (int64_t i = 0; i < n; i++, placed++) {
        if (placed == per_line) {
            append(out, ",\n");
            append_repeated(out, ' ', INDENT + d + 1);
            placed = 0;
        } else if (i) {
            append(out, ", ");
        }
        if (s->cut[d] && i == EDGE)
            append(out, " ...");
        else
            append_value(out, s, index + i - (s->cut[d] && i > EDGE));
    }
    append(out, "]");
}

/* The block of dimensions d and later; `index` counts blocks of this size in the shown data. */
static void append_block(text *out, const shown *s, int32_t d, int64_t index) {
    int32_t rank = s->tensor->view.rank;
    if (rank == 0) {
        append_value(out, s, 0);
        return;
    }
    if (d == rank - 1) {
        append_vector(out, s, d, index * s->sizes[d]);
        return;
    }
    append(out, "[");
    for (int64_t i = 0; i < s->sizes[d]; i++) {
        int n_dots = s->cut[d] && i == EDGE ? 1 : 0;
        for (int dots = 0; dots <= n_dots; dots++) {
            if (i || dots) {
                append(out, ",");
                append_repeated(out, '\n', rank - d - 1);
                append_repeated(out, ' ', INDENT + d + 1);
            }
            if (dots < n_dots)
                append(out, "...");
            else
                append_block(out, s, d + 1, index * s->sizes[d] + i);
        }
    }
    append(out, "]");
}

/* ---- what follows the numbers ------------------------------------------------------------ */

typedef struct suffixes {
    text *out;
    int64_t line; /* length of the last line, as PyTorch counts it */
} suffixes;

static __attribute__((format(printf, 2, 3))) void add_suffix(suffixes *s, const char *how, ...) {
    char suffix[256];
    va_list args;
    va_start(args, how);
    int64_t n = vsnprintf(suffix, sizeof suffix, how, args);
    va_end(args);
    if (s->line + n + 2 > LINE_WIDTH) {
        append(s->out, ",\n");
        append_repeated(s->out, ' ', INDENT);
        s->line = INDENT + n;
    } else {
        append(s->out, ", ");
        s->line += n + 2;
    }
    append(s->out, suffix);
}

static void add_size(suffixes *s, const tn_tensor *t) {
    char tuple[TNI_SHAPE_TEXT];
    tni_shape_text(t->view.rank, t->sizes, tuple);
    size_t n = strlen(tuple);
    tuple[n - 1] = 0;
    add_suffix(s, "size=(%s%s)", tuple + 1, t->view.rank == 1 ? "," : "");
}

static void append_suffixes(text *out, tn_tensor *t) {
    const char *line = out->s ? strrchr(out->s, '\n') : NULL;
    suffixes s = {out, line ? (int64_t)strlen(line) + 1 : (int64_t)out->n + 2};
    tn_dtype dtype = t->view.dtype;
    if (!t->device->is_cpu)
        add_suffix(&s, "device='%s'", t->device->is_meta ? "meta" : t->device->name);
    if (t->device->is_meta || t->view.numel == 0) {
        if (t->device->is_meta || t->view.rank != 1)
            add_size(&s, t);
        if (dtype != TN_F32)
            add_suffix(&s, "dtype=%s", tn_dtype_name(dtype));
    } else if (dtype != TN_F32 && dtype != TN_I64 && dtype != TN_BOOL && dtype != TN_C64) {
        add_suffix(&s, "dtype=%s", tn_dtype_name(dtype));
    }
    const char *made_by = tn_grad_fn_name(t);
    if (made_by[0])
        add_suffix(&s, "grad_fn=<%s>", made_by);
    else if (tn_requires_grad(t))
        add_suffix(&s, "requires_grad=True");
    append(out, ")");
}

/* ---- calls ------------------------------------------------------------------------------- */

char *tn_to_string(tn_tensor *t) {
    if (tni_no_tensor(t, "tn_to_string"))
        return NULL;
    text out = {0};
    append(&out, "tensor(");
    if (t->device->is_meta) {
        append(&out, "...");
    } else if (t->view.numel == 0) {
        append(&out, "[]");
    } else {
        shown s = {.tensor = t};
        if (tni_capture_check(tni_stream_current(t->device), "tn_to_string",
                              "nothing has been computed; print after a replay") != TN_OK ||
            fetch(&s) != TN_OK) {
            tni_free(s.data);
            tni_free(out.s);
            return NULL;
        }
        choose_formats(&s);
        append_block(&out, &s, 0, 0);
        tni_free(s.data);
    }
    append_suffixes(&out, t);
    if (out.failed) {
        tni_free(out.s);
        return tni_fail_memory_null("the text of a tensor");
    }
    return out.s;
}

void tn_string_free(char *s) {
    tni_free(s);
}

tn_status tn_print(tn_tensor *t) {
    char *s = tn_to_string(t);
    if (!s)
        return tn_error_status();
    bool written = printf("%s\n", s) >= 0 && fflush(stdout) == 0;
    tn_string_free(s);
    return written ? TN_OK : tni_fail(TN_ERR_IO, "tn_print: standard output could not be written");
}
