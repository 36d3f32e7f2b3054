/* Uses each part of tenon/plugin.hpp, so that compilers look into its templates. It is compiled alone. */
#include <iterator>
#include <vector>

#include <tenon/plugin.hpp>

struct tn_instance {
    const tn_host *host;
};
struct tn_device_impl {
    tn_instance *self;
    std::uint32_t index;

    tn_status copy(tn_stream_impl *stream, tn_memory dst, std::uint64_t dst_offset, tn_memory src,
                   std::uint64_t src_offset, std::uint64_t bytes) {
        return bytes ? tenon::fail(self->host, TN_ERR_UNSUPPORTED, "no %d", 3) : TN_OK;
    }
};
inline const tn_host *host_of(const tn_instance *self) {
    return self->host;
}
inline const tn_host *host_of(const tn_device_impl *device) {
    return device->self->host;
}

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) noexcept {
    return tenon::guard(host,
                        [&] { *out_self = tenon::make_host<tn_instance>(host, host).release(); });
}
static void shutdown(tn_instance *self) {
    tenon::destroy(self->host, self);
}
static const void *extension(tn_instance *self, const char *id) {
    return nullptr;
}
static tn_status property(tn_instance *self, std::uint32_t index, std::int32_t name, tn_cell *out) {
    *out = name == TN_PROP_NAME ? tenon::cell("name")
           : name               ? tenon::cell(std::int64_t{64})
                                : tenon::cell(true);
    return TN_OK;
}
static void alloc(tn_device_impl *device, tn_allocation *a) {
    std::vector<int, tenon::host_allocator<int>> v(host_of(device));
    v.resize(a->bytes);
    a->memory = v.size();
}

template <class T> void add(const tn_call *call) {
    const T *self = tenon::data<const T>(tenon::arg(call, 0).tensor());
    T *out = tenon::data<T>(*call->outs[0]);
    T alpha = tenon::arg(call, 1).scalar<T>();
    for (std::int64_t i : tenon::arg(call, 2).ints())
        out[i] = static_cast<T>(self[i] + alpha);
    for (std::int64_t size : tenon::sizes(*call->outs[0]))
        out[size] = tenon::strides(*call->outs[0])[0] == 1 ? alpha : T();
    out[0] = tenon::arg(call, 3).given() && tenon::arg(call, 3).boolean() &&
                     tenon::arg(call, 4).string() && tenon::arg(call, 5).i64() > 0 &&
                     tenon::arg(call, 6).tensors().size > 0
                 ? alpha
                 : T();
}

struct plan {
    int steps;
};
static tn_status prepare(const tn_call *call, tn_plan *out, tenon::host_ptr<plan> &p) {
    p = tenon::make_host<plan>(host_of(call->device), 3);
    return TN_OK;
}
static void run(const tn_call *call, tenon::host_ptr<plan> p) {
    p->steps = 0;
}

constexpr tn_kernel add_f32 =
    tenon::kernel("add", 1).dtypes(tenon::dtype_set<float>).run<add<float>>();
constexpr tn_kernel add_f64 =
    tenon::kernel("add", 1).dtypes(tenon::dtype_set<double>).run<add<double>>();
constexpr tn_kernel add_i64 =
    tenon::kernel("add", 1).dtypes(tenon::dtype_set<std::int64_t>).run<add<std::int64_t>>();
constexpr tn_kernel planned = tenon::kernel("add", 1).dtypes(TN_DTYPES_ALL).planned<prepare, run>();
constexpr const tn_kernel *kernels[] = {&add_f32, &add_f64, &add_i64, &planned};

constexpr tn_memory_ops memory_ops = [] {
    auto ops = tenon::table<tn_memory_ops>();
    ops.alloc = tenon::slot<alloc>;
    ops.copy = tenon::slot<&tn_device_impl::copy>;
    return ops;
}();
constexpr tn_device_ops device_ops = [] {
    auto ops = tenon::table<tn_device_ops>();
    ops.property = tenon::slot<property>;
    ops.memory = &memory_ops;
    return ops;
}();
constexpr tn_plugin plugin = [] {
    auto p = tenon::table<tn_plugin>();
    p.init = tenon::slot<init>;
    p.shutdown = tenon::slot<shutdown>;
    p.extension = tenon::slot<extension>;
    p.devices = &device_ops;
    p.kernels = kernels;
    p.n_kernels = std::size(kernels);
    return p;
}();

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    return host && TN_HAS(host, tn_host, option) ? &plugin : nullptr;
}
