/* Reads lines of the data. */
#include "tests/values/call.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *at;
    call *c;
    bool failed;
} reader;

static void skip(reader *r, const char *token) {
    size_t n = strlen(token);
    if (strncmp(r->at, token, n) == 0)
        r->at += n;
    else
        r->failed = true;
}

static bool take(reader *r, const char *token) {
    size_t n = strlen(token);
    bool is_there = strncmp(r->at, token, n) == 0;
    r->at += is_there ? n : 0;
    return is_there;
}

/* Letters, digits, dots and underscores. */
static void word(reader *r, char *out, size_t size) {
    size_t n = 0;
    while ((isalnum((unsigned char)*r->at) || strchr("._", *r->at)) && *r->at && n + 1 < size)
        out[n++] = *r->at++;
    out[n] = 0;
    r->failed |= n == 0;
}

static tn_dtype dtype(reader *r) {
    char name[16];
    word(r, name, sizeof name);
    for (int d = 0; d < TN_DTYPE_END; d++) {
        if (strcmp(tn_dtype_name((tn_dtype)d), name) == 0)
            return (tn_dtype)d;
    }
    r->failed = true;
    return TN_F32;
}

static int64_t integer(reader *r) {
    char *end;
    int64_t value = strtoll(r->at, &end, 10);
    r->failed |= end == r->at;
    r->at = end;
    return value;
}

/* Integers up to `close`, which is taken. */
static int32_t integers(reader *r, int64_t *out, int32_t room, const char *close) {
    int32_t n = 0;
    while (!r->failed && !take(r, close)) {
        if (n == room || (n && !take(r, ",")))
            r->failed = true;
        else
            out[n++] = integer(r);
    }
    return n;
}

/* ---- arguments --------------------------------------------------------------------------- */

/* KIND:DTYPE[SIZES]LAYOUT#SEED */
static void tensor(reader *r, tn_cell *cell, tn_tensor **place) {
    call *c = r->c;
    if (c->n_inputs == MAX_INPUTS) {
        r->failed = true;
        return;
    }
    input *in = &c->inputs[c->n_inputs];
    c->cells[c->n_inputs] = cell;
    c->places[c->n_inputs++] = place;
    *in = (input){0};
    word(r, in->kind, sizeof in->kind);
    skip(r, ":");
    in->dtype = dtype(r);
    skip(r, "[");
    in->rank = integers(r, in->sizes, INPUT_RANK, "]");
    char layout[16] = "dense";
    if (*r->at != '#')
        word(r, layout, sizeof layout);
    r->failed |= !tc_layout_find(layout, &in->layout);
    skip(r, "#");
    in->seed = (uint64_t)integer(r);
}

/* Anything up to a quote. */
static void text(reader *r, char *out, size_t size) {
    size_t n = strcspn(r->at, "'");
    if (n >= size) {
        r->failed = true;
        n = 0;
    }
    memcpy(out, r->at, n);
    out[n] = 0;
    r->at += n;
}

static void list(reader *r, tn_cell *cell, tn_tensor **elements) {
    uint32_t n = 0;
    while (!r->failed && !take(r, "}")) {
        if (n == MAX_LIST || (n && !take(r, "; ")))
            r->failed = true;
        else if (take(r, "None"))
            elements[n++] = NULL;
        else
            tensor(r, NULL, &elements[n++]);
    }
    *cell = (tn_cell){.tag = TN_CELL_TENSORS, .n = n, .v.pointer = elements};
}

static void number(reader *r, tn_cell *cell) {
    size_t n = strcspn(r->at, ",)");
    char *end;
    if (strcspn(r->at, ".einf") < n)
        *cell = tn_float(strtod(r->at, &end));
    else
        *cell = tn_int(strtoll(r->at, &end, 10));
    r->failed |= end != r->at + n;
    r->at += n;
}

static void argument(reader *r, uint32_t i) {
    call *c = r->c;
    tn_cell *cell = &c->args[i];
    if (take(r, "None")) {
        *cell = (tn_cell){.tag = TN_CELL_NONE};
    } else if (take(r, "True")) {
        *cell = tn_bool(true);
    } else if (take(r, "False")) {
        *cell = tn_bool(false);
    } else if (take(r, "@")) {
        *cell = tn_int(dtype(r));
    } else if (take(r, "'")) {
        text(r, c->words[i], sizeof c->words[i]);
        skip(r, "'");
        *cell = (tn_cell){.tag = TN_CELL_STRING, .v.string = c->words[i]};
    } else if (take(r, "(")) {
        int64_t *ints = &c->ints[c->n_ints];
        int32_t n = integers(r, ints, 8, ")");
        c->n_ints += (uint32_t)n;
        *cell = (tn_cell){.tag = TN_CELL_INTS, .n = (uint32_t)n, .v.ints = ints};
    } else if (take(r, "{")) {
        list(r, cell, c->lists[i]);
    } else if (isalpha((unsigned char)*r->at) && memchr(r->at, ':', strcspn(r->at, ",)"))) {
        tensor(r, cell, NULL);
    } else {
        number(r, cell);
    }
}

/* ---- results ----------------------------------------------------------------------------- */

static void result(reader *r, expected *e) {
    *e = (expected){.how = EXPECT_NONE};
    if (take(r, "None"))
        return;
    e->dtype = dtype(r);
    skip(r, "[");
    e->rank = integers(r, e->sizes, TN_MAX_RANK, "]");
    e->numel = 1;
    for (int32_t d = 0; d < e->rank; d++)
        e->numel *= e->sizes[d];
    e->how = take(r, "~largest") ? EXPECT_LARGEST
             : take(r, "~")      ? EXPECT_ELEMENT
             : take(r, "?")      ? EXPECT_SHAPE
                                 : EXPECT_BITS;
}

static uint32_t results(reader *r, expected *out) {
    uint32_t n = 0;
    while (!r->failed && *r->at == ' ' && strncmp(r->at, " grad ", 6) != 0 &&
           strncmp(r->at, " jvp ", 5) != 0 && strncmp(r->at, " differs=", 9) != 0) {
        skip(r, " ");
        if (n == MAX_RESULTS)
            r->failed = true;
        else
            result(r, &out[n++]);
    }
    return n;
}

uint64_t expected_bytes(const expected *e) {
    uint64_t n = (uint64_t)e->numel, size = (uint64_t)tn_dtype_size(e->dtype);
    switch (e->how) {
    case EXPECT_BITS:
        return n * size;
    case EXPECT_ELEMENT:
    case EXPECT_LARGEST:
        return n * ((size < 4 ? 4 : size) + 2 * sizeof(int16_t));
    default:
        return 0;
    }
}

bool call_read(const char *line, call *c, char why[128]) {
    reader r = {.at = line, .c = c};
    memset(c, 0, sizeof *c);
    c->text = line;
    word(&r, c->name, sizeof c->name);
    skip(&r, "(");
    while (!r.failed && !take(&r, ")")) {
        if (c->n_args == TC_MAX_ARGS || (c->n_args && !take(&r, ", ")))
            r.failed = true;
        else
            argument(&r, c->n_args++);
    }
    skip(&r, " ->");
    c->n_results = results(&r, c->results);
    if (!r.failed && take(&r, " grad"))
        c->n_gradients = results(&r, c->gradients);
    if (!r.failed && take(&r, " jvp"))
        c->n_tangents = results(&r, c->tangents);
    c->differs = strncmp(r.at, " differs=", 9) == 0;
    if (!r.failed && (c->differs || !*r.at))
        return true;
    snprintf(why, 128, "column %ld: '%.30s'", (long)(r.at - line), r.at);
    return false;
}
