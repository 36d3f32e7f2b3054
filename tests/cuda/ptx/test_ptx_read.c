/* What is understood, and what is refused: by its line and its name, when a module is read. */
#include "tests/cuda/ptx/ptx_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define BEGIN \
    HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 " \
         "%r<8>;\n.reg .b64 %d<8>;\n"
/* The line of the first statement of a body. */
#define FIRST "line 10: "
#define END "\nret;\n}\n"

static void refuse(const char *text, const char *line, const char *what) {
    char error[512] = "";
    ptx_module *module = ptx_module_create(text, error, sizeof error);
    if (module || !strstr(error, line) || !strstr(error, what))
        fail_msg("%s: '%s', where '%s%s' is expected", text, module ? "understood" : error, line,
                 what);
}

static void unknown_instructions_are_refused_by_name(void **state) {
    static const char *const cases[][2] = {
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, "
         "{%r4,%r5}, {%r0,%r1,%r2,%r3};",
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%d0];", "ldmatrix"},
        {"wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned"},
        {"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%r1];", "tcgen05"},
        {"frobnicate.b32 %r0, %r1;", "frobnicate.b32"},
        {"add.s128 %r0, %r1, %r2;", "add.s128"},
        {"add.rn.s32 %r0, %r1, %r2;", "add.rn.s32"},
        {"add.uncommon.s32 %r0, %r1, %r2;", "add.uncommon.s32"},
        {"setp.almost.s32 %p0, %r1, %r2;", "setp.almost.s32"},
        {"fma.rn.f16 %h0, %h1, %h2, %h3;", "fma.rn.f16"},
        {"add.ftz.f16x2 %r0, %r1, %r2;", "add.ftz.f16x2"},
        {"ex2.approx.ftz.bf16 %h0, %h1;", "ex2.approx.ftz.bf16"},
        {"tanh.approx.f16 %h0, %h1;", "tanh.approx.f16"},
        {"rcp.approx.f64 %d0, %d1;", "rcp.approx.f64"},
        {"shfl.bfly.b32 %r0, %r1, %r2, %r3;", "without .sync"},
        {"ld.global.b128 %r0, [%d0];", "ld.global.b128"},
        {"ld.texture.b32 %r0, [%d0];", "ld.texture.b32"},
        {"atom.global.add.v2.f32 {%r0, %r1}, [%d0], {%r2, %r3};", "atom.global.add.v2.f32"},
        {"atom.global.inc.u64 %d0, [%d1], %d2;", "atom.global.inc.u64"},
        {"cvt.s32.f32 %r0, %r1;", "without a direction"},
        {"cvt.rn.e4m3x2.f32 %h0, %r0, %r1;", "cvt.rn.e4m3x2.f32"},
        {"cp.async.bulk.shared.global [%r0], [%d0], 16;", "cp.async.bulk.shared.global"},
        {"bar.arrive 1;", "without a number of threads"},
        {"call (%r0), %d0, (%r1), prototype;", "no function"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s%s", BEGIN, cases[k][0], END);
        refuse(text, FIRST, cases[k][1]);
    }
}

static void operands_are_those_of_the_instruction(void **state) {
    static const char *const cases[][2] = {
        {"add.s32 %r0, %r1, %r9;", "'%r9' is not declared"},
        {"add.s32 %r0, %r1, %d1;", "'%d1' has 64 bits"},
        {"add.s64 %d0, %r1, %d1;", "'%r1' has 32 bits"},
        {"mul.wide.s32 %r0, %r1, %r2;", "'%r0' has 32 bits"},
        {"setp.eq.s32 %r0, %r1, %r2;", "'%r0' has 32 bits"},
        {"selp.b32 %r0, %r1, %r2, %r3;", "'%r3' has 32 bits"},
        {"add.s32 %r0, %r1;", "',' is expected"},
        {"add.s32 %r0, %r1, %r2, %r3;", "';' is expected"},
        {"add.s32 %r0, %r1, 1f;", "no number"},
        {"ld.global.u32 %h0, [%d0];", "16 bits for 32"},
        {"ld.global.v2.u32 {%r0, %d0}, [%d1];", "64 bits for 32"},
        {"ld.global.u32 %r0, [%h0];", "an address in 16 bits"},
        {"ld.global.u32 %r0, %d0;", "'[' is expected"},
        {"@%r0 ret;", "'%r0' has 32 bits"},
        {"mov.u64 %d0, nowhere;", "'nowhere' is not declared"},
        {"mov.b64 {%h0, %h1}, %d0;", "'%h0' has 16 bits"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s%s", BEGIN, cases[k][0], END);
        refuse(text, FIRST, cases[k][1]);
    }
}

static void labels_are_where_braces_let_them_be(void **state) {
    refuse(BEGIN "bra $nowhere;" END, "line", "'k' has no label '$nowhere'");
    refuse(BEGIN "bra $inner;\n{\n$inner:\nmov.u32 %r0, 1;\n}" END, "line", "no label '$inner'");
    refuse(BEGIN "{\n.reg .b32 inside;\n}\nmov.u32 inside, 1;" END,
           "line 13: ", "'inside' is not declared");
    refuse(BEGIN "brx.idx %r0, $list;" END, FIRST, "no list of targets");
    refuse(BEGIN "mov.u32 %r0, 1;", "line", "'}' is missing");
    /* The same label in two pairs of braces, and one that is used before another. */
    static const char text[] =
        BEGIN "ld.param.u64 %d0, [p];\nmov.u32 %r0, 0;\n"
              "{\nbra L;\nadd.u32 %r0, %r0, 100;\nL:\nadd.u32 %r0, %r0, 1;\n}\n"
              "{\nbra OUT;\nM:\nadd.u32 %r0, %r0, 100;\nL:\nadd.u32 %r0, %r0, 2;\nbra END;\n}\n"
              "OUT:\nadd.u32 %r0, %r0, 4;\nEND:\nst.global.u32 [%d0], %r0;" END;
    rig *r = rig_open(text, 4096);
    uint64_t a = rig_take(r, 4);
    RIG_RUN(r, "k", 1, 1, a);
    assert_int_equal(*(uint32_t *)rig_host(r, a), 5);
    rig_close(r);
}

static void functions_are_called_as_they_are_declared(void **state) {
#define FUNCTION ".func (.param .b32 out) f(.param .b32 in)\n"
#define BODY \
    "{\n.reg .b32 %r<4>;\nld.param.b32 %r0, [in];\nadd.u32 %r0, %r0, 5;\nst.param.b32 [out], " \
    "%r0;\nret;\n}\n"
#define CALLER(call) \
    ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<4>; .reg .b64 %d<2>;\nld.param.u64 %d0, " \
    "[p];\nmov.u32 %r0, %tid.x;\n" \
    "{\n.param .b32 a;\n.param .b64 b;\n.param .b32 c;\nst.param.b32 [a], %r0;\n" call \
    "\nld.param.b32 %r0, [c];\n}\n" \
    "mul.wide.u32 %d1, %r0, 4;\nadd.u64 %d0, %d0, %d1;\nst.global.u32 [%d0+-20], %r0;\nret;\n}\n"
    refuse(HEAD FUNCTION ";\n" CALLER("call.uni (c), f, (a);"), "line",
           "'f', which is not in the module");
    refuse(HEAD FUNCTION BODY CALLER("call.uni f, (a);"), "line", "'f' has other parameters");
    refuse(HEAD FUNCTION BODY CALLER("call.uni (c), f, (a, a);"), "line",
           "too many parameters for 'f'");
    refuse(HEAD FUNCTION BODY CALLER("call.uni (c), f, (b);"), "line",
           "'b' is no .param of 4 bytes");
    refuse(HEAD FUNCTION BODY CALLER("call.uni (c), g, (a);"), "line", "'g', which is no function");
    refuse(HEAD FUNCTION BODY FUNCTION BODY, "line", "'f' is defined twice");
    refuse(HEAD FUNCTION "{\n.param .b32 a;\ncall (a), f, (a);\nret;\n}\n", "line",
           "'f' calls itself");
    /* Defined behind its call. */
    rig *r = rig_open(HEAD FUNCTION ";\n" CALLER("call.uni (c), f, (a);") FUNCTION BODY, 4096);
    uint64_t at = rig_take(r, 4 * 70);
    RIG_RUN(r, "k", 1, 70, at);
    for (uint32_t k = 0; k < 70; k++)
        assert_int_equal(((uint32_t *)rig_host(r, at))[k], k + 5);
    rig_close(r);
}

static void directives_are_read_or_refused(void **state) {
    refuse(".address_size 32\n", "line", "64 bits");
    refuse(HEAD ".alias a, b;\n", "line 4: ", "'.alias'");
    refuse(HEAD ".global .align 4 .b8 x[4] = {1, 2, 3, 4, 5};\n",
           "line 4: ", "too many values for 'x'");
    refuse(HEAD ".global .align 3 .b8 x[4];\n", "line 4: ", "alignment");
    refuse(HEAD ".extern .global .b32 x;\n", "line 4: ", "other modules");
    refuse(HEAD ".entry k(.reg .b32 x)\n{\n}\n", "line 4: ", "not '.param'");
    refuse("this is no PTX", "line 1: ", "'this'");
    static const char text[] =
        "// a comment\n" HEAD "/* another,\n of two lines */ .file 1 \"x.cu\"\n"
        ".section .debug_info\n{\n.b8 1, 2\n}\n"
        ".visible .entry k(.param .u8 a, .param .align 8 .b8 b[24], .param .u16 c)\n.maxntid 64, "
        "2, 1\n.minnctapersm 2\n"
        "{\n.loc 1 2 3\n.pragma \"nounroll\";\nret;\n}\n";
    rig *r = rig_open(text, 4096);
    const ptx_kernel *kernel = ptx_module_kernel(r->module, "k");
    uint32_t offset, bytes;
    assert_int_equal(ptx_kernel_facts(kernel).max_threads, 128);
    assert_int_equal(ptx_kernel_facts(kernel).parameter_bytes, 34);
    assert_true(ptx_kernel_parameter(kernel, 1, &offset, &bytes));
    assert_int_equal(offset, 8);
    assert_int_equal(bytes, 24);
    rig_close(r);
}

/* ---- what is no PTX any more ------------------------------------------------------------- */

/* Each would have read or written what is not there, here or when a kernel ran. */
static void what_would_do_harm_is_refused(void **state) {
    char text[8192];
    refuse(":", "line 1: ", "':' is not interpreted");
    refuse(BEGIN "add.u32 %r0, %r1, 0", "line", "';' is expected");
    refuse(BEGIN "set.f32.and.f32 %r0, %r1, %r2, %p0;" END, FIRST, "set.f32.and.f32");
    refuse(BEGIN "mov.b32 {%h0 /*,*/}, %r0;" END, FIRST, "not understood");
    refuse(BEGIN "mov.b32 %r0, {%h0 /*,*/};" END, FIRST, "not understood");
    refuse(BEGIN ".reg .b64 %big<999999>;\n.reg .b64 %bigger<999999>;" END,
           "line 10: ", "too many");
    refuse(HEAD ".global .b8 x[999999999];\n", "line 4: ", "size");
    refuse(HEAD ".entry k(.param .b8 a[30000], .param .b8 b[3000])\n{\n}\n",
           "line 4: ", "too many bytes of parameters");
    refuse(HEAD ".entry e()\n{\nret;\n}\n.entry k()\n{\ncall e;\nret;\n}\n",
           "line 10: ", "'e', which is no function");
    refuse(HEAD ".func f(.param .b8 a[4000])\n;\n.func f(.param .b32 a)\n{\nret;\n}\n",
           "line 7: ", "declared with other parameters");
    size_t n = (size_t)snprintf(text, sizeof text, "%s", BEGIN);
    memset(text + n, '{', 4000);
    text[n + 4000] = 0;
    refuse(text, "line", "too many braces");
}

static void read_and_forget(const char *text) {
    char error[256];
    ptx_module_destroy(ptx_module_create(text, error, sizeof error));
}

/* A text that is cut off anywhere is refused or understood, and no more. */
static void text_that_ends_early_does_no_harm(void **state) {
    char *whole = rig_file("kernels.ptx");
    size_t length = strlen(whole);
    for (size_t n = 0; n < length; n += n < 3000 ? 7 : 397) {
        char *part = calloc(n + 1, 1);
        assert_non_null(part);
        memcpy(part, whole, n);
        read_and_forget(part);
        free(part);
    }
    free(whole);
}

/* From one character behind a space or a comma to the next: a word or an operand. */
static size_t word_at(const char *text, size_t length, size_t at, size_t *out_bytes) {
    while (at < length && !strchr(" \t,;\n", text[at]))
        at++;
    at += strspn(text + at, " \t,;\n");
    *out_bytes = strcspn(text + at, " \t,;\n");
    return at;
}

/* One change or a few: another character, a word that is left out, or one in the place of another. */
static void text_that_was_changed_does_no_harm(void **state) {
    enum { TEXTS = 1500 };
    char *whole = rig_file("kernels.ptx");
    size_t length = strlen(whole);
    uint64_t seed = 23;
    for (int t = 0; t < TEXTS; t++) {
        char *part = calloc(2 * length, 1);
        assert_non_null(part);
        memcpy(part, whole, length);
        size_t n = length;
        for (uint64_t changes = 1 + rig_bits(&seed) % 4; changes > 0; changes--) {
            uint64_t how = rig_bits(&seed) % 4;
            size_t bytes, others, at = word_at(part, n, rig_bits(&seed) % n, &bytes);
            size_t other = word_at(whole, length, rig_bits(&seed) % length, &others);
            if (how == 0) {
                part[rig_bits(&seed) % n] = (char)(1 + rig_bits(&seed) % 127);
                continue;
            }
            others = how == 1 ? 0 : others;
            if (others > length / 8)
                continue;
            memmove(part + at + others, part + at + bytes, n - at - bytes + 1);
            memcpy(part + at, whole + other, others);
            n = n + others - bytes;
        }
        read_and_forget(part);
        free(part);
    }
    free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_instructions_are_refused_by_name),
        cmocka_unit_test(operands_are_those_of_the_instruction),
        cmocka_unit_test(labels_are_where_braces_let_them_be),
        cmocka_unit_test(functions_are_called_as_they_are_declared),
        cmocka_unit_test(directives_are_read_or_refused),
        cmocka_unit_test(what_would_do_harm_is_refused),
        cmocka_unit_test(text_that_ends_early_does_no_harm),
        cmocka_unit_test(text_that_was_changed_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
