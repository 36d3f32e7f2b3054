/* See nvrtc_double.h. */
#pragma GCC visibility push(default)
#include <nvrtc.h>
#pragma GCC visibility pop

#include "tests/cuda/double/cubin.h"
#include "tests/cuda/double/nvrtc_double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* X(function, parameters, arguments): those that return an nvrtcResult and are passed on. */
#define PASSED_ON(X) \
    X(nvrtcVersion, (int *major, int *minor), (major, minor)) \
    X(nvrtcGetNumSupportedArchs, (int *n), (n)) \
    X(nvrtcGetSupportedArchs, (int *out), (out)) \
    X(nvrtcCreateProgram, \
      (nvrtcProgram * out, const char *source, const char *name, int n, \
       const char *const *headers, const char *const *included), \
      (out, source, name, n, headers, included)) \
    X(nvrtcGetPTXSize, (nvrtcProgram program, size_t * out), (program, out)) \
    X(nvrtcGetPTX, (nvrtcProgram program, char *out), (program, out)) \
    X(nvrtcGetLTOIRSize, (nvrtcProgram program, size_t * out), (program, out)) \
    X(nvrtcGetLTOIR, (nvrtcProgram program, char *out), (program, out)) \
    X(nvrtcGetOptiXIRSize, (nvrtcProgram program, size_t * out), (program, out)) \
    X(nvrtcGetOptiXIR, (nvrtcProgram program, char *out), (program, out)) \
    X(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * out), (program, out)) \
    X(nvrtcGetProgramLog, (nvrtcProgram program, char *out), (program, out)) \
    X(nvrtcAddNameExpression, (nvrtcProgram program, const char *name), (program, name)) \
    X(nvrtcGetLoweredName, (nvrtcProgram program, const char *name, const char **out), \
      (program, name, out))

#define FUNCTIONS(X) \
    PASSED_ON(X) \
    X(nvrtcDestroyProgram, , ) \
    X(nvrtcCompileProgram, , ) \
    X(nvrtcGetCUBINSize, , ) \
    X(nvrtcGetCUBIN, , ) \
    X(nvrtcGetErrorString, , )

typedef enum function {
#define FUNCTION_NUMBER(name, parameters, arguments) CALL_##name,
    FUNCTIONS(FUNCTION_NUMBER)
#undef FUNCTION_NUMBER
        N_FUNCTIONS
} function;

static const char *const names[] = {
#define FUNCTION_TEXT(name, parameters, arguments) #name,
    FUNCTIONS(FUNCTION_TEXT)
#undef FUNCTION_TEXT
};

enum { MAX_RULES = 8, MAX_TEXT = 512, MAX_OPTIONS = 64, MAX_PROGRAMS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool begun;
    void *library;
    void *functions[N_FUNCTIONS];
    uint64_t calls[N_FUNCTIONS];
    struct {
        function function;
        uint64_t at;
        bool always;
        nvrtcResult error;
    } rules[MAX_RULES];
    int n_rules;
    char path[MAX_TEXT], report[MAX_TEXT];
    nvrtcProgram of_code[MAX_PROGRAMS]; /* compiled for a device itself; free places are NULL */
} state;

/* ---- words ------------------------------------------------------------------------------- */

static bool hear_fail(const char *value) {
    char name[64], rest[32] = "";
    unsigned long long at;
    int error = NVRTC_ERROR_INTERNAL_ERROR;
    if (!*value) {
        state.n_rules = 0;
        return true;
    }
    if (state.n_rules == MAX_RULES || sscanf(value, "%63[^:]:%llu%31s", name, &at, rest) < 2)
        return false;
    bool always = rest[0] == '+';
    const char *number = rest + always;
    if (*number && sscanf(number, ":%d", &error) != 1)
        return false;
    for (int f = 0; f < N_FUNCTIONS; f++)
        if (strcmp(names[f], name) == 0) {
            state.rules[state.n_rules].function = (function)f;
            state.rules[state.n_rules].at = at;
            state.rules[state.n_rules].always = always;
            state.rules[state.n_rules++].error = (nvrtcResult)error;
            return true;
        }
    return false;
}

static bool hear_path(char *out, const char *value) {
    return snprintf(out, MAX_TEXT, "%s", value) < MAX_TEXT;
}

static bool hear_words(const char *words) {
    for (const char *at = words + strspn(words, " ;"); *at; at += strspn(at, " ;")) {
        char word[MAX_TEXT] = "";
        size_t n = strcspn(at, " ;");
        if (n < sizeof(word))
            memcpy(word, at, n);
        if (!(strncmp(word, "fail=", 5) == 0 && hear_fail(word + 5)) &&
            !(strncmp(word, "real=", 5) == 0 && hear_path(state.path, word + 5)) &&
            !(strncmp(word, "report=", 7) == 0 && hear_path(state.report, word + 7))) {
            fprintf(stderr, "nvrtc double: not understood: %.*s\n", (int)n, at);
            return false;
        }
        at += n;
    }
    return true;
}

/* ---- the real one ------------------------------------------------------------------------ */

static void *open_real(void) {
    static const char *const places[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                         TOOLKIT "/libnvrtc.so"};
    if (state.path[0])
        return dlopen(state.path, RTLD_NOW | RTLD_LOCAL);
    void *library = NULL;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !library; i++)
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void begin(void) {
    if (state.begun)
        return;
    state.begun = true;
    const char *words = getenv("TENON_TEST_NVRTC");
    if (words && !hear_words(words))
        return;
    state.library = open_real();
    if (!state.library) {
        fprintf(stderr, "nvrtc double: the real one: %s\n", dlerror());
        return;
    }
    for (int f = 0; f < N_FUNCTIONS; f++)
        state.functions[f] = dlsym(state.library, names[f]);
}

/* What the call is answered with before the real one is asked. */
static nvrtcResult enter(function f) {
    pthread_mutex_lock(&lock);
    begin();
    uint64_t n = ++state.calls[f];
    nvrtcResult error = state.functions[f] ? NVRTC_SUCCESS : NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    for (int i = 0; i < state.n_rules; i++)
        if (state.rules[i].function == f &&
            (state.rules[i].always ? n >= state.rules[i].at : n == state.rules[i].at))
            error = state.rules[i].error;
    pthread_mutex_unlock(&lock);
    return error;
}

__attribute__((destructor)) static void end(void) {
    FILE *file = state.report[0] ? fopen(state.report, "w") : NULL;
    for (int f = 0; f < N_FUNCTIONS && file; f++)
        if (state.calls[f])
            fprintf(file, "calls %s %llu\n", names[f], (unsigned long long)state.calls[f]);
    if (file)
        fclose(file);
}

/* ---- calls ------------------------------------------------------------------------------- */

#define PASS_ON(name, parameters, arguments) \
    nvrtcResult name parameters { \
        nvrtcResult error = enter(CALL_##name); \
        nvrtcResult(*real) parameters = (nvrtcResult(*) parameters)state.functions[CALL_##name]; \
        return error ? error : real arguments; \
    }
PASSED_ON(PASS_ON)
#undef PASS_ON

const char *nvrtcGetErrorString(nvrtcResult result) {
    if (enter(CALL_nvrtcGetErrorString))
        return "an error of the double of NVRTC";
    return ((const char *(*)(nvrtcResult))state.functions[CALL_nvrtcGetErrorString])(result);
}

/* Puts `to` where `from` is among the programs of code; false where there is none. */
static bool exchange_program(nvrtcProgram from, nvrtcProgram to) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_PROGRAMS && !found; i++) {
        found = state.of_code[i] == from;
        if (found)
            state.of_code[i] = to;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

typedef nvrtcResult compile_function(nvrtcProgram program, int n, const char *const *options);

/* The driver's double runs PTX: nobody waits for ptxas, nor for most of what optimises, which were more
 * than half of the time of all of CUDA's tests. An option that an older one does not know is left away. */
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options) {
    const char *given[MAX_OPTIONS];
    char virtual[64];
    bool is_code = false;
    nvrtcResult error = enter(CALL_nvrtcCompileProgram);
    if (error || n < 0 || n >= MAX_OPTIONS)
        return error ? error : NVRTC_ERROR_INVALID_OPTION;
    for (int i = 0; i < n; i++) {
        const char *code = strstr(options[i], "=sm_");
        given[i] = options[i];
        if (!code || (strncmp(options[i], "-arch", 5) != 0 &&
                      strncmp(options[i], "--gpu-architecture", 18) != 0))
            continue;
        snprintf(virtual, sizeof(virtual), "-arch=compute_%s", code + 4);
        given[i] = virtual;
        is_code = true;
    }
    given[n] = "--Ofast-compile=min";
    compile_function *compile = (compile_function *)state.functions[CALL_nvrtcCompileProgram];
    error = compile(program, n + 1, given);
    if (error == NVRTC_ERROR_INVALID_OPTION)
        error = compile(program, n, given);
    exchange_program(program, NULL);
    if (!error && is_code && !exchange_program(NULL, program))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    return error;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
    nvrtcResult error = enter(CALL_nvrtcDestroyProgram);
    if (error)
        return error;
    if (program && *program)
        exchange_program(*program, NULL);
    return ((nvrtcResult(*)(nvrtcProgram *))state.functions[CALL_nvrtcDestroyProgram])(program);
}

typedef nvrtcResult size_function(nvrtcProgram program, size_t *out);
typedef nvrtcResult text_function(nvrtcProgram program, char *out);

/* The PTX in the place of the cubin that was asked for; NULL with success where none was. */
static nvrtcResult read_ptx(nvrtcProgram program, char **out) {
    size_t n = 0;
    *out = NULL;
    if (!exchange_program(program, program))
        return NVRTC_SUCCESS;
    nvrtcResult error = ((size_function *)state.functions[CALL_nvrtcGetPTXSize])(program, &n);
    if (error)
        return error;
    *out = malloc(n);
    if (!*out)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    return ((text_function *)state.functions[CALL_nvrtcGetPTX])(program, *out);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *out) {
    char *ptx = NULL;
    nvrtcResult error = enter(CALL_nvrtcGetCUBINSize);
    if (!error && !out)
        error = NVRTC_ERROR_INVALID_INPUT;
    if (!error)
        error = read_ptx(program, &ptx);
    if (!error)
        *out = ptx ? cubin_bytes(ptx) : 0;
    free(ptx);
    return error;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out) {
    char *ptx = NULL;
    nvrtcResult error = enter(CALL_nvrtcGetCUBIN);
    if (!error && !out)
        error = NVRTC_ERROR_INVALID_INPUT;
    if (!error)
        error = read_ptx(program, &ptx);
    if (!error && !ptx)
        error = NVRTC_ERROR_INVALID_PROGRAM;
    if (!error)
        cubin_write(ptx, out);
    free(ptx);
    return error;
}

/* ---- for tests --------------------------------------------------------------------------- */

bool double_nvrtc_configure(const char *words) {
    pthread_mutex_lock(&lock);
    begin();
    bool good = hear_words(words);
    pthread_mutex_unlock(&lock);
    return good;
}

uint64_t double_nvrtc_calls(const char *name) {
    for (int f = 0; f < N_FUNCTIONS; f++)
        if (strcmp(names[f], name) == 0) {
            pthread_mutex_lock(&lock);
            uint64_t n = state.calls[f];
            pthread_mutex_unlock(&lock);
            return n;
        }
    fprintf(stderr, "nvrtc double: there is no %s\n", name);
    abort();
}
