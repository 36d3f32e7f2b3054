/* Compiles device code with NVRTC, as the CUDA plugin does, and passes on what the compiler says. It
 * needs neither a GPU nor CUDA's headers.
 *
 * usage: nvrtc_compile LIBRARY...      the first of them that there is; 77 where there is none
 *
 * The first line it writes is NVRTC's version. Each line of the standard input is a job,
 *
 *     IMAGE FILE.cl -DT=f32 ... --gpu-architecture=sm_80 ...
 *
 * and is answered by "RESULT BYTES" and so many bytes of log. RESULT is NVRTC's, 0 where all is
 * well. IMAGE is a file for the machine code, or where its name ends so for the .ptx; "-" is none. */
#include "plugins/shared/gpu/launch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, LINE = 4096, MAX_OPTIONS = 64 };

typedef struct program program;
typedef int get_size(program *program, size_t *out);
typedef int get(program *program, char *out);

/* X(member, NVRTC's name, type) */
#define FUNCTIONS(X) \
    X(version, nvrtcVersion, int, (int *, int *)) \
    X(create, nvrtcCreateProgram, int, \
      (program **, const char *, const char *, int, const char *const *, const char *const *)) \
    X(compile, nvrtcCompileProgram, int, (program *, int, const char *const *)) \
    X(destroy, nvrtcDestroyProgram, int, (program **)) \
    X(log_bytes, nvrtcGetProgramLogSize, int, (program *, size_t *)) \
    X(log, nvrtcGetProgramLog, int, (program *, char *)) \
    X(cubin_bytes, nvrtcGetCUBINSize, int, (program *, size_t *)) \
    X(cubin, nvrtcGetCUBIN, int, (program *, char *)) \
    X(ptx_bytes, nvrtcGetPTXSize, int, (program *, size_t *)) \
    X(ptx, nvrtcGetPTX, int, (program *, char *))

static struct {
#define MEMBER(member, name, type, arguments) type(*member) arguments;
    FUNCTIONS(MEMBER)
#undef MEMBER
} nvrtc;

static void die(const char *what, const char *why) {
    fprintf(stderr, "nvrtc_compile: %s %s\n", what, why);
    exit(1);
}

static void open_library(char **paths) {
    void *library = NULL;
    for (; *paths && !library; paths++)
        library = dlopen(*paths, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("skipped: there is no NVRTC: %s\n", dlerror());
        exit(SKIPPED);
    }
#define FIND(member, name, type, arguments) \
    if (!(*(void **)&nvrtc.member = dlsym(library, #name))) \
        die("NVRTC has no", #name);
    FUNCTIONS(FIND)
#undef FIND
}

static const gpu_source *source_of(const char *name) {
    for (const gpu_source *const *s = gpu_all_sources; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    die("there is no device code", name);
    return NULL;
}

/* The macros among the options, and the source behind them. */
static char *text_of(const gpu_source *source, const char *macros) {
    uint64_t bytes = gpu_macros(macros, NULL, 0);
    char *text = malloc(bytes + strlen(source->text));
    if (!text)
        die("no memory for", source->name);
    gpu_macros(macros, text, bytes);
    strcat(text, source->text);
    return text;
}

/* What `bytes` and `content` say of the program, a NUL behind it. */
static char *ask(program *p, get_size *bytes, get *content, size_t *out_n) {
    bytes(p, out_n);
    char *data = calloc(1, *out_n + 1);
    if (!data)
        die("no memory", "");
    content(p, data);
    return data;
}

static void write_image(program *p, const char *path) {
    const char *ending = strrchr(path, '.');
    bool is_ptx = ending && strcmp(ending, ".ptx") == 0;
    size_t n;
    char *data =
        ask(p, is_ptx ? nvrtc.ptx_bytes : nvrtc.cubin_bytes, is_ptx ? nvrtc.ptx : nvrtc.cubin, &n);
    if (is_ptx)
        n = strlen(data);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n, file) != n || fclose(file) != 0)
        die("cannot write", path);
    free(data);
}

static void run(char *line) {
    const char *options[MAX_OPTIONS], *image = strtok(line, " \n"), *name = strtok(NULL, " \n");
    char macros[LINE] = "";
    int n = 0;
    if (!name)
        die("a job is", "IMAGE FILE.cl OPTION...");
    for (char *word; (word = strtok(NULL, " \n")) && n < MAX_OPTIONS;)
        if (strncmp(word, "-D", 2) == 0)
            strcat(strcat(macros, " "), word);
        else
            options[n++] = word;
    char *text = text_of(source_of(name), macros);
    program *p = NULL;
    int result = nvrtc.create(&p, text, name, 0, NULL, NULL);
    if (result != 0)
        die("NVRTC does not take", name);
    result = nvrtc.compile(p, n, options);
    size_t bytes;
    char *log = ask(p, nvrtc.log_bytes, nvrtc.log, &bytes);
    printf("%d %zu\n%s", result, strlen(log), log);
    fflush(stdout);
    if (result == 0 && strcmp(image, "-") != 0)
        write_image(p, image);
    nvrtc.destroy(&p);
    free(log);
    free(text);
}

int main(int argc, char **argv) {
    char line[LINE];
    int major = 0, minor = 0;
    open_library(argv + 1);
    nvrtc.version(&major, &minor);
    printf("%d.%d\n", major, minor);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        run(line);
    return 0;
}
