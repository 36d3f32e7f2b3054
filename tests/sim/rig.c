/* What the tests of the simulated chip share: see rig.h. */
#include "tests/sim/rig.h"

#include <stdlib.h>
#include <string.h>

const char *rig_plugin;
mini rig;

int rig_setup(void **state) {
    if (mini_open(&rig, rig_plugin, 0))
        return 0;
    print_error("%s\n", mini_error());
    return -1;
}

int rig_teardown(void **state) {
    return mini_close(&rig) ? 0 : -1;
}

/* ---- tensors with a host copy ------------------------------------------------------------ */

array array_create(tn_dtype dtype, int32_t rank, const int64_t *sizes) {
    array a = {.tensor = mini_tensor_create(&rig, dtype, rank, sizes, NULL, 0), .dtype = dtype};
    assert_non_null(a.tensor);
    a.numel = a.tensor->view.numel;
    a.host = calloc(1, a.tensor->bytes);
    assert_non_null(a.host);
    return a;
}

array array_ramp(int32_t rank, const int64_t *sizes, float low) {
    array a = array_create(TN_F32, rank, sizes);
    for (int64_t i = 0; i < a.numel; i++)
        ((float *)a.host)[i] = low + (float)i / (float)a.numel;
    array_upload(&a);
    return a;
}

void array_upload(array *a) {
    assert_ok(mini_tensor_write(&rig, a->tensor, a->host));
}

void array_download(array *a) {
    assert_ok(mini_tensor_read(&rig, a->tensor, a->host));
}

void array_free_host(array *a) {
    free(a->host);
    a->host = NULL;
}

/* ---- work -------------------------------------------------------------------------------- */

tn_status rig_launch(const char *op, tn_device_impl *device, tn_stream_impl *stream,
                     uint32_t n_args, const tn_cell *args, const tn_tensor_view *out) {
    const tn_kernel *kernel = mini_find(&rig, op, TN_DTYPE_NONE, TN_DTYPE_NONE);
    tn_call call = {
        .struct_size = sizeof call,
        .device = device,
        .stream = stream,
        .user = kernel->user,
        .args = args,
        .outs = &out,
        .n_args = n_args,
        .n_outs = 1,
    };
    return kernel->run(&call);
}

slow slow_create(void) {
    const int64_t sizes[] = {1, 450, 450};
    slow work = {
        .a = mini_tensor_create(&rig, TN_F64, 3, sizes, NULL, 0),
        .b = mini_tensor_create(&rig, TN_F64, 3, sizes, NULL, 0),
        .out = mini_tensor_create(&rig, TN_F64, 3, sizes, NULL, 0),
    };
    const tn_memory_ops *memory = rig.ops->memory;
    assert_ok(memory->fill(rig.device, rig.stream, work.a->view.memory, 0, 0, work.a->bytes));
    assert_ok(memory->fill(rig.device, rig.stream, work.b->view.memory, 0, 0, work.b->bytes));
    assert_ok(mini_synchronize(&rig));
    return work;
}

void slow_queue(const slow *work, tn_stream_impl *stream, int times) {
    const tn_cell args[] = {mini_view(work->a), mini_view(work->b)};
    for (int i = 0; i < times; i++)
        assert_ok(rig_launch("bmm", rig.device, stream, 2, args, &work->out->view));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        print_error("usage: %s PLUGIN.so\n", argv[0]);
        return 2;
    }
    rig_plugin = argv[1];
    return all_tests();
}
