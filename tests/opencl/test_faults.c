/* Drivers that fail, lie and lose their device, and what the plugin makes of it. */
#include "tests/opencl/rig.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <tenon/ext/native.h>
#include <tenon/kernels.h>

static mini m;

static void open_device(void) {
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
}

static int64_t property(int32_t name) {
    tn_cell value = {0};
    assert_ok(m.ops->property(m.self, 0, name, &value));
    return value.v.i64;
}

/* ---- devices that cannot be used --------------------------------------------------------- */

/* Opening fails and says `first` and `second`. */
static void assert_refused(const char *words, const char *first, const char *second) {
    layer_say(words);
    if (mini_open(&m, rig_plugin, 0)) {
        mini_close(&m);
        fail_msg("with '%s' device 0 can be opened", words);
    }
    assert_text(mini_error(), first);
    assert_text(mini_error(), second);
    assert_int_equal(mini_outstanding(), 0);
}

static void no_platform_is_none_and_says_so(void **state) {
    assert_refused("hide=platforms", "the plugin has 0", "no OpenCL driver is installed");
}

static void a_platform_without_a_device_is_none_and_says_so(void **state) {
    assert_refused("hide=devices", "the plugin has 0", " has no device");
}

static void a_broken_driver_is_a_failure(void **state) {
    assert_refused("fail=clGetDeviceIDs:-6", "count failed", "CL_OUT_OF_HOST_MEMORY (-6)");
    assert_refused("fail=clGetPlatformIDs:-30", "count failed", "CL_INVALID_VALUE (-30)");
}

static void a_device_that_is_too_small_is_not_used(void **state) {
    assert_refused("small=memory:1048576", "the plugin has 0", "is too small: 1 MiB of memory");
    assert_refused("small=piece:2097152", "the plugin has 0", "2 in one piece");
}

static void an_alignment_that_cannot_be_is_not_believed(void **state) {
    assert_refused("lie=alignment:0", "the plugin has 0", "aligned to 0 bits");
    assert_refused("lie=alignment:24", "the plugin has 0", "aligned to 24 bits");
    assert_refused("lie=alignment:1028", "the plugin has 0", "aligned to 1028 bits");
    assert_refused("lie=alignment:4", "the plugin has 0", "aligned to 4 bits");
    assert_refused("lie=alignment:2147483648", "the plugin has 0", "aligned to 2147483648 bits");
}

/* Less than the largest type of OpenCL needs: the core's pieces lie further apart. */
static void an_alignment_of_a_byte_is_not_relied_on(void **state) {
    layer_say("lie=alignment:8");
    open_device();
    assert_int_equal(property(TN_PROP_ALIGNMENT), 128);
    assert_ok(rig_work(&m));
    assert_true(mini_close(&m));
}

/* ---- no f64 ------------------------------------------------------------------------------ */

static void without_fp64_the_device_has_no_f64(void **state) {
    layer_say("hide=fp64");
    open_device();
    assert_int_equal(property(TN_PROP_DTYPES), TN_DTYPES_ALL & ~TN_DTYPE_BIT(TN_F64));
    assert_null(mini_find(&m, "neg", TN_F64, TN_DTYPE_NONE));
    assert_null(mini_find(&m, "copy", TN_F32, TN_F64));
    assert_null(mini_find(&m, "copy", TN_F64, TN_F32));
    assert_non_null(mini_find(&m, "copy", TN_F32, TN_F16));
    assert_ok(rig_work(&m));
    assert_text(layer_build_options(), "-DHAS_F64=0");
    assert_true(mini_close(&m));
}

static void with_fp64_kernels_are_told_too(void **state) {
    open_device();
    if (property(TN_PROP_DTYPES) & (int64_t)TN_DTYPE_BIT(TN_F64)) {
        assert_ok(rig_work(&m));
        assert_text(layer_build_options(), "-DHAS_F64=1");
    }
    assert_true(mini_close(&m));
}

/* ---- kernels ----------------------------------------------------------------------------- */

static void a_kernel_that_does_not_build_is_told_with_its_first_error(void **state) {
    open_device();
    layer_say("fail=clBuildProgram:-11;log=x.cl:1: warning: unused 'error: none'\nx.cl:2: error: "
              "no such type\n"
              "x.cl:3: error: the second");
    assert_int_not_equal(rig_work(&m), TN_OK);
    static const char *const parts[] = {"opencl:0 (", "pointwise", "neg", "f32",
                                        "x.cl:2: error: no such type"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_text(mini_error(), parts[i]);
    assert_null(strstr(mini_error(), "unused"));
    assert_null(strstr(mini_error(), "the second"));
    layer_say("");
    assert_ok(rig_work(&m));
    assert_true(mini_close(&m));
}

/* PoCL's compiler believes to have read the header of all functions. */
static bool was_spared_the_header(void) {
    return strstr(layer_build_options(), "-D_OPENCL_H_") != NULL;
}

static bool is_pocl(void) {
    cl_device_id device;
    cl_platform_id platform;
    char name[64] = "";
    const tn_ext_native *native = m.plugin->extension(m.self, TN_EXT_NATIVE);
    assert_int_equal(clGetCommandQueueInfo(native->stream(m.stream), CL_QUEUE_DEVICE, sizeof device,
                                           &device, NULL),
                     CL_SUCCESS);
    assert_int_equal(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL),
                     CL_SUCCESS);
    assert_int_equal(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL),
                     CL_SUCCESS);
    return strcmp(name, "Portable Computing Language") == 0;
}

static void pocl_is_spared_its_header(void **state) {
    open_device();
    assert_ok(rig_work(&m));
    assert_int_equal(was_spared_the_header(), is_pocl());
    assert_true(mini_close(&m));
}

static void a_compiler_that_needs_its_header_gets_it(void **state) {
    open_device();
    if (is_pocl()) {
        layer_say("fail=clBuildProgram:-11@1");
        assert_ok(rig_work(&m));
        assert_false(was_spared_the_header());
    }
    assert_true(mini_close(&m));
}

static void a_build_without_a_log_is_told_by_its_error(void **state) {
    open_device();
    layer_say("fail=clBuildProgram:-6;fail=clGetProgramBuildInfo:-30");
    assert_int_not_equal(rig_work(&m), TN_OK);
    assert_text(mini_error(), "CL_OUT_OF_HOST_MEMORY");
    assert_text(mini_error(), "pointwise");
    assert_true(mini_close(&m));
}

/* ---- memory ------------------------------------------------------------------------------ */

static void no_memory_of_the_driver_is_told_and_can_be_tried_again(void **state) {
    open_device();
    tn_memory memory = 1;
    void *host;
    layer_say("fail=clCreateBuffer:-4@1");
    assert_int_equal(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 4096, &memory, &host),
                     TN_ERR_OUT_OF_MEMORY);
    assert_int_equal(memory, 0);
    assert_text(mini_error(), "opencl:0 (");
    assert_text(mini_error(), "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
    assert_ok(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 4096, &memory, &host));
    m.ops->memory->dealloc(m.device, TN_SPACE_DEVICE, memory);
    assert_true(mini_close(&m));
}

/* Drivers give out more than there is. */
static void what_the_device_has_is_counted(void **state) {
    enum { MIB = 1 << 20 };
    tn_memory first, second;
    tn_memory_info info = {.struct_size = sizeof info};
    void *host;
    layer_say("small=memory:67108864");
    open_device();
    const tn_memory_ops *memory = m.ops->memory;
    assert_ok(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 40 * MIB, &first, &host));
    assert_int_equal(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 40 * MIB, &second, &host),
                     TN_ERR_OUT_OF_MEMORY);
    assert_text(mini_error(), "41943040 bytes are wanted, 41943040 of its 67108864 are taken");
    assert_ok(memory->info(m.device, TN_SPACE_DEVICE, &info));
    assert_int_equal(info.free_bytes, 24 * MIB);
    memory->dealloc(m.device, TN_SPACE_DEVICE, first);
    assert_ok(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 40 * MIB, &second, &host));
    memory->dealloc(m.device, TN_SPACE_DEVICE, second);
    assert_true(mini_close(&m));
}

/* ---- a lost device ----------------------------------------------------------------------- */

static void assert_lost(tn_status status) {
    assert_int_equal(status, TN_ERR_DEVICE_LOST);
    assert_text(mini_error(), "opencl:0 (");
    assert_text(mini_error(), "lost");
    assert_text(mini_error(), "end the program");
}

/* Queues a kernel, another one for 8 elements than for 7. */
static tn_status launch(tn_memory memory, tn_stream_impl *stream, int64_t n) {
    const tn_kernel *fill = mini_find(&m, "fill", TN_F32, TN_DTYPE_NONE);
    int64_t one = 1;
    tn_tensor_view out = {.struct_size = sizeof out,
                          .memory = memory,
                          .numel = n,
                          .dtype = TN_F32,
                          .rank = 1,
                          .sizes = &n,
                          .strides = &one};
    const tn_tensor_view *outs = &out;
    tn_cell args[1];
    args[TN_ARG_fill_value] = mini_f64(1);
    tn_call call = {.struct_size = sizeof call,
                    .device = m.device,
                    .stream = stream,
                    .user = fill->user,
                    .args = args,
                    .outs = &outs,
                    .n_args = 1,
                    .n_outs = 1};
    return fill->run(&call);
}

/* Everything fails; what gives back does not. */
static void use_lost(tn_memory memory, tn_memory pinned, tn_stream_impl *stream,
                     tn_event_impl *event) {
    const tn_memory_ops *ops = m.ops->memory;
    tn_memory_info info = {.struct_size = sizeof info};
    tn_memory more;
    tn_stream_impl *another;
    tn_event_impl *late;
    char byte = 0;
    void *host;
    assert_lost(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 64, &more, &host));
    assert_lost(mini_alloc(m.ops->memory, m.device, TN_SPACE_PINNED, 64, &more, &host));
    assert_lost(ops->copy_from_host(m.device, stream, memory, 0, &byte, 0, 1));
    assert_lost(ops->copy_to_host(m.device, stream, &byte, 0, memory, 0, 1));
    assert_lost(ops->copy(m.device, stream, memory, 0, memory, 8, 1));
    assert_lost(ops->fill(m.device, stream, memory, 0, 0, 1));
    assert_lost(ops->info(m.device, TN_SPACE_DEVICE, &info));
    assert_lost(launch(memory, stream, 8));
    assert_lost(launch(memory, stream, 7)); /* which was never built */
    assert_lost(m.ops->streams->create(m.device, 0, &another));
    assert_lost(m.ops->streams->query(stream));
    assert_lost(m.ops->streams->synchronize(stream));
    assert_lost(m.ops->events->create(m.device, 0, &late));
    assert_lost(m.ops->events->record(event, stream));
    assert_lost(m.ops->events->wait(stream, event));
    assert_lost(m.ops->events->query(event));
    assert_lost(m.ops->events->synchronize(event));
    m.ops->events->destroy(event);
    m.ops->streams->destroy(stream);
    ops->dealloc(m.device, TN_SPACE_DEVICE, memory);
    ops->dealloc(m.device, TN_SPACE_PINNED, pinned);
}

/* From the first call on that has to do with a queue; once also with a driver that answers again,
 * as some do. */
static void lose_device(bool comes_back) {
    tn_memory memory, pinned;
    tn_stream_impl *stream;
    tn_event_impl *event;
    char byte = 0;
    void *host;
    open_device();
    assert_ok(rig_work(&m));
    assert_ok(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 64, &memory, &host));
    assert_ok(mini_alloc(m.ops->memory, m.device, TN_SPACE_PINNED, 64, &pinned, &host));
    assert_ok(m.ops->streams->create(m.device, 0, &stream));
    assert_ok(m.ops->events->create(m.device, 0, &event));
    assert_ok(m.ops->memory->copy_from_host(m.device, stream, memory, 0, &byte, 0, 1));
    assert_ok(launch(memory, stream, 8));
    assert_ok(m.ops->events->record(event, stream));
    layer_say("lose=-36");
    assert_lost(m.ops->streams->synchronize(stream));
    assert_text(mini_error(), "CL_INVALID_COMMAND_QUEUE (-36)");
    if (comes_back)
        layer_say("");
    use_lost(memory, pinned, stream, event);
    assert_true(mini_close(&m));
}

static void a_lost_queue_is_a_lost_device(void **state) {
    lose_device(false);
}

static void a_lost_device_stays_lost(void **state) {
    lose_device(true);
}

static void a_lost_device_can_be_opened_again(void **state) {
    open_device();
    layer_say("lose=-36");
    assert_lost(mini_synchronize(&m));
    layer_say("");
    m.ops->streams->destroy(m.stream);
    m.ops->close(m.device);
    assert_ok(m.ops->open(m.self, 0, &m.device));
    assert_ok(m.ops->streams->create(m.device, 0, &m.stream));
    assert_ok(rig_work(&m));
    assert_true(mini_close(&m));
}

/* Whatever finds it out. */
static void any_call_may_find_the_device_lost(void **state) {
    bool worked = false;
    for (int at = 1; !worked; at++) {
        char words[32];
        open_device();
        snprintf(words, sizeof words, "lose=-36@%d", at);
        layer_say(words);
        tn_status status = rig_work(&m);
        worked = status == TN_OK;
        if (!worked)
            assert_lost(status);
        assert_true(mini_close(&m));
        assert_int_equal(layer_alive(NULL), 0);
        assert_true(at < 100);
    }
}

/* ---- requests ---------------------------------------------------------------------------- */

static void assert_unsupported(tn_status status, const char *part) {
    assert_int_equal(status, TN_ERR_UNSUPPORTED);
    assert_text(mini_error(), part);
}

static void what_is_not_known_is_refused(void **state) {
    tn_memory_info info = {.struct_size = sizeof info};
    tn_event_impl *event, *timed;
    double ns;
    open_device();
    tn_allocation a = {.struct_size = sizeof a, .bytes = 8, .alignment = 1, .space = 2};
    assert_unsupported(m.ops->memory->alloc(m.device, &a), "memory space 2");
    a.space = TN_SPACE_DEVICE;
    a.flags = 1;
    assert_unsupported(m.ops->memory->alloc(m.device, &a), "flags 0x1");
    a.flags = 0;
    a.alignment = UINT64_C(1) << 40;
    assert_unsupported(m.ops->memory->alloc(m.device, &a), "aligned");
    assert_true(a.memory == 0 && a.host == NULL);
    assert_unsupported(m.ops->memory->info(m.device, 2, &info), "memory space 2");
    assert_int_equal(property(TN_PROP_SPACES), 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED);
    assert_unsupported(m.ops->events->create(m.device, 6, &event), "flags 0x6");
    assert_ok(m.ops->events->create(m.device, 0, &event));
    assert_ok(m.ops->events->create(m.device, TN_EVENT_TIMING, &timed));
    assert_int_equal(m.ops->events->elapsed(event, timed, &ns), TN_ERR_STATE);
    m.ops->events->destroy(event);
    m.ops->events->destroy(timed);
    assert_true(mini_close(&m));
}

/* What a program gets to use beside Tenon is of one context, and what it queues is waited for. */
static void native_objects_are_of_opencl(void **state) {
    cl_context of_queue, of_memory, context;
    size_t bytes = 0;
    tn_memory memory;
    void *host;
    char back = 0;
    open_device();
    const tn_ext_native *native = m.plugin->extension(m.self, TN_EXT_NATIVE);
    assert_non_null(native);
    assert_null(m.plugin->extension(m.self, "tenon.none/1"));
    assert_string_equal(native->api, "opencl");
    context = native->context(m.device);
    cl_command_queue queue = native->stream(m.stream);
    assert_int_equal(
        clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof of_queue, &of_queue, NULL),
        CL_SUCCESS);
    assert_ok(mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 1000, &memory, &host));
    cl_mem mem = (cl_mem)(uintptr_t)native->memory(m.device, memory);
    assert_int_equal(clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof of_memory, &of_memory, NULL),
                     CL_SUCCESS);
    assert_int_equal(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL), CL_SUCCESS);
    assert_true(of_queue == context && of_memory == context && bytes >= 1000);

    assert_ok(mini_synchronize(&m));
    cl_event gate = clCreateUserEvent(context, NULL);
    assert_int_equal(clEnqueueFillBuffer(queue, mem, "\7", 1, 0, 1000, 1, &gate, NULL), CL_SUCCESS);
    assert_int_equal(m.ops->streams->query(m.stream), TN_NOT_READY);
    clSetUserEventStatus(gate, CL_COMPLETE);
    clReleaseEvent(gate);
    assert_ok(m.ops->memory->copy_to_host(m.device, m.stream, &back, 0, memory, 999, 1));
    assert_int_equal(back, 7);
    m.ops->memory->dealloc(m.device, TN_SPACE_DEVICE, memory);
    assert_true(mini_close(&m));
}

/* ---- every call fails once --------------------------------------------------------------- */

static tn_status use_pinned(void) {
    const tn_memory_ops *ops = m.ops->memory;
    tn_memory pinned, memory;
    void *host, *unused;
    tn_status status = mini_alloc(m.ops->memory, m.device, TN_SPACE_PINNED, 4096, &pinned, &host);
    if (status != TN_OK)
        return status;
    status = mini_alloc(m.ops->memory, m.device, TN_SPACE_DEVICE, 4096, &memory, &unused);
    if (status == TN_OK) {
        status = ops->copy_from_host(m.device, m.stream, memory, 0, host, pinned, 4096);
        if (status == TN_OK)
            status = ops->fill(m.device, m.stream, memory, 7, 1, 99);
        if (status == TN_OK)
            status = ops->copy(m.device, m.stream, memory, 0, memory, 2048, 1024);
        if (status == TN_OK)
            status = ops->copy_to_host(m.device, m.stream, host, pinned, memory, 0, 4096);
        tn_status end = mini_synchronize(&m);
        if (end != TN_OK) /* then it did not wait, and the memory may be in use */
            mini_synchronize(&m);
        if (status == TN_OK)
            status = end;
        ops->dealloc(m.device, TN_SPACE_DEVICE, memory);
    }
    ops->dealloc(m.device, TN_SPACE_PINNED, pinned);
    return status;
}

static tn_status wait_across(tn_event_impl *start, tn_event_impl *end, tn_stream_impl *other) {
    double ns;
    tn_status status = m.ops->events->record(start, m.stream);
    if (status == TN_OK)
        status = m.ops->events->wait(other, start);
    if (status == TN_OK)
        status = m.ops->events->record(end, other);
    if (status == TN_OK)
        status = m.ops->streams->query(other);
    if (status == TN_OK || status == TN_NOT_READY)
        status = m.ops->events->synchronize(end);
    if (status == TN_OK)
        status = m.ops->events->query(end);
    return status == TN_OK ? m.ops->events->elapsed(start, end, &ns) : status;
}

static tn_status use_streams(void) {
    tn_stream_impl *other = NULL;
    tn_event_impl *start = NULL, *end = NULL;
    tn_status status = m.ops->streams->create(m.device, 0, &other);
    if (status == TN_OK)
        status = m.ops->events->create(m.device, TN_EVENT_TIMING, &start);
    if (status == TN_OK)
        status = m.ops->events->create(m.device, TN_EVENT_TIMING, &end);
    if (status == TN_OK)
        status = wait_across(start, end, other);
    m.ops->events->destroy(start);
    m.ops->events->destroy(end);
    m.ops->streams->destroy(other);
    return status;
}

static bool live_once(void) {
    if (!mini_open(&m, rig_plugin, 0))
        return false;
    tn_status status = rig_work(&m);
    if (status == TN_OK)
        status = use_pinned();
    if (status == TN_OK)
        status = use_streams();
    if (status != TN_OK && !mini_error()[0])
        fail_msg("status %d has no message", status);
    bool balanced = mini_close(&m);
    assert_true(balanced);
    return status == TN_OK;
}

/* As a GPU: there memory is made real when it is allocated. */
static void a_call_that_fails_leaves_nothing_behind(void **state) {
    uint64_t at = 0, n_failed = 0;
    do {
        char words[48];
        const char *which = "";
        snprintf(words, sizeof words, "lie=type:4;fail=*:-6@%llu", (unsigned long long)++at);
        layer_say(words);
        n_failed += !live_once();
        if (layer_alive(&which))
            fail_msg("with '%s' objects are left, of kind %s", words, which);
        assert_int_equal(mini_outstanding(), 0);
    } while (layer_calls() >= at);
    print_message("%llu calls, %llu of them cannot fail unnoticed\n", (unsigned long long)at - 1,
                  (unsigned long long)n_failed);
    assert_true(n_failed > 40);
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        TEST(no_platform_is_none_and_says_so),
        TEST(a_platform_without_a_device_is_none_and_says_so),
        TEST(a_broken_driver_is_a_failure),
        TEST(a_device_that_is_too_small_is_not_used),
        TEST(an_alignment_that_cannot_be_is_not_believed),
        TEST(an_alignment_of_a_byte_is_not_relied_on),
        TEST(without_fp64_the_device_has_no_f64),
        TEST(with_fp64_kernels_are_told_too),
        TEST(a_kernel_that_does_not_build_is_told_with_its_first_error),
        TEST(pocl_is_spared_its_header),
        TEST(a_compiler_that_needs_its_header_gets_it),
        TEST(a_build_without_a_log_is_told_by_its_error),
        TEST(no_memory_of_the_driver_is_told_and_can_be_tried_again),
        TEST(what_the_device_has_is_counted),
        TEST(a_lost_queue_is_a_lost_device),
        TEST(a_lost_device_stays_lost),
        TEST(a_lost_device_can_be_opened_again),
        TEST(any_call_may_find_the_device_lost),
        TEST(what_is_not_known_is_refused),
        TEST(native_objects_are_of_opencl),
        TEST(a_call_that_fails_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
