/* The parser of operator schemas.
 *
 * The text comes from programs, plugins and files, so nothing about it is trusted: it is parsed in
 * place into a draft of fixed size, then copied into one allocation of exactly the size it needs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif

#include "base/alloc.h"
#include "base/error.h"
#include "dispatcher/schema.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct span {
    const char *at;
    size_t n;
} span;

/* A schema whose names are still spans of the text. */
typedef struct draft {
    span name;
    span arg_names[TNI_MAX_ARGS], ret_names[TNI_MAX_RETS];
    tni_arg args[TNI_MAX_ARGS], rets[TNI_MAX_RETS];
    uint32_t n_args, n_rets;
    int64_t ints[TNI_MAX_ARGS * TNI_MAX_INTS]; /* the default of argument i from i * TNI_MAX_INTS */
    uint64_t aliases, written_aliases;         /* letters seen in arguments, one bit each */
} draft;

typedef struct parser {
    const char *text;
    const char *at;
    char normal[2 * TNI_MAX_SCHEMA_BYTES + 8]; /* at most one space is added per character */
    size_t n_normal;
    tn_status status; /* of a failure */
} parser;

/* ---- characters: without the locale ------------------------------------------------------ */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c) {
    return is_letter(c) || is_digit(c);
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool span_is(span s, const char *word) {
    return strlen(word) == s.n && memcmp(s.at, word, s.n) == 0;
}

/* ---- errors ------------------------------------------------------------------------------ */

enum { WINDOW = 72 }; /* characters shown on either side of the place */

/* Fails with the message, the text, and a caret under `place`. Bytes that do not print in one
 * column are shown as '?', so that the caret stands where it should. */
__attribute__((format(printf, 3, 4))) static bool wrong(const parser *p, const char *place,
                                                        const char *format, ...) {
    char message[256], shown[2 * WINDOW + 8];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);

    size_t before = (size_t)(place - p->text), start = before > WINDOW ? before - WINDOW : 0;
    size_t n = 0;
    if (start)
        n = (size_t)snprintf(shown, sizeof shown, "...");
    size_t caret = n + before - start;
    const char *s = p->text + start;
    for (size_t left = before - start + WINDOW; *s && left; s++, left--)
        shown[n++] = is_space(*s) ? ' ' : *s > ' ' && *s < 0x7f ? *s : '?';
    shown[n] = 0;
    int column = (int)(strlen("schema: : ") + strlen(message) + caret);
    tn_fail(TN_ERR_INVALID_ARGUMENT, "schema: %s: %s%s\n%*s^", message, shown, *s ? "..." : "",
            column, "");
    return false;
}

/* "found 'Tensr'": what stands at the place, in `out`. */
static const char *found(const char *place, char out[48]) {
    size_t n = 0;
    while (n < 32 && is_word(place[n]))
        n++;
    if (!*place)
        snprintf(out, 48, "found the end");
    else if (n)
        snprintf(out, 48, "found '%.*s'", (int)n, place);
    else if (*place > ' ' && *place < 0x7f)
        snprintf(out, 48, "found '%c'", *place);
    else
        snprintf(out, 48, "found byte 0x%02x", (unsigned char)*place);
    return out;
}

static bool expected(const parser *p, const char *what) {
    char what_is[48];
    return wrong(p, p->at, "expected %s, %s", what, found(p->at, what_is));
}

/* ---- tokens: what is taken is written, with normal spacing, to the copy ------------------ */

static void write_space(parser *p) {
    p->normal[p->n_normal++] = ' ';
}

static void skip_space(parser *p) {
    while (is_space(*p->at))
        p->at++;
}

static span take(parser *p, size_t n) {
    span s = {p->at, n};
    memcpy(p->normal + p->n_normal, p->at, n);
    p->n_normal += n;
    p->at += n;
    return s;
}

/* Takes `token` if it comes next. */
static bool accept(parser *p, const char *token) {
    skip_space(p);
    size_t n = strlen(token);
    if (strncmp(p->at, token, n) != 0)
        return false;
    take(p, n);
    return true;
}

static bool expect(parser *p, const char *token) {
    if (accept(p, token))
        return true;
    char quoted[16];
    snprintf(quoted, sizeof quoted, "'%s'", token);
    return expected(p, quoted);
}

/* The word that comes next, empty if none does; it is not taken. */
static span peek_word(parser *p) {
    skip_space(p);
    span s = {p->at, 0};
    if (is_letter(*s.at)) {
        while (is_word(s.at[s.n]))
            s.n++;
    }
    return s;
}

/* ---- types ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    tni_type type;
} type_names[] = {
    {"Tensor", TNI_TYPE_TENSOR}, {"int", TNI_TYPE_INT},       {"float", TNI_TYPE_FLOAT},
    {"bool", TNI_TYPE_BOOL},     {"Scalar", TNI_TYPE_SCALAR}, {"ScalarType", TNI_TYPE_DTYPE},
    {"Device", TNI_TYPE_DEVICE}, {"str", TNI_TYPE_STRING},
};

/* (a) or (a!) */
static bool parse_alias(parser *p, tni_arg *arg) {
    if (!accept(p, "("))
        return true;
    const char *place = p->at;
    span set = peek_word(p);
    if (set.n != 1 || *set.at < 'a' || *set.at > 'z')
        return expected(p, "an alias set, one of a to z");
    take(p, 1);
    arg->alias = *set.at;
    arg->is_written = accept(p, "!");
    if (arg->type != TNI_TYPE_TENSOR)
        return wrong(p, place, "only a Tensor can be aliased or written");
    return expect(p, ")");
}

static bool parse_list(parser *p, tni_arg *arg) {
    const char *place = p->at;
    if (!accept(p, "["))
        return true;
    if (arg->type == TNI_TYPE_TENSOR) {
        arg->type = TNI_TYPE_TENSORS;
        arg->holes = arg->optional;
        arg->optional = false;
    } else if (arg->type == TNI_TYPE_INT && !arg->optional) {
        arg->type = TNI_TYPE_INTS;
        skip_space(p);
        if (is_digit(*p->at)) {
            const char *number = p->at;
            size_t n = 0;
            uint32_t value = 0;
            while (is_digit(number[n])) {
                if (value <= TNI_MAX_INTS)
                    value = 10 * value + (uint32_t)(number[n] - '0');
                n++;
            }
            if (value < 1 || value > TNI_MAX_INTS)
                return wrong(p, number, "N of int[N] must be from 1 to %d", TNI_MAX_INTS);
            take(p, n);
            arg->n_ints = value;
        }
    } else {
        return wrong(p, place, "there are lists of Tensor, Tensor? and int only");
    }
    return expect(p, "]");
}

static bool parse_type(parser *p, tni_arg *arg) {
    span word = peek_word(p);
    size_t i = 0, n_types = sizeof type_names / sizeof *type_names;
    while (i < n_types && !span_is(word, type_names[i].name))
        i++;
    if (i == n_types)
        return expected(p, "a type");
    take(p, word.n);
    arg->type = type_names[i].type;
    if (!parse_alias(p, arg))
        return false;
    arg->optional = accept(p, "?");
    skip_space(p);
    if (!parse_list(p, arg))
        return false;
    if (arg->type == TNI_TYPE_INTS)
        arg->optional = accept(p, "?");
    else if (skip_space(p), *p->at == '?')
        return wrong(p, p->at, "%s",
                     arg->type == TNI_TYPE_TENSORS
                         ? "Tensor[] cannot be optional; an empty list says nothing"
                         : "a type is optional or not: one '?'");
    return true;
}

/* ---- defaults ---------------------------------------------------------------------------- */

/* A number as C writes it, in decimal; `sign` and a word follow for inf and nan. */
static bool parse_number(parser *p, tn_cell *out) {
    char copy[64];
    size_t n = 0;
    const char *s = p->at;
    bool is_float = false, negative = *s == '-';
    if (s[n] == '-' || s[n] == '+')
        n++;
    if (strncmp(s + n, "inf", 3) == 0 || strncmp(s + n, "nan", 3) == 0) {
        bool is_inf = s[n] == 'i';
        n += 3;
        *out = (tn_cell){.tag = TN_CELL_F64,
                         .v.f64 = is_inf ? (negative ? -INFINITY : INFINITY) : NAN};
    } else {
        size_t digits = 0;
        for (; is_digit(s[n]); n++)
            digits++;
        if (s[n] == '.') {
            is_float = true;
            for (n++; is_digit(s[n]); n++)
                digits++;
        }
        if (!digits)
            return expected(p, "a number");
        if (s[n] == 'e' || s[n] == 'E') {
            size_t e = n + 1;
            if (s[e] == '-' || s[e] == '+')
                e++;
            if (!is_digit(s[e]))
                return wrong(p, s, "a number ends in the middle");
            is_float = true;
            for (n = e; is_digit(s[n]); n++)
                ;
        }
        if (n >= sizeof copy)
            return wrong(p, s, "a number of more than %d characters", (int)sizeof copy - 1);
        memcpy(copy, s, n);
        copy[n] = 0;
        if (is_float) {
            /* In the C locale a program's decimal comma cannot change what a schema means. */
            locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
            if (!c) {
                p->status = tni_fail_memory("a schema");
                return false;
            }
            double value = strtod_l(copy, NULL, c);
            freelocale(c);
            if (isinf(value))
                return wrong(p, s, "the number is too large");
            *out = (tn_cell){.tag = TN_CELL_F64, .v.f64 = value};
        } else {
            uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
            for (const char *d = copy; *d; d++) {
                if (!is_digit(*d))
                    continue;
                uint64_t digit = (uint64_t)(*d - '0');
                if (value > (limit - digit) / 10)
                    return wrong(p, s, "the number does not fit 64 bits");
                value = 10 * value + digit;
            }
            *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)(negative ? 0 - value : value)};
        }
    }
    if (is_word(s[n]) || s[n] == '.')
        return wrong(p, s, "a number is followed by '%c'", s[n]);
    take(p, n);
    return true;
}

static bool parse_int(parser *p, int64_t *out) {
    tn_cell cell;
    const char *place = (skip_space(p), p->at);
    if (!parse_number(p, &cell))
        return false;
    if (cell.tag != TN_CELL_I64)
        return wrong(p, place, "expected an int, found a float");
    *out = cell.v.i64;
    return true;
}

static bool parse_int_list(parser *p, tni_arg *arg, int64_t *ints) {
    uint32_t n = 0;
    if (accept(p, "[")) {
        while (!accept(p, "]")) {
            if (n && !expect(p, ","))
                return false;
            if (n)
                write_space(p);
            if (n == TNI_MAX_INTS)
                return wrong(p, p->at, "a default has at most %d ints", TNI_MAX_INTS);
            if (!parse_int(p, &ints[n++]))
                return false;
        }
    } else if (arg->n_ints) {
        if (!parse_int(p, &ints[0]))
            return false;
        for (n = 1; n < arg->n_ints; n++)
            ints[n] = ints[0];
    } else {
        return expected(p, "'['");
    }
    arg->fallback = (tn_cell){.tag = TN_CELL_INTS, .n = n, .v.ints = ints};
    return true;
}

/* The span of the text goes to the cell: its length in n until the copy is made. */
static bool parse_string(parser *p, tn_cell *out) {
    char quote = *p->at;
    if (quote != '\'' && quote != '"')
        return expected(p, "a string");
    size_t n = 1;
    while (p->at[n] && p->at[n] != quote) {
        if ((unsigned char)p->at[n] < ' ' || p->at[n] == 0x7f)
            return wrong(p, p->at + n, "a control character in a string");
        n++;
    }
    if (!p->at[n])
        return wrong(p, p->at, "a string without its end");
    *out = (tn_cell){.tag = TN_CELL_STRING, .n = (uint32_t)n - 1, .v.string = p->at + 1};
    take(p, n + 1);
    return true;
}

static bool parse_bool(parser *p, tn_cell *out) {
    span word = peek_word(p);
    bool yes = span_is(word, "True") || span_is(word, "true");
    if (!yes && !span_is(word, "False") && !span_is(word, "false"))
        return expected(p, "True or False");
    *out = (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = yes};
    take(p, word.n);
    return true;
}

static bool parse_dtype(parser *p, tn_cell *out) {
    static const char *const names[TN_DTYPE_END] = {
#define NAME(NAME_, value, name, bytes, category) [value] = name,
        TN_DTYPE_MAP(NAME) TN_STORAGE_DTYPE_MAP(NAME)
#undef NAME
    };
    span word = peek_word(p);
    for (int i = 0; i < TN_DTYPE_END; i++) {
        if (names[i] && span_is(word, names[i])) {
            *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = i};
            take(p, word.n);
            return true;
        }
    }
    return expected(p, "a ScalarType such as f32");
}

static bool parse_default(parser *p, tni_arg *arg, int64_t *ints) {
    span word = peek_word(p);
    tn_cell *out = &arg->fallback;
    arg->has_default = true;
    if (span_is(word, "None")) {
        if (!arg->optional)
            return wrong(p, p->at, "None is a default of optional types only; add '?' to the type");
        take(p, word.n);
        *out = (tn_cell){.tag = TN_CELL_NONE};
        return true;
    }
    switch (arg->type) {
    case TNI_TYPE_INT:
        *out = (tn_cell){.tag = TN_CELL_I64};
        return parse_int(p, &out->v.i64);
    case TNI_TYPE_INTS:
        return parse_int_list(p, arg, ints);
    case TNI_TYPE_FLOAT:
        if (!parse_number(p, out))
            return false;
        if (out->tag == TN_CELL_I64)
            *out = (tn_cell){.tag = TN_CELL_F64, .v.f64 = (double)out->v.i64};
        return true;
    case TNI_TYPE_BOOL:
        return parse_bool(p, out);
    case TNI_TYPE_SCALAR:
        return word.n && !span_is(word, "inf") && !span_is(word, "nan") ? parse_bool(p, out)
                                                                        : parse_number(p, out);
    case TNI_TYPE_STRING:
        return parse_string(p, out);
    case TNI_TYPE_DTYPE:
        return parse_dtype(p, out);
    case TNI_TYPE_TENSOR:
    case TNI_TYPE_TENSORS:
    case TNI_TYPE_DEVICE:
        break;
    }
    return wrong(p, p->at, "a Tensor or Device has no default but None");
}

/* ---- the whole --------------------------------------------------------------------------- */

/* [ns::]base[.overload]; an overload may start with a digit ("convolution.2"). */
static bool parse_op_name(parser *p, span *out) {
    span word = peek_word(p);
    const char *start = word.at;
    if (!word.n)
        return expected(p, "an operator's name");
    take(p, word.n);
    if (strncmp(p->at, "::", 2) == 0) {
        take(p, 2);
        if (!is_letter(*p->at))
            return expected(p, "an operator's name");
        take(p, peek_word(p).n);
    }
    if (*p->at == '.') {
        take(p, 1);
        size_t n = 0;
        while (is_word(p->at[n]))
            n++;
        if (!n)
            return expected(p, "an overload's name");
        take(p, n);
    }
    *out = (span){start, (size_t)(p->at - start)};
    return true;
}

static bool parse_arg(parser *p, draft *d, bool keyword_only, bool *defaults_began) {
    skip_space(p);
    if (d->n_args == TNI_MAX_ARGS)
        return wrong(p, p->at, "an operator has at most %d arguments", TNI_MAX_ARGS);
    uint32_t i = d->n_args;
    tni_arg *arg = &d->args[i];
    *arg = (tni_arg){.keyword_only = keyword_only};
    if (!parse_type(p, arg))
        return false;

    span name = peek_word(p);
    if (!name.n)
        return expected(p, "an argument's name");
    for (uint32_t j = 0; j < i; j++) {
        if (d->arg_names[j].n == name.n && memcmp(d->arg_names[j].at, name.at, name.n) == 0)
            return wrong(p, name.at, "two arguments are named '%.*s'",
                         (int)(name.n < 64 ? name.n : 64), name.at);
    }
    write_space(p);
    d->arg_names[i] = take(p, name.n);
    if (accept(p, "=")) {
        skip_space(p);
        if (!parse_default(p, arg, &d->ints[i * TNI_MAX_INTS]))
            return false;
        *defaults_began = true;
    } else if (!keyword_only && *defaults_began) {
        return wrong(p, name.at, "an argument without a default follows one with a default");
    }
    if (arg->alias) {
        d->aliases |= UINT64_C(1) << (arg->alias - 'a');
        if (arg->is_written)
            d->written_aliases |= UINT64_C(1) << (arg->alias - 'a');
    }
    d->n_args++;
    return true;
}

static bool parse_args(parser *p, draft *d) {
    bool keyword_only = false, defaults_began = false;
    if (!expect(p, "("))
        return false;
    if (accept(p, ")"))
        return true;
    do {
        if (p->normal[p->n_normal - 1] == ',')
            write_space(p);
        const char *place = (skip_space(p), p->at);
        if (accept(p, "*")) {
            if (keyword_only)
                return wrong(p, place, "a second '*'");
            keyword_only = true;
            skip_space(p);
            if (*p->at == ')')
                return wrong(p, place, "no argument follows the '*'");
            continue;
        }
        if (!parse_arg(p, d, keyword_only, &defaults_began))
            return false;
    } while (accept(p, ","));
    return accept(p, ")") || expected(p, "',' or ')'");
}

static bool parse_ret(parser *p, draft *d, bool may_be_named) {
    const char *place = (skip_space(p), p->at);
    if (d->n_rets == TNI_MAX_RETS)
        return wrong(p, place, "an operator has at most %d returns", TNI_MAX_RETS);
    tni_arg *ret = &d->rets[d->n_rets];
    *ret = (tni_arg){0};
    if (!parse_type(p, ret))
        return false;
    if (ret->type == TNI_TYPE_INTS || ret->type == TNI_TYPE_STRING)
        return wrong(p, place, "int[] and str cannot be returned");
    if (ret->alias) {
        uint64_t bit = UINT64_C(1) << (ret->alias - 'a');
        if (!((ret->is_written ? d->written_aliases : d->aliases) & bit))
            return wrong(p, place, "no argument is Tensor(%c%s)", ret->alias,
                         ret->is_written ? "!" : "");
    }
    span name = may_be_named ? peek_word(p) : (span){p->at, 0};
    if (name.n) {
        write_space(p);
        take(p, name.n);
    }
    d->ret_names[d->n_rets++] = name;
    return true;
}

static bool parse_rets(parser *p, draft *d) {
    if (!accept(p, "("))
        return parse_ret(p, d, false);
    if (accept(p, ")"))
        return true;
    do {
        if (p->normal[p->n_normal - 1] == ',')
            write_space(p);
        if (!parse_ret(p, d, true))
            return false;
    } while (accept(p, ","));
    return accept(p, ")") || expected(p, "',' or ')'");
}

static bool parse_schema(parser *p, draft *d) {
    if (!parse_op_name(p, &d->name) || !parse_args(p, d))
        return false;
    skip_space(p);
    if (strncmp(p->at, "->", 2) != 0)
        return expected(p, "'->'");
    write_space(p);
    take(p, 2);
    write_space(p);
    if (!parse_rets(p, d))
        return false;
    skip_space(p);
    return !*p->at || expected(p, "the end");
}

static char *copy_span(char **room, span s) {
    char *copy = *room;
    memcpy(copy, s.at, s.n);
    copy[s.n] = 0;
    *room += s.n + 1;
    return copy;
}

/* Copies the draft into one block: the schema, the ints of defaults, the characters. */
static tn_status build(const parser *p, const draft *d, tni_schema **out) {
    size_t n_ints = 0, n_chars = p->n_normal + 1 + d->name.n + 1 + 1;
    for (uint32_t i = 0; i < d->n_args; i++) {
        const tn_cell *fallback = &d->args[i].fallback;
        n_chars += d->arg_names[i].n + 1;
        if (fallback->tag == TN_CELL_INTS)
            n_ints += fallback->n;
        else if (fallback->tag == TN_CELL_STRING)
            n_chars += fallback->n + 1;
    }
    for (uint32_t i = 0; i < d->n_rets; i++)
        n_chars += d->ret_names[i].n + 1;

    _Static_assert(sizeof(tni_schema) % sizeof(int64_t) == 0, "ints follow the schema");
    tni_schema *schema = tni_alloc(sizeof *schema + n_ints * sizeof(int64_t) + n_chars);
    if (!schema)
        return tni_fail_memory("a schema");
    *schema = (tni_schema){.n_args = d->n_args, .n_rets = d->n_rets};
    int64_t *ints = (int64_t *)(schema + 1);
    char *room = (char *)(ints + n_ints);
    schema->text = copy_span(&room, (span){p->normal, p->n_normal});
    schema->name = copy_span(&room, d->name);
    schema->names = room;
    for (uint32_t i = 0; i < d->n_args; i++) {
        tni_arg *arg = &schema->args[i];
        *arg = d->args[i];
        arg->name = copy_span(&room, d->arg_names[i]);
        tn_cell *fallback = &arg->fallback;
        if (fallback->tag == TN_CELL_INTS) {
            memcpy(ints, fallback->v.ints, fallback->n * sizeof *ints);
            fallback->v.ints = ints;
            ints += fallback->n;
        } else if (fallback->tag == TN_CELL_STRING) {
            fallback->v.string = copy_span(&room, (span){fallback->v.string, fallback->n});
            fallback->n = 0;
        }
    }
    for (uint32_t i = 0; i < d->n_rets; i++) {
        schema->rets[i] = d->rets[i];
        schema->rets[i].name = copy_span(&room, d->ret_names[i]);
    }
    *out = schema;
    return TN_OK;
}

tn_status tni_schema_parse(const char *text, tni_schema **out) {
    if (!text)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "schema: the text is NULL");
    if (strnlen(text, TNI_MAX_SCHEMA_BYTES + 1) > TNI_MAX_SCHEMA_BYTES)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "schema: longer than %d bytes: %.60s...",
                       TNI_MAX_SCHEMA_BYTES, text);
    parser p;
    draft d;
    p.text = p.at = text;
    p.n_normal = 0;
    p.status = TN_ERR_INVALID_ARGUMENT;
    d.n_args = d.n_rets = 0;
    d.aliases = d.written_aliases = 0;
    if (!parse_schema(&p, &d))
        return p.status;
    return build(&p, &d, out);
}

void tni_schema_destroy(tni_schema *schema) {
    tni_free(schema);
}
