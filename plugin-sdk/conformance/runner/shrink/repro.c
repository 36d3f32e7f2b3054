/* See repro.h. The program's unchanging part is repro_template.c. */
#include "plugin-sdk/conformance/runner/shrink/repro.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/worker/kernel/execute.h"
#include "plugin-sdk/conformance/worker/oracle/compare.h"

extern const char tc_repro_template[];

enum { MOST_CALLS = 3 };

/* What the C file is made of. */
typedef struct reproduction {
    FILE *out;
    tc_case c;
    tc_arena arena;
    tc_invocation calls[MOST_CALLS];
    int n_calls;
} reproduction;

bool tc_repro_possible(const char *line, char why[TC_MESSAGE]) {
    tc_case c;
    if (!tc_case_parse(line, &c, why))
        return false;
    const char *how = tc_case_get(&c, "how");
    const char *memory = tc_case_get(&c, "memory");
    /* The file has plain allocations, one for each tensor. */
    bool apart = (!memory || strcmp(memory, "apart") == 0) && !tc_case_get(&c, "within");
    if ((strcmp(c.class, "kernel") == 0 && apart) || strcmp(c.class, "refuse") == 0 ||
        (strcmp(c.class, "same") == 0 && how &&
         (strcmp(how, "dense") == 0 || strcmp(how, "again") == 0)))
        return true;
    snprintf(why, TC_MESSAGE,
             "a C file is written for kernel/ without memory=one, fences and within, refuse/ and "
             "same/ how=dense and how=again; for this case the line is the reproduction");
    return false;
}

/* ---- the calls --------------------------------------------------------------------------- */

static void make_dense(tc_invocation *call) {
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        tc_shape *s = &call->args[a].tensor.shape;
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none)
            *s = tc_dense(s->rank, s->sizes);
    }
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        call->outs[k].tensor.shape =
            tc_dense(call->outs[k].tensor.shape.rank, call->outs[k].tensor.shape.sizes);
    call->in_place = call->shared = call->scalar = call->within = -1;
    call->sharing = call->inner = 0;
}

static bool spoil(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    int32_t a = tc_record_arg(call->record, "index");
    if (a < 0)
        a = tc_record_arg(call->record, "indices");
    int64_t value, place;
    const char *bad = tc_case_get(c, "bad"), *at = tc_case_get(c, "at");
    if (a < 0 || !bad || !at || !tc_read_int(bad, &value, why) || !tc_read_int(at, &place, why) ||
        place < 0 || place >= call->args[a].tensor.shape.numel)
        return tc_why(why, TC_MESSAGE, "refuse/ needs an operator with indices, bad=N and at=I");
    call->args[a].tensor.values[place].i = value;
    tc_operand_settle(&call->args[a].tensor);
    return true;
}

/* The calls as kernel_case.c, same_case.c and refuse_case.c make them. */
static bool make_calls(reproduction *p, char why[TC_MESSAGE]) {
    bool refuse = strcmp(p->c.class, "refuse") == 0, same = strcmp(p->c.class, "same") == 0;
    bool dense = same && strcmp(tc_case_get(&p->c, "how"), "dense") == 0;
    uint64_t seed = p->c.seed;
    p->n_calls = !refuse && !same ? 1 : refuse || dense ? 2 : 3;
    for (int i = 0; i < p->n_calls; i++) {
        tc_invocation *call = &p->calls[i];
        uint64_t round = !refuse && !same  ? seed ^ 0x5eed
                         : refuse || dense ? seed + (uint64_t)i
                                           : seed + 1000 * (uint64_t)i;
        if (!tc_invocation_parse(&p->c, &p->arena, call, why))
            return false;
        if (dense && i == 1)
            make_dense(call);
        if (!tc_invocation_fill(call, round, why))
            return false;
        if (dense && i == 1)
            tc_invocation_mirror(&p->calls[0], call);
    }
    return !refuse || spoil(&p->c, &p->calls[0], why);
}

/* ---- writing ----------------------------------------------------------------------------- */

static void put_double(FILE *out, double x) {
    if (isnan(x))
        fputs("NAN", out);
    else if (isinf(x))
        fputs(x < 0 ? "-INFINITY" : "INFINITY", out);
    else
        fprintf(out, x == floor(x) && fabs(x) < 1e6 ? "%.1f" : "%a", x);
}

static void put_ints(FILE *out, int32_t n, const int64_t *values) {
    fputc('{', out);
    for (int32_t i = 0; i < n; i++)
        fprintf(out, "%s%" PRId64, i ? ", " : "", values[i]);
    fputs(n ? "}" : "0}", out);
}

/* The values, for whoever reads. */
static void put_values(FILE *out, const tc_operand *o) {
    enum { FEW = 16 };
    fputs("/* ", out);
    for (int64_t i = 0; i < o->shape.numel && i < FEW; i++)
        if (tc_is_float(o->dtype))
            fprintf(out, "%s%.9Lg", i ? ", " : "", o->values[i].f);
        else
            fprintf(out, "%s%" PRId64, i ? ", " : "", o->values[i].i);
    fprintf(out, "%s */\n", o->shape.numel > FEW ? ", ..." : "");
}

static void put_image(FILE *out, const char *name, const tc_operand *o) {
    fprintf(out, "static const unsigned char %s_image[] = {", name);
    for (uint64_t i = 0; i < o->bytes; i++)
        fprintf(out, "%s0x%02x,", i % 16 ? " " : "\n    ", o->image[i]);
    fputs("\n};\n", out);
}

/* "TN_BF16". Returns out. */
static const char *constant_of(tn_dtype dtype, char out[16]) {
    size_t n = (size_t)snprintf(out, 16, "TN_%s", tc_dtype_name(dtype));
    for (size_t i = 0; i < n && i < 15; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
    return out;
}

/* "{...}" of a tensor whose arrays have the name. */
static void put_tensor(FILE *out, const char *name, const char *word, const tc_operand *o,
                       bool output) {
    char dtype[16];
    fprintf(out, "{\"%s\", %s, %d, ", word, constant_of(o->dtype, dtype), (int)o->shape.rank);
    put_ints(out, o->shape.rank, o->shape.sizes);
    fputs(", ", out);
    put_ints(out, o->shape.rank, o->shape.strides);
    fprintf(out, ", %" PRId64 ", %" PRIu64 ", %" PRIu64 ", %s_image, ", o->shape.numel,
            (uint64_t)o->shape.offset * tc_dtype_bytes(o->dtype), o->bytes, name);
    if (output)
        fprintf(out, "%s_low, %s_high, %s_whole}", name, name, name);
    else
        fputs("NULL, NULL, NULL}", out);
}

static void put_input(FILE *out, const char *name, const char *word, const tc_operand *o) {
    fprintf(out, "\n/* %s: ", word);
    char shape[TC_MAX_LINE];
    fprintf(out, "%s %s */\n", tc_dtype_name(o->dtype),
            tc_write_shape(&o->shape, shape, sizeof shape));
    put_values(out, o);
    put_image(out, name, o);
    fprintf(out, "static const tensor %s = ", name);
    put_tensor(out, name, word, o, false);
    fputs(";\n", out);
}

/* What elements of output k may be. An exact zero has its sign; one that is rounded has none. */
static void put_expected(FILE *out, const char *name, const tc_invocation *call, uint32_t k) {
    const tc_expected *e = &call->outs[k];
    bool floating = tc_is_float(e->tensor.dtype);
    for (int side = 0; side < 2; side++) {
        fprintf(out, "static const double %s_%s[] = {", name, side ? "high" : "low");
        for (int64_t i = 0; i < e->tensor.shape.numel; i++) {
            tc_real low = isinf(e->error[i]) ? -1 : 0, high = 0;
            if (floating)
                tc_bounds(call, k, i, &low, &high);
            if (floating && low == 0 && high == 0) {
                bool exact = e->tensor.values[i].f == 0;
                low = exact ? e->tensor.values[i].f : -0.0L;
                high = exact ? low : 0;
            }
            fputs(i % 8 ? " " : "\n    ", out);
            put_double(out, (double)(side ? high : low));
            fputc(',', out);
        }
        fputs("\n};\n", out);
    }
    fprintf(out, "static const int64_t %s_whole[] = {", name);
    for (int64_t i = 0; i < e->tensor.shape.numel; i++)
        fprintf(out, "%s%" PRId64 ",", i % 8 ? " " : "\n    ",
                floating ? 0 : tc_round(e->tensor.dtype, e->tensor.values[i]).i);
    fputs("\n};\n", out);
}

static void put_cell(FILE *out, const tc_invocation *call, uint32_t a, const char *name) {
    tn_cell cell = tc_value_cell(call, a);
    switch (cell.tag) {
    case TN_CELL_NONE:
        fputs("{.tag = TN_CELL_NONE}", out);
        break;
    case TN_CELL_BOOL:
        fprintf(out, "{.tag = TN_CELL_BOOL, .v.boolean = %d}", cell.v.boolean != 0);
        break;
    case TN_CELL_I64:
        fprintf(out, "{.tag = TN_CELL_I64, .v.i64 = %" PRId64 "}", cell.v.i64);
        break;
    case TN_CELL_F64:
        fputs("{.tag = TN_CELL_F64, .v.f64 = ", out);
        put_double(out, cell.v.f64);
        fputc('}', out);
        break;
    case TN_CELL_INTS:
        fprintf(out, "{.tag = TN_CELL_INTS, .n = %u, .v.ints = %s}", cell.n,
                cell.n ? name : "NULL");
        break;
    default:
        fprintf(out, "{.tag = TN_CELL_STRING, .v.string = \"%s\"}", cell.v.string);
    }
}

static bool is_tensor(const tc_invocation *call, uint32_t a) {
    return call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
           call->scalar != (int32_t)a;
}

static void put_call(FILE *out, const tc_invocation *call, int n) {
    const tc_record *record = call->record;
    char name[64];
    for (uint32_t a = 0; a < record->n_args; a++) {
        snprintf(name, sizeof name, "call%d_%.40s", n, record->args[a].name);
        if (is_tensor(call, a))
            put_input(out, name, record->args[a].name, &call->args[a].tensor);
        if (record->args[a].kind == TC_ARG_INTS && !call->args[a].none) {
            fprintf(out, "static const int64_t %s[] = ", name);
            put_ints(out, call->args[a].n_ints, call->args[a].ints);
            fputs(";\n", out);
        }
    }
    for (uint32_t k = 0; k < record->n_outs; k++) {
        const tc_operand *image = k == 0 && call->in_place >= 0 ? &call->args[call->in_place].tensor
                                                                : &call->outs[k].tensor;
        snprintf(name, sizeof name, "call%d_out%u", n, k);
        fprintf(out, "\n/* output %u must be */\n", k);
        put_values(out, &call->outs[k].tensor);
        put_expected(out, name, call, k);
        put_image(out, name, image);
    }
    fprintf(out, "static const argument call%d_args[] = {\n", n);
    for (uint32_t a = 0; a < record->n_args; a++) {
        snprintf(name, sizeof name, "call%d_%.40s", n, record->args[a].name);
        fprintf(out, "    {%s%s, ", is_tensor(call, a) ? "&" : "",
                is_tensor(call, a) ? name : "NULL");
        if (is_tensor(call, a))
            fputs("{0}", out);
        else
            put_cell(out, call, a, name);
        fprintf(out, ", %u},\n", tc_owner(call, a));
    }
    fprintf(out, "%s};\nstatic const tensor call%d_outs[] = {\n", record->n_args ? "" : "    {0}\n",
            n);
    for (uint32_t k = 0; k < record->n_outs; k++) {
        char word[32];
        snprintf(name, sizeof name, "call%d_out%u", n, k);
        snprintf(word, sizeof word, "output %u", k);
        fputs("    ", out);
        put_tensor(out, name, word, &call->outs[k].tensor, true);
        fputs(",\n", out);
    }
    fputs("};\n", out);
}

static void put_file(reproduction *p, const char *line, uint32_t device) {
    FILE *out = p->out;
    const tc_record *record = p->calls[0].record;
    static const char marker[] = "/* DATA */\n";
    const char *rest = strstr(tc_repro_template, marker);
    bool same = strcmp(p->c.class, "same") == 0, refuse = strcmp(p->c.class, "refuse") == 0;
    fprintf(
        out,
        "/* %s\n *\n * %s\n *\n"
        " *     cc -I$(pkg-config --variable=includedir tenon-plugin) FILE.c -ldl -lm\n"
        " *     ./a.out PLUGIN.so       ends with 0 where the calls come out right, 1 where not\n"
        " */\n#define _GNU_SOURCE\n",
        line, record->schema);
    fwrite(tc_repro_template, 1, (size_t)(rest - tc_repro_template), out);
    fprintf(out,
            "#define OP \"%s\"\nenum { DEVICE = %u, N_ARGS = %u, N_OUTS = %u, N_TYPES = %u, "
            "ZERO_SIGNED = %d };\nstatic const tn_dtype types[] = {",
            record->op, device, record->n_args, record->n_outs, record->n_types,
            record->zero_signed);
    char dtype[16];
    for (uint32_t t = 0; t < record->n_types; t++)
        fprintf(out, "%s%s", t ? ", " : "", constant_of(p->calls[0].types[t], dtype));
    fputs(record->n_types ? "};\n" : "0};\n", out);
    for (int i = 0; i < p->n_calls; i++)
        put_call(out, &p->calls[i], i);
    fputs("\nstatic const one_call calls[] = {\n", out);
    for (int i = 0; i < p->n_calls; i++)
        fprintf(out, "    {call%d_args, call%d_outs, %d, %llu, %s, %s},\n", i, i,
                (int)p->calls[i].in_place, (unsigned long long)tc_needed_flags(&p->calls[i]),
                refuse && i == 0 ? "TN_ERR_INDEX_OUT_OF_RANGE" : "TN_OK", same ? "false" : "true");
    fputs("};\n", out);
    fputs(rest + sizeof marker - 1, out);
}

bool tc_repro_write(FILE *out, const char *line, uint32_t device, char why[TC_MESSAGE]) {
    reproduction p = {.out = out};
    if (!tc_repro_possible(line, why))
        return false;
    bool good = tc_case_parse(line, &p.c, why) && make_calls(&p, why);
    if (good)
        put_file(&p, line, device);
    tc_arena_finish(&p.arena);
    if (good && (fflush(out) != 0 || ferror(out))) {
        snprintf(why, TC_MESSAGE, "it could not be written");
        good = false;
    }
    return good;
}
