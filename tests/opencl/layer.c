/* See layer.h. A table of functions in front of the next one's, made by the macros below
 * from one line for each function. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "tests/opencl/layer.h"

#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const cl_icd_dispatch *next;
static cl_icd_dispatch table;

/* ---- what was said ----------------------------------------------------------------------- */

enum { MAX_RULES = 8, TEXT = 256 };

typedef struct rule {
    char function[64]; /* "*": every one */
    cl_int error;
    uint64_t at; /* 0: always */
    atomic_ullong n_calls;
} rule;

static struct {
    rule rules[MAX_RULES];
    int n_rules;
    cl_int lost; /* the error once it is; 0: it never is */
    uint64_t lost_at;
    bool has_alignment, no_fp64, no_devices, no_platforms;
    cl_uint alignment;
    cl_device_type type;    /* 0: as it is */
    cl_ulong memory, piece; /* 0: as they are */
    char log[TEXT];
} said;

static atomic_ullong n_calls, n_queue_calls;

static bool hear_fault(const char *value) {
    rule *r = &said.rules[said.n_rules];
    unsigned long long at = 0;
    if (said.n_rules == MAX_RULES ||
        sscanf(value, "%63[^:]:%d@%llu", r->function, &r->error, &at) < 2)
        return false;
    r->at = at;
    said.n_rules++;
    return true;
}

static bool hear_loss(const char *value) {
    unsigned long long at = 1;
    bool good = sscanf(value, "%d@%llu", &said.lost, &at) >= 1 && said.lost < 0;
    said.lost_at = at;
    return good;
}

static bool hear_hidden(const char *value) {
    bool *flag = strcmp(value, "fp64") == 0        ? &said.no_fp64
                 : strcmp(value, "devices") == 0   ? &said.no_devices
                 : strcmp(value, "platforms") == 0 ? &said.no_platforms
                                                   : NULL;
    if (flag)
        *flag = true;
    return flag != NULL;
}

static bool hear_size(const char *value) {
    unsigned long long bytes;
    if (sscanf(value, "memory:%llu", &bytes) == 1)
        said.memory = bytes;
    else if (sscanf(value, "piece:%llu", &bytes) == 1)
        said.piece = bytes;
    else
        return false;
    return true;
}

static bool hear_type(const char *value) {
    unsigned type;
    bool good = sscanf(value, "type:%u", &type) == 1;
    if (good)
        said.type = type;
    return good;
}

static bool hear(char *word) {
    char *value = strchr(word, '=');
    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(word, "fail") == 0)
        return hear_fault(value);
    if (strcmp(word, "lose") == 0)
        return hear_loss(value);
    if (strcmp(word, "hide") == 0)
        return hear_hidden(value);
    if (strcmp(word, "small") == 0)
        return hear_size(value);
    if (strcmp(word, "lie") == 0 && hear_type(value))
        return true;
    if (strcmp(word, "lie") == 0)
        return said.has_alignment = sscanf(value, "alignment:%u", &said.alignment) == 1;
    snprintf(said.log, sizeof said.log, "%s", value);
    return strcmp(word, "log") == 0;
}

EXPORT void layer_say(const char *words) {
    char copy[4 * TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", words);
    memset(&said, 0, sizeof said);
    atomic_store(&n_calls, 0);
    atomic_store(&n_queue_calls, 0);
    for (char *word; (word = strsep(&rest, ";"));)
        if (*word && !hear(word)) {
            fprintf(stderr, "TENON_TEST_CL: '%s' is not in layer.h\n", word);
            abort();
        }
}

EXPORT uint64_t layer_calls(void) {
    return atomic_load(&n_calls);
}

/* The error that a call is to fail with, or CL_SUCCESS. */
static cl_int fault(const char *function) {
    atomic_fetch_add(&n_calls, 1);
    for (int i = 0; i < said.n_rules; i++) {
        rule *r = &said.rules[i];
        if (strcmp(r->function, "*") != 0 && strcmp(r->function, function) != 0)
            continue;
        uint64_t n = atomic_fetch_add(&r->n_calls, 1) + 1;
        if (r->at == 0 || r->at == n)
            return r->error;
    }
    return CL_SUCCESS;
}

static cl_int queue_fault(const char *function) {
    cl_int error = fault(function);
    if (error != CL_SUCCESS || said.lost == 0)
        return error;
    return atomic_fetch_add(&n_queue_calls, 1) + 1 >= said.lost_at ? said.lost : CL_SUCCESS;
}

/* ---- what is alive ----------------------------------------------------------------------- */

enum { CONTEXT, QUEUE, MEMORY, PROGRAM, KERNEL, EVENT, N_KINDS };
static atomic_llong alive[N_KINDS];

EXPORT int64_t layer_alive(const char **out_which) {
    static const char *const names[N_KINDS] = {"context", "queue",  "memory",
                                               "program", "kernel", "event"};
    int64_t n = 0;
    for (int i = 0; i < N_KINDS; i++) {
        int64_t n_kind = atomic_load(&alive[i]);
        if (n_kind && out_which)
            *out_which = names[i];
        n += n_kind < 0 ? -n_kind : n_kind; /* below 0: given back too often */
    }
    return n;
}

EXPORT void layer_forget_alive(void) {
    for (int i = 0; i < N_KINDS; i++)
        atomic_store(&alive[i], 0);
}

static cl_int made_event(cl_int error, const cl_event *event) {
    if (error == CL_SUCCESS && event)
        atomic_fetch_add(&alive[EVENT], 1);
    return error;
}

/* ---- functions that only fail ------------------------------------------------------------ */

#define PASSED(name, params, args) \
    static cl_int CL_API_CALL name##_ params { \
        cl_int error = fault(#name); \
        return error != CL_SUCCESS ? error : next->name args; \
    }
#define OF_A_QUEUE(name, params, args) \
    static cl_int CL_API_CALL name##_ params { \
        cl_int error = queue_fault(#name); \
        return error != CL_SUCCESS ? error : next->name args; \
    }
/* The last parameter is cl_event *event. */
#define ENQUEUED(name, params, args) \
    static cl_int CL_API_CALL name##_ params { \
        cl_int error = queue_fault(#name); \
        return error != CL_SUCCESS ? error : made_event(next->name args, event); \
    }
#define MADE(name, type, kind, params, args) \
    static type CL_API_CALL name##_ params { \
        cl_int error = fault(#name); \
        if (error != CL_SUCCESS) { \
            if (out_error) \
                *out_error = error; \
            return NULL; \
        } \
        type made = next->name args; \
        if (made) \
            atomic_fetch_add(&alive[kind], 1); \
        return made; \
    }
#define COUNTED(name, type, kind, by) \
    static cl_int CL_API_CALL name##_(type object) { \
        atomic_fetch_add(&alive[kind], by); \
        return next->name(object); \
    }

#define WAITS cl_uint n_waits, const cl_event *waits, cl_event *event
#define WAITED n_waits, waits, event

PASSED(clGetPlatformInfo,
       (cl_platform_id p, cl_platform_info what, size_t n, void *out, size_t *size),
       (p, what, n, out, size))
PASSED(clGetMemObjectInfo, (cl_mem m, cl_mem_info what, size_t n, void *out, size_t *size),
       (m, what, n, out, size))
PASSED(clGetProgramInfo, (cl_program p, cl_program_info what, size_t n, void *out, size_t *size),
       (p, what, n, out, size))
PASSED(clGetEventProfilingInfo,
       (cl_event e, cl_profiling_info what, size_t n, void *out, size_t *size),
       (e, what, n, out, size))
PASSED(clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void *value), (k, i, n, value))
PASSED(clSetUserEventStatus, (cl_event e, cl_int status), (e, status))
PASSED(clSetEventCallback,
       (cl_event e, cl_int status, void(CL_CALLBACK *call)(cl_event, cl_int, void *), void *user),
       (e, status, call, user))

OF_A_QUEUE(clFlush, (cl_command_queue q), (q))
OF_A_QUEUE(clFinish, (cl_command_queue q), (q))
OF_A_QUEUE(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))
OF_A_QUEUE(clGetEventInfo, (cl_event e, cl_event_info what, size_t n, void *out, size_t *size),
           (e, what, n, out, size))

ENQUEUED(clEnqueueMarkerWithWaitList, (cl_command_queue q, WAITS), (q, WAITED))
ENQUEUED(clEnqueueBarrierWithWaitList, (cl_command_queue q, WAITS), (q, WAITED))
ENQUEUED(clEnqueueReadBuffer,
         (cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t n, void *to, WAITS),
         (q, m, wait, at, n, to, WAITED))
ENQUEUED(clEnqueueWriteBuffer,
         (cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t n, const void *from, WAITS),
         (q, m, wait, at, n, from, WAITED))
ENQUEUED(clEnqueueCopyBuffer,
         (cl_command_queue q, cl_mem from, cl_mem to, size_t from_at, size_t to_at, size_t n,
          WAITS),
         (q, from, to, from_at, to_at, n, WAITED))
ENQUEUED(clEnqueueFillBuffer,
         (cl_command_queue q, cl_mem m, const void *pattern, size_t n_pattern, size_t at, size_t n,
          WAITS),
         (q, m, pattern, n_pattern, at, n, WAITED))
ENQUEUED(clEnqueueUnmapMemObject, (cl_command_queue q, cl_mem m, void *mapped, WAITS),
         (q, m, mapped, WAITED))
ENQUEUED(clEnqueueMigrateMemObjects,
         (cl_command_queue q, cl_uint n, const cl_mem *ms, cl_mem_migration_flags flags, WAITS),
         (q, n, ms, flags, WAITED))
ENQUEUED(clEnqueueNDRangeKernel,
         (cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *from, const size_t *global,
          const size_t *local, WAITS),
         (q, k, dims, from, global, local, WAITED))

MADE(clCreateContext, cl_context, CONTEXT,
     (const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
      void(CL_CALLBACK *call)(const char *, const void *, size_t, void *), void *user,
      cl_int *out_error),
     (properties, n, devices, call, user, out_error))
MADE(clCreateCommandQueue, cl_command_queue, QUEUE,
     (cl_context c, cl_device_id d, cl_command_queue_properties properties, cl_int *out_error),
     (c, d, properties, out_error))
MADE(clCreateBuffer, cl_mem, MEMORY,
     (cl_context c, cl_mem_flags flags, size_t n, void *host, cl_int *out_error),
     (c, flags, n, host, out_error))
MADE(clCreateProgramWithSource, cl_program, PROGRAM,
     (cl_context c, cl_uint n, const char **texts, const size_t *lengths, cl_int *out_error),
     (c, n, texts, lengths, out_error))
MADE(clCreateProgramWithBinary, cl_program, PROGRAM,
     (cl_context c, cl_uint n, const cl_device_id *devices, const size_t *lengths,
      const unsigned char **binaries, cl_int *states, cl_int *out_error),
     (c, n, devices, lengths, binaries, states, out_error))
MADE(clCreateKernel, cl_kernel, KERNEL, (cl_program p, const char *name, cl_int *out_error),
     (p, name, out_error))
MADE(clCreateUserEvent, cl_event, EVENT, (cl_context c, cl_int *out_error), (c, out_error))

COUNTED(clReleaseContext, cl_context, CONTEXT, -1)
COUNTED(clReleaseCommandQueue, cl_command_queue, QUEUE, -1)
COUNTED(clReleaseMemObject, cl_mem, MEMORY, -1)
COUNTED(clReleaseProgram, cl_program, PROGRAM, -1)
COUNTED(clReleaseKernel, cl_kernel, KERNEL, -1)
COUNTED(clReleaseEvent, cl_event, EVENT, -1)
COUNTED(clRetainEvent, cl_event, EVENT, +1)

/* ---- functions that do more -------------------------------------------------------------- */

static void *CL_API_CALL clEnqueueMapBuffer_(cl_command_queue q, cl_mem m, cl_bool wait,
                                             cl_map_flags flags, size_t at, size_t n, WAITS,
                                             cl_int *out_error) {
    cl_int error = queue_fault("clEnqueueMapBuffer");
    if (error != CL_SUCCESS) {
        if (out_error)
            *out_error = error;
        return NULL;
    }
    void *mapped = next->clEnqueueMapBuffer(q, m, wait, flags, at, n, WAITED, out_error);
    made_event(mapped ? CL_SUCCESS : CL_MAP_FAILURE, event);
    return mapped;
}

static cl_int CL_API_CALL clGetPlatformIDs_(cl_uint n, cl_platform_id *out, cl_uint *out_n) {
    cl_int error = fault("clGetPlatformIDs");
    if (error != CL_SUCCESS)
        return error;
    return said.no_platforms ? -1001 : next->clGetPlatformIDs(n, out, out_n);
}

static cl_int CL_API_CALL clGetDeviceIDs_(cl_platform_id p, cl_device_type type, cl_uint n,
                                          cl_device_id *out, cl_uint *out_n) {
    cl_int error = fault("clGetDeviceIDs");
    if (error != CL_SUCCESS)
        return error;
    return said.no_devices ? CL_DEVICE_NOT_FOUND : next->clGetDeviceIDs(p, type, n, out, out_n);
}

static cl_int CL_API_CALL clGetDeviceInfo_(cl_device_id d, cl_device_info what, size_t n, void *out,
                                           size_t *size) {
    cl_int error = fault("clGetDeviceInfo");
    if (error == CL_SUCCESS)
        error = next->clGetDeviceInfo(d, what, n, out, size);
    if (error != CL_SUCCESS || !out)
        return error;
    if (what == CL_DEVICE_MEM_BASE_ADDR_ALIGN && said.has_alignment)
        *(cl_uint *)out = said.alignment;
    if (what == CL_DEVICE_TYPE && said.type)
        *(cl_device_type *)out = said.type;
    if (what == CL_DEVICE_DOUBLE_FP_CONFIG && said.no_fp64)
        *(cl_device_fp_config *)out = 0;
    if (what == CL_DEVICE_GLOBAL_MEM_SIZE && said.memory)
        *(cl_ulong *)out = said.memory;
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && said.memory && *(cl_ulong *)out > said.memory)
        *(cl_ulong *)out = said.memory;
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && said.piece)
        *(cl_ulong *)out = said.piece;
    return error;
}

static char build_options[2048];
static pthread_mutex_t build_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT const char *layer_build_options(void) {
    return build_options;
}

static cl_int CL_API_CALL clBuildProgram_(cl_program p, cl_uint n, const cl_device_id *devices,
                                          const char *options,
                                          void(CL_CALLBACK *call)(cl_program, void *), void *user) {
    cl_int error = fault("clBuildProgram");
    pthread_mutex_lock(&build_lock);
    snprintf(build_options, sizeof build_options, "%s", options ? options : "");
    pthread_mutex_unlock(&build_lock);
    return error != CL_SUCCESS ? error : next->clBuildProgram(p, n, devices, options, call, user);
}

static cl_int CL_API_CALL clGetProgramBuildInfo_(cl_program p, cl_device_id d,
                                                 cl_program_build_info what, size_t n, void *out,
                                                 size_t *size) {
    cl_int error = fault("clGetProgramBuildInfo");
    if (error != CL_SUCCESS)
        return error;
    if (what != CL_PROGRAM_BUILD_LOG || !said.log[0])
        return next->clGetProgramBuildInfo(p, d, what, n, out, size);
    size_t bytes = strlen(said.log) + 1;
    if (size)
        *size = bytes;
    if (out && n < bytes)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, said.log, bytes);
    return CL_SUCCESS;
}

/* ---- the loader's door ------------------------------------------------------------------- */

/* A function of the table is the one above with the same name. */
static void install(void) {
#define INSTALL(name) table.name = name##_
    INSTALL(clGetPlatformIDs);
    INSTALL(clGetPlatformInfo);
    INSTALL(clGetDeviceIDs);
    INSTALL(clGetDeviceInfo);
    INSTALL(clCreateContext);
    INSTALL(clReleaseContext);
    INSTALL(clCreateCommandQueue);
    INSTALL(clReleaseCommandQueue);
    INSTALL(clCreateBuffer);
    INSTALL(clReleaseMemObject);
    INSTALL(clGetMemObjectInfo);
    INSTALL(clCreateProgramWithSource);
    INSTALL(clCreateProgramWithBinary);
    INSTALL(clBuildProgram);
    INSTALL(clGetProgramBuildInfo);
    INSTALL(clGetProgramInfo);
    INSTALL(clReleaseProgram);
    INSTALL(clCreateKernel);
    INSTALL(clSetKernelArg);
    INSTALL(clReleaseKernel);
    INSTALL(clWaitForEvents);
    INSTALL(clGetEventInfo);
    INSTALL(clGetEventProfilingInfo);
    INSTALL(clCreateUserEvent);
    INSTALL(clSetUserEventStatus);
    INSTALL(clSetEventCallback);
    INSTALL(clRetainEvent);
    INSTALL(clReleaseEvent);
    INSTALL(clFlush);
    INSTALL(clFinish);
    INSTALL(clEnqueueReadBuffer);
    INSTALL(clEnqueueWriteBuffer);
    INSTALL(clEnqueueCopyBuffer);
    INSTALL(clEnqueueFillBuffer);
    INSTALL(clEnqueueMapBuffer);
    INSTALL(clEnqueueUnmapMemObject);
    INSTALL(clEnqueueMigrateMemObjects);
    INSTALL(clEnqueueNDRangeKernel);
    INSTALL(clEnqueueMarkerWithWaitList);
    INSTALL(clEnqueueBarrierWithWaitList);
#undef INSTALL
}

EXPORT bool layer_in_use(void) {
    return next != NULL;
}

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *out, size_t *size) {
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char name[] = "faults for the tests of Tenon";
    const void *value = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
    size_t bytes = what == CL_LAYER_API_VERSION ? sizeof version : sizeof name;
    if ((what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME) || (out && n < bytes))
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, bytes);
    if (size)
        *size = bytes;
    return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint n, const cl_icd_dispatch *target, cl_uint *out_n,
                                      const cl_icd_dispatch **out) {
    const char *words = getenv("TENON_TEST_CL");
    if (n < sizeof table / sizeof(void *))
        return CL_INVALID_VALUE;
    layer_say(words ? words : "");
    next = target;
    table = *target;
    install();
    *out_n = sizeof table / sizeof(void *);
    *out = &table;
    return CL_SUCCESS;
}
