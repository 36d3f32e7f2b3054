/* Schemas: what parses, how it is printed, and how mistakes are shown. */
#include "tests/dispatcher/dispatch_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tenon/kernels.h>

static tni_schema *parse(const char *text) {
    tni_schema *s = NULL;
    if (tni_schema_parse(text, &s) != TN_OK)
        fail_msg("%s", tn_error_message());
    return s;
}

static void schemas_are_printed_with_normal_spacing(void **state) {
    static const char *const cases[][2] = {
        {"f()->()", "f() -> ()"},
        {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", NULL},
        {" add.out ( Tensor self,Tensor other , * , Scalar alpha = 1 , Tensor(a!)out "
         ")->Tensor(a!) ",
         "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"},
        {"mylib::swiglu(Tensor x,\n\tTensor gate, *, float beta=1.0) -> Tensor",
         "mylib::swiglu(Tensor x, Tensor gate, *, float beta=1.0) -> Tensor"},
        {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
         NULL},
        {"f(int[2]stride=[1,2], int[]? x=None,str s=\"a  b\") -> (Tensor)",
         "f(int[2] stride=[1, 2], int[]? x=None, str s=\"a  b\") -> (Tensor)"},
        {"split(Tensor(a) self, int n) -> Tensor(a)[]", NULL},
        {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", NULL},
        {"convolution.2(Tensor input) -> Tensor", NULL},
        {"item(Tensor self) -> Scalar", NULL},
        {"empty(int[] size, *, ScalarType? dtype=None, Device? device=None) -> Tensor", NULL},
        {"f(ScalarType t=bf16, float p=inf, Scalar q=-nan, Scalar r=True) -> ()", NULL},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        tni_schema *s = parse(cases[i][0]);
        assert_string_equal(s->text, cases[i][1] ? cases[i][1] : cases[i][0]);
        tni_schema *again = parse(s->text);
        assert_string_equal(again->text, s->text);
        tni_schema_destroy(again);
        tni_schema_destroy(s);
    }
}

static void every_kernel_schema_is_normal_and_its_hash_is_its_own(void **state) {
    uint64_t hashes[256];
    int n = 0;
#define X(name_, hash_, small, kind, text_) \
    { \
        tni_schema *s = parse(text_); \
        assert_string_equal(s->text, text_); \
        assert_string_equal(s->name, #name_); \
        for (int i = 0; i < n; i++) \
            assert_true(hashes[i] != hash_); \
        hashes[n++] = hash_; \
        tni_schema_destroy(s); \
    }
    TN_KERNEL_TABLE(X)
#undef X
}

static void arguments_and_returns_are_described(void **state) {
    tni_schema *s = parse("ns::f.o(Tensor(a!) x, Tensor? y, Tensor[] l, int[3]? k=None, *, "
                          "Device d) -> (Tensor(a!) first, Tensor[])");
    assert_string_equal(s->name, "ns::f.o");
    assert_int_equal(s->n_args, 5);
    assert_int_equal(s->n_rets, 2);
    assert_string_equal(s->args[0].name, "x");
    assert_int_equal(s->args[0].alias, 'a');
    assert_true(s->args[0].is_written);
    assert_true(s->args[1].optional && !s->args[1].has_default && !s->args[1].alias);
    assert_int_equal(s->args[2].type, TNI_TYPE_TENSORS);
    assert_int_equal(s->args[3].type, TNI_TYPE_INTS);
    assert_int_equal(s->args[3].n_ints, 3);
    assert_true(s->args[3].optional && s->args[3].has_default && !s->args[3].keyword_only);
    assert_true(s->args[4].keyword_only && s->args[4].type == TNI_TYPE_DEVICE);
    assert_string_equal(s->rets[0].name, "first");
    assert_string_equal(s->rets[1].name, "");
    assert_int_equal(s->rets[1].type, TNI_TYPE_TENSORS);
    tni_schema_destroy(s);
}

static void defaults_become_cells(void **state) {
    tni_schema *s = parse(
        "f(int i=-9223372036854775808, float f=3, float g=1e-5, bool b=True, int[2] r=7, "
        "int[] l=[1, -2], str s='none', Scalar a=2, Scalar c=.5, ScalarType t=i64, float n=-inf, "
        "Tensor? x=None, int[] e=[]) -> ()");
    const tni_arg *a = s->args;
    assert_true(a[0].fallback.tag == TN_CELL_I64 && a[0].fallback.v.i64 == INT64_MIN);
    assert_true(a[1].fallback.tag == TN_CELL_F64 && a[1].fallback.v.f64 == 3.0);
    assert_true(a[2].fallback.v.f64 == 1e-5);
    assert_true(a[3].fallback.tag == TN_CELL_BOOL && a[3].fallback.v.boolean == 1);
    assert_true(a[4].fallback.tag == TN_CELL_INTS && a[4].fallback.n == 2);
    assert_true(a[4].fallback.v.ints[0] == 7 && a[4].fallback.v.ints[1] == 7);
    assert_true(a[5].fallback.n == 2 && a[5].fallback.v.ints[1] == -2);
    assert_string_equal(a[6].fallback.v.string, "none");
    assert_int_equal(a[6].fallback.n, 0);
    assert_true(a[7].fallback.tag == TN_CELL_I64 && a[7].fallback.v.i64 == 2);
    assert_true(a[8].fallback.tag == TN_CELL_F64 && a[8].fallback.v.f64 == 0.5);
    assert_true(a[9].fallback.tag == TN_CELL_I64 && a[9].fallback.v.i64 == TN_I64);
    assert_true(a[10].fallback.v.f64 == -INFINITY);
    assert_true(a[11].fallback.tag == TN_CELL_NONE && a[11].has_default);
    assert_true(a[12].fallback.tag == TN_CELL_INTS && a[12].fallback.n == 0);
    tni_schema_destroy(s);
}

/* The caret is given as the column in the text. */
static const struct {
    const char *text, *problem;
    int caret;
} mistakes[] = {
    {"", "expected an operator's name, found the end", 0},
    {"3f() -> ()", "expected an operator's name, found '3f'", 0},
    {"f", "expected '(', found the end", 1},
    {"f.(Tensor x) -> Tensor", "expected an overload's name, found '('", 2},
    {"ns::(Tensor x) -> Tensor", "expected an operator's name, found '('", 4},
    {"ns:f() -> ()", "expected '(', found ':'", 2},
    {"f(", "expected a type, found the end", 2},
    {"f(Tensr x) -> Tensor", "expected a type, found 'Tensr'", 2},
    {"f(tensor x) -> Tensor", "expected a type, found 'tensor'", 2},
    {"f(Tensor) -> Tensor", "expected an argument's name, found ')'", 8},
    {"f(Tensor x", "expected ',' or ')', found the end", 10},
    {"f(Tensor x,) -> Tensor", "expected a type, found ')'", 11},
    {"f(Tensor x Tensor y) -> Tensor", "expected ',' or ')', found 'Tensor'", 11},
    {"f(Tensor x)) -> Tensor", "expected '->', found ')'", 11},
    {"f(Tensor x)", "expected '->', found the end", 11},
    {"f(Tensor x) - Tensor", "expected '->', found '-'", 12},
    {"f(Tensor x) ->", "expected a type, found the end", 14},
    {"f(Tensor x) -> Tensor y", "expected the end, found 'y'", 22},
    {"f(Tensor x) -> Tensor;", "expected the end, found ';'", 21},
    {"f(Tensor x) -> (Tensor", "expected ',' or ')', found the end", 22},
    {"f(Tensor x) -> (Tensor,)", "expected a type, found ')'", 23},
    {"f(Tensor x) -> int[]", "int[] and str cannot be returned", 15},
    {"f(Tensor x) -> Tensor(a)", "no argument is Tensor(a)", 15},
    {"f(Tensor(a) x) -> Tensor(a!)", "no argument is Tensor(a!)", 18},
    {"f() -> (int, int, int, int, int)", "an operator has at most 4 returns", 28},
    {"f(int a, int b, int a) -> ()", "two arguments are named 'a'", 20},
    {"f(int a=1, int b) -> ()", "an argument without a default follows one with a default", 15},
    {"f(*) -> ()", "no argument follows the '*'", 2},
    {"f(int a, *, *, int b) -> ()", "a second '*'", 12},
    {"f(Tensor(aa) x) -> ()", "expected an alias set, one of a to z, found 'aa'", 9},
    {"f(Tensor(a x) -> ()", "expected ')', found 'x'", 11},
    {"f(int(a) x) -> ()", "only a Tensor can be aliased or written", 6},
    {"f(Tensor?? x) -> ()", "a type is optional or not: one '?'", 9},
    {"f(Tensor[]? x) -> ()", "Tensor[] cannot be optional; an empty list says nothing", 10},
    {"f(float[] x) -> ()", "there are lists of Tensor, Tensor? and int only", 7},
    {"f(int?[] x) -> ()", "there are lists of Tensor, Tensor? and int only", 6},
    {"f(int[0] x) -> ()", "N of int[N] must be from 1 to 16", 6},
    {"f(int[99999999999] x) -> ()", "N of int[N] must be from 1 to 16", 6},
    {"f(int[2 x) -> ()", "expected ']', found 'x'", 8},
    {"f(int x=) -> ()", "expected a number, found ')'", 8},
    {"f(int x=1.5) -> ()", "expected an int, found a float", 8},
    {"f(int x=9223372036854775808) -> ()", "the number does not fit 64 bits", 8},
    {"f(int x=-9223372036854775809) -> ()", "the number does not fit 64 bits", 8},
    {"f(int x=1y) -> ()", "a number is followed by 'y'", 8},
    {"f(float x=1e) -> ()", "a number ends in the middle", 10},
    {"f(float x=1e999) -> ()", "the number is too large", 10},
    {"f(float x=1.2.3) -> ()", "a number is followed by '.'", 10},
    {"f(float x=nanx) -> ()", "a number is followed by 'x'", 10},
    {"f(float x=True) -> ()", "expected a number, found 'True'", 10},
    {"f(int x=None) -> ()", "None is a default of optional types only; add '?' to the type", 8},
    {"f(Tensor? x=0) -> ()", "a Tensor or Device has no default but None", 12},
    {"f(bool x=1) -> ()", "expected True or False, found '1'", 9},
    {"f(int[] x=1) -> ()", "expected '[', found '1'", 10},
    {"f(int[] x=[1, 2) -> ()", "expected ',', found ')'", 15},
    {"f(int[] x=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]) -> ()", "a default has at most 16 ints", 43},
    {"f(str x=none) -> ()", "expected a string, found 'none'", 8},
    {"f(str x='none) -> ()", "a string without its end", 8},
    {"f(str x='a\nb') -> ()", "a control character in a string", 10},
    {"f(ScalarType x=float32) -> ()", "expected a ScalarType such as f32, found 'float32'", 15},
    {"f(\xff\xff x) -> ()", "expected a type, found byte 0xff", 2},
    {"f(int a,int b,int c,int d,int e,int f,int g,int h,int i,int j,int k,int l,int m,int n,int o,"
     "int p,int q) -> ()",
     "an operator has at most 16 arguments", 98},
};

static void mistakes_are_shown_with_a_caret_under_the_place(void **state) {
    for (size_t i = 0; i < N_OF(mistakes); i++) {
        const char *text = mistakes[i].text;
        tni_schema *untouched = (tni_schema *)&untouched;
        assert_int_equal(tni_schema_parse(text, &untouched), TN_ERR_INVALID_ARGUMENT);
        assert_ptr_equal(untouched, &untouched);
        char expected[1024], shown[256];
        int from = mistakes[i].caret > 72 ? mistakes[i].caret - 72 : 0;
        snprintf(shown, sizeof shown, "%s%s", from ? "..." : "", text + from);
        for (char *c = shown; *c; c++)
            *c = *c == '\n' ? ' ' : (unsigned char)*c > 0x7e ? '?' : *c;
        int column = (int)strlen("schema: : ") + (int)strlen(mistakes[i].problem) +
                     mistakes[i].caret - from + (from ? 3 : 0);
        snprintf(expected, sizeof expected, "schema: %s: %s\n%*s^", mistakes[i].problem, shown,
                 column, "");
        assert_error(TN_ERR_INVALID_ARGUMENT, expected);
    }
}

static void long_and_missing_texts_are_refused(void **state) {
    char text[TNI_MAX_SCHEMA_BYTES + 2];
    memset(text, ' ', sizeof text);
    memcpy(text, "f() -> ()", 9);
    text[sizeof text - 1] = 0;
    tni_schema *s = NULL;
    assert_int_equal(tni_schema_parse(text, &s), TN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(tn_error_message(), "schema: longer than 2048 bytes: f() -> ()"));
    tn_error_clear();
    text[sizeof text - 2] = 0;
    tni_schema_destroy(parse(text));
    assert_int_equal(tni_schema_parse(NULL, &s), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "schema: the text is NULL");
}

static void nothing_behind_a_truncated_text_is_read(void **state) {
    const char *whole = "ns::f.o(Tensor(a!)? x, int[2]? k=[1, -2], *, str s='x', float f=-1.5e-3, "
                        "bool b=True, ScalarType t=f16) -> (Tensor(a!) y, Tensor[] z)";
    for (size_t n = 0; n < strlen(whole); n++) {
        char *exact = malloc(n + 1); /* so that sanitizers see a read past its end */
        memcpy(exact, whole, n);
        exact[n] = 0;
        tni_schema *s = NULL;
        assert_int_equal(tni_schema_parse(exact, &s), TN_ERR_INVALID_ARGUMENT);
        tn_error_clear();
        free(exact);
    }
    tni_schema_destroy(parse(whole));
}

static void a_schema_without_memory_is_an_error(void **state) {
    tni_schema *s = NULL;
    tni_alloc_fail_at(1);
    assert_int_equal(tni_schema_parse("f() -> ()", &s), TN_ERR_OUT_OF_MEMORY);
    tni_alloc_fail_at(0);
    assert_null(s);
}

static void cells_are_checked_against_their_argument(void **state) {
    tni_schema *s = parse("mylib::f(Tensor x, int[] dim, int[2] k, float f, Scalar a, Tensor? o, "
                          "Tensor[] l, Tensor?[] h, ScalarType t, Device d, str s, bool b, "
                          "int i=0) -> ()");
    tni_tensor_head t = {1, 0};
    void *holes[] = {&t, NULL};
    int64_t ints[] = {1};
    tn_cell none = {.tag = TN_CELL_NONE},
            list = {.tag = TN_CELL_TENSORS, .n = 2, .v.pointer = holes};
    tn_cell is = {.tag = TN_CELL_INTS, .n = 1, .v.ints = ints};
    tn_cell null_tensor = {.tag = TN_CELL_TENSOR}, yes = {.tag = TN_CELL_BOOL, .v.boolean = 1};
    tn_cell null_ints = {.tag = TN_CELL_INTS, .n = 1}, empty = {.tag = TN_CELL_TENSORS};
    tn_cell string = {.tag = TN_CELL_STRING, .v.string = ""}, odd = {.tag = 77};
    const struct {
        uint32_t arg;
        tn_cell cell;
        const char *problem; /* NULL: it fits */
    } cases[] = {
        {0, tensor_cell(&t), NULL},
        {0, none, "argument 1 'x': expected Tensor, got nothing"},
        {0, null_tensor,
         "argument 1 'x': the tensor is NULL: the call that should have made it failed"},
        {0, odd, "argument 1 'x': expected Tensor, got a cell of unknown tag"},
        {1, is, NULL},
        {1, float_cell(1), "argument 2 'dim': expected int[], got float"},
        {1, int_cell(1), "argument 2 'dim': expected int[], got int"},
        {1, null_ints, "argument 2 'dim': the list is NULL"},
        {2, int_cell(1), NULL},
        {2, is, NULL},
        {2, yes, "argument 3 'k': expected int[2], got bool"},
        {3, int_cell(1), NULL},
        {3, float_cell(1), NULL},
        {3, yes, "argument 4 'f': expected float, got bool"},
        {4, int_cell(1), NULL},
        {4, float_cell(1), NULL},
        {4, yes, NULL},
        {4, string, "argument 5 'a': expected Scalar, got str"},
        {5, none, NULL},
        {5, list, "argument 6 'o': expected Tensor?, got Tensor[]"},
        {6, empty, NULL},
        {6, list,
         "argument 7 'l': a tensor of the list is NULL: the call that should have made it failed"},
        {6, tensor_cell(&t), "argument 7 'l': expected Tensor[], got Tensor"},
        {7, list, NULL},
        {7, none, "argument 8 'h': expected Tensor?[], got nothing"},
        {8, int_cell(TN_BOOL), NULL},
        {8, int_cell(TN_U64), NULL},
        {8, int_cell(13), "argument 9 't': no such ScalarType"}, /* reserved, and not there yet */
        {8, int_cell(TN_DTYPE_END), "argument 9 't': no such ScalarType"},
        {8, int_cell(-1), "argument 9 't': no such ScalarType"},
        {9, int_cell((int64_t)64 << 32), NULL},
        {9, int_cell((int64_t)65 << 32),
         "argument 10 'd': no such Device; pack it with tn_device_pack"},
        {9, int_cell(-1), "argument 10 'd': no such Device; pack it with tn_device_pack"},
        {10, string, NULL},
        {10, is, "argument 11 's': expected str, got int[]"},
        {11, int_cell(1), "argument 12 'b': expected bool, got int"},
        {12, none, NULL},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        tn_status status = tni_schema_check(s, cases[i].arg, &cases[i].cell);
        if (cases[i].problem) {
            char message[256];
            snprintf(message, sizeof message, "mylib::f: %s", cases[i].problem);
            assert_error(TN_ERR_INVALID_ARGUMENT, message);
        } else {
            assert_int_equal(status, TN_OK);
            assert_int_equal(tn_error_status(), TN_OK);
        }
    }
    tni_schema_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(schemas_are_printed_with_normal_spacing),
        TEST(every_kernel_schema_is_normal_and_its_hash_is_its_own),
        TEST(arguments_and_returns_are_described),
        TEST(defaults_become_cells),
        TEST(mistakes_are_shown_with_a_caret_under_the_place),
        TEST(long_and_missing_texts_are_refused),
        TEST(nothing_behind_a_truncated_text_is_read),
        TEST(a_schema_without_memory_is_an_error),
        TEST(cells_are_checked_against_their_argument),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
