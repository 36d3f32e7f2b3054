/* Device memory is one piece; NVRTC is found at run time, as the plugin finds it. */
#include "tests/cuda/ptx/ptx_rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory and launches ----------------------------------------------------------------- */

rig *rig_open(const char *text, uint64_t bytes) {
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    assert_non_null(text);
    r->module = ptx_module_create(text, r->error, sizeof r->error);
    if (!r->module)
        fail_msg("%s", r->error);
    r->bytes = (bytes + 4095) / 4096 * 4096;
    r->memory = aligned_alloc(4096, r->bytes);
    assert_non_null(r->memory);
    memset(r->memory, 0xa5, r->bytes);
    return r;
}

void rig_close(rig *r) {
    ptx_module_destroy(r->module);
    free(r->memory);
    free(r);
}

uint64_t rig_take(rig *r, uint64_t bytes) {
    uint64_t at = r->used;
    r->used += (bytes + 255) / 256 * 256;
    assert_true(r->used <= r->bytes);
    return RIG_BASE + at;
}

void *rig_host(rig *r, uint64_t address) {
    return r->memory + (address - RIG_BASE);
}

/* What was taken, to the byte pages end at. */
static bool find(void *user, uint64_t address, ptx_range *out) {
    rig *r = user;
    *out = (ptx_range){RIG_BASE, RIG_BASE + r->used, r->memory};
    return address >= out->begin && address < out->end;
}

ptx_result rig_run(rig *r, const char *kernel, uint32_t blocks, uint32_t threads,
                   uint32_t dynamic_shared, int n, ...) {
    uint64_t parameters[16] = {0};
    va_list args;
    va_start(args, n);
    for (int k = 0; k < n; k++)
        parameters[k] = va_arg(args, uint64_t);
    va_end(args);
    ptx_launch launch = {.kernel = ptx_module_kernel(r->module, kernel),
                         .parameters = parameters,
                         .grid = {blocks, 1, 1},
                         .block = {threads, 1, 1},
                         .dynamic_shared_bytes = dynamic_shared,
                         .find = find,
                         .user = r,
                         .out_executed = &r->executed};
    assert_non_null(launch.kernel);
    assert_true(ptx_kernel_facts(launch.kernel).parameter_bytes <= sizeof parameters);
    r->error[0] = 0;
    ptx_result result = ptx_run(&launch, r->error, sizeof r->error);
    if (result != PTX_DONE)
        print_message("%s\n", r->error);
    return result;
}

/* ---- files ------------------------------------------------------------------------------- */

char *rig_file(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s",
             getenv("PTX_TEST_FILES") ? getenv("PTX_TEST_FILES") : "tests/cuda/ptx", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    rewind(file);
    char *text = calloc((size_t)bytes + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    fclose(file);
    return text;
}

/* ---- NVRTC ------------------------------------------------------------------------------- */

typedef void *program;
static struct {
    void *library;
    int (*create)(program *, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(program, int, const char *const *);
    int (*log_size)(program, size_t *);
    int (*log)(program, char *);
    int (*ptx_size)(program, size_t *);
    int (*ptx)(program, char *);
    int (*destroy)(program *);
} nvrtc;

static bool load(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    static const char *const symbols[] = {
        "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
        "nvrtcGetPTXSize",    "nvrtcGetPTX",         "nvrtcDestroyProgram"};
    for (size_t k = 0; k < sizeof names / sizeof *names && !nvrtc.library; k++)
        nvrtc.library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
    void *found[sizeof symbols / sizeof *symbols] = {NULL};
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols && nvrtc.library; k++) {
        found[k] = dlsym(nvrtc.library, symbols[k]);
        if (!found[k])
            return false;
    }
    memcpy((void *)&nvrtc.create, found, sizeof found);
    return nvrtc.library != NULL;
}

const char *rig_no_nvrtc(void) {
    return "skipped: there is no libnvrtc.so.13, libnvrtc.so.12 or "
           "/usr/local/cuda/lib64/libnvrtc.so";
}

char *rig_compile(const char *name, const char *arch, const char *option) {
    if (!nvrtc.library && !load())
        return NULL;
    char *text = rig_file(name);
    char target[64];
    snprintf(target, sizeof target, "--gpu-architecture=compute_%s", arch);
    const char *options[] = {target, option};
    program p = NULL;
    assert_int_equal(nvrtc.create(&p, text, name, 0, NULL, NULL), 0);
    int status = nvrtc.compile(p, option ? 2 : 1, options);
    size_t bytes = 0;
    if (status) {
        assert_int_equal(nvrtc.log_size(p, &bytes), 0);
        char *log = calloc(bytes + 1, 1);
        assert_non_null(log);
        nvrtc.log(p, log);
        fail_msg("NVRTC: %s", log);
    }
    assert_int_equal(nvrtc.ptx_size(p, &bytes), 0);
    char *ptx = calloc(bytes + 1, 1);
    assert_non_null(ptx);
    assert_int_equal(nvrtc.ptx(p, ptx), 0);
    nvrtc.destroy(&p);
    free(text);
    return ptx;
}

/* ---- numbers ----------------------------------------------------------------------------- */

static uint64_t next(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t rig_bits(uint64_t *state) {
    static const uint64_t edges[] = {
        0,
        1,
        2,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        255,
        256,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        0x100000000,
        INT64_MAX,
        UINT64_C(1) << 63,
        UINT64_MAX,
        0x3f800000,
        0xbf800000,
        0x3f000000,
        0x7f800000,
        0xff800000,
        0x7fc00000,
        0x7f7fffff,
        0x00800000,
        0x007fffff,
        0x4f000000,
        0x4effffff,
        0xcf000000,
        0x5f000000,
        0x4b000000,
        0x3effffff,
        0x3fc00000,
        0x40200000,
        0x477fe000,
        0x477ff000,
        0x33000000,
        0x33000001,
        0x38800000,
        0x387fffff,
        0x3c00,
        0x7c00,
        0xfc00,
        0x7e00,
        0x03ff,
        0x0400,
        0x7bff,
        0x3ff0000000000000,
        0xbff0000000000000,
        0x3fe0000000000000,
        0x7ff0000000000000,
        0xfff0000000000000,
        0x7ff8000000000000,
        0x7fefffffffffffff,
        0x0010000000000000,
        0x000fffffffffffff,
        0x41e0000000000000,
        0x41dfffffffc00000,
        0x43e0000000000000,
        0xc3e0000000000000,
        0x43f0000000000000,
        0x47efffffefffffff,
        0x36a0000000000000,
        0x3810000000000000,
        0x40effc0000000000,
        0x3ff8000000000000,
        0x4004000000000000,
    };
    uint64_t x = next(state), choice = next(state);
    switch (choice % 8) {
    case 0:
    case 1:
        return edges[x % (sizeof edges / sizeof *edges)];
    case 2:
        return edges[x % (sizeof edges / sizeof *edges)] | x << 32;
    case 3:
        return x >> (choice >> 8) % 64;
    case 4: { /* a float of moderate size, as f32 and in the upper half as f64 */
        uint32_t f = (uint32_t)(0x3f800000 + ((choice >> 8) % 64 - 32) * 0x00800000) |
                     (uint32_t)(x & 0x807fffff);
        return f |
               (UINT64_C(0x3ff00000) + (((choice >> 16) % 64 - 32) << 20) + (x >> 40 & 0x800fffff))
                   << 32;
    }
    default:
        return x;
    }
}

/* ---- a kernel of one instruction --------------------------------------------------------- */

void rig_kernel(char *out, size_t room, const char *name, const char *operands) {
    static const char *const types[9] = {NULL, NULL, "u16", NULL, "u32", NULL, NULL, NULL, "u64"};
    char lists[256] = "", body[1024] = "", after[1024] = "";
    bool result = true;
    int n = 0, arrays = 0;
    size_t b = 0, a = 0, l = 0;
    for (const char *at = operands; *at; at++) {
        if (*at == '/') {
            result = false;
            continue;
        }
        int bytes = *at == 'p' ? 4 : *at - '0';
        const char *type = types[bytes];
        char reg = (char)(*at == 'p' ? 'p' : bytes == 2 ? 'h' : bytes == 4 ? 'r' : 'd');
        l += (size_t)snprintf(lists + l, sizeof lists - l,
                              n ? result ? "|%%%c%d" : ", %%%c%d" : "%%%c%d", reg, n);
        b += (size_t)snprintf(body + b, sizeof body - b,
                              "ld.param.u64 %%d10, [k_%d];\nadd.s64 %%d10, %%d10, "
                              "%%d9;\nld.global.%s %%%c%d, [%%d10];\n",
                              arrays, type, *at == 'p' ? 'r' : reg, n);
        if (*at == 'p')
            b += (size_t)snprintf(body + b, sizeof body - b,
                                  "and.b32 %%r%d, %%r%d, 1;\nsetp.ne.u32 %%p%d, %%r%d, 0;\n", n, n,
                                  n, n);
        if (result && *at == 'p')
            a += (size_t)snprintf(after + a, sizeof after - a, "selp.u32 %%r%d, 1, 0, %%p%d;\n", n,
                                  n);
        if (result)
            a += (size_t)snprintf(after + a, sizeof after - a,
                                  "ld.param.u64 %%d10, [k_%d];\nadd.s64 %%d10, %%d10, "
                                  "%%d9;\nst.global.%s [%%d10], %%%c%d;\n",
                                  arrays, type, *at == 'p' ? 'r' : reg, n);
        n++;
        arrays++;
    }
    snprintf(
        out, room,
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2, .param .u64 k_3, "
        ".param .u64 k_4,\n"
        ".param .u64 k_5, .param .u32 odd)\n{\n"
        ".reg .pred %%p<8>, %%q;\n.reg .b16 %%h<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%d<16>;\n"
        "mov.u32 %%r8, %%ctaid.x;\nmov.u32 %%r9, %%ntid.x;\nmov.u32 %%r10, %%tid.x;\n"
        "mad.lo.u32 %%r8, %%r8, %%r9, %%r10;\nmul.wide.u32 %%d9, %%r8, 8;\n"
        "%sld.param.u32 %%r11, [odd];\nand.b32 %%r10, %%r10, %%r11;\nsetp.eq.u32 %%q, %%r10, 0;\n"
        "@%%q %s %s;\n%sret;\n}\n",
        body, name, lists, after);
}
