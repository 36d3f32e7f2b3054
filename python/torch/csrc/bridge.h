/* What the parts of the bridge share. PyTorch has one slot for devices of others, PrivateUse1; here its indices are the devices of all
 * plugins of Tenon. A torch storage owns one reference of the tensor of Tenon's that made its memory, in the context of its DataPtr; shapes, strides
 * and gradients are PyTorch's, memory, streams and kernels Tenon's. */
#ifndef TNI_PYTHON_TORCH_CSRC_BRIDGE_H
#define TNI_PYTHON_TORCH_CSRC_BRIDGE_H

#include <ATen/core/Tensor.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <tenon/tenon.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pybind11 {
class module_;
}

namespace tenon_torch {

constexpr auto device_type = c10::DeviceType::PrivateUse1;
constexpr auto backend_key = c10::DispatchKey::PrivateUse1;

/* ---- errors.cpp -------------------------------------------------------------------------- */

/* Throws Tenon's standing error as the exception that PyTorch has for its kind, and clears it. */
[[noreturn]] void throw_error();
inline void check(tn_status status) {
    if (status != TN_OK)
        throw_error();
}
template <typename T> T *check(T *result) {
    if (result == nullptr)
        throw_error();
    return result;
}

/* A reference that is given back. */
using Reference = std::unique_ptr<tn_tensor, void (*)(tn_tensor *)>;

/* ---- devices.cpp ------------------------------------------------------------------------- */

/* The devices, in the order of their indices: what TENON_TORCH_DEVICES lists, else Tenon's default device and then
 * every other one of every plugin. Opened once, when they are first asked for. */
c10::DeviceIndex device_count() noexcept;
tn_device device_at(c10::DeviceIndex index); /* -1: the current one; throws where there is none */
c10::DeviceIndex index_of(tn_device device); /* a device that has no index gets the next */
std::vector<std::string> device_names();
/* "tenon:1 (npu:0)" */
std::string device_text(c10::DeviceIndex index);
/* The calling thread's. */
c10::DeviceIndex current_device() noexcept;
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

/* ---- streams.cpp ------------------------------------------------------------------------- */

/* The stream of Tenon behind one of PyTorch's; borrowed. */
tn_stream *stream_of(const c10::Stream &stream);

/* ---- memory.cpp -------------------------------------------------------------------------- */

c10::DeviceAllocator *allocator();
c10::Allocator *pinned_allocator();
/* The memory of `owned`, whose reference it takes, also where it throws. */
c10::DataPtr data_of(tn_tensor *owned, c10::DeviceIndex index);
/* What made the memory, as it was then, and its storage; both NULL for memory of no bytes. Borrowed. */
tn_tensor *tensor_of(const c10::DataPtr &data);
tn_storage *storage_of(const c10::DataPtr &data);
/* Gives the storage `bytes`, with what both have of what was there. */
void resize_storage(c10::StorageImpl &storage, size_t bytes);

/* ---- addresses.cpp ----------------------------------------------------------------------- */

/* PyTorch compares addresses and adds to them. Memory that has none gets a range of its own that nobody can read. */
void *reserve_address(size_t bytes);
void release_address(void *address, size_t bytes);

/* ---- generators.cpp ---------------------------------------------------------------------- */

const at::Generator &default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);
/* While it lives, what a device draws comes from `generator`, if that is one of ours and not the device's own. */
class DrawFrom {
  public:
    DrawFrom(const std::optional<at::Generator> &generator, c10::DeviceIndex index);
    ~DrawFrom();
    DrawFrom(const DrawFrom &) = delete;
    DrawFrom &operator=(const DrawFrom &) = delete;

  private:
    at::Generator own;
    std::unique_lock<std::mutex> lock;
    tn_device device{};
    uint64_t seed = 0, offset = 0;
};

/* ---- tensors.cpp ------------------------------------------------------------------------- */

tn_dtype dtype_of(c10::ScalarType type); /* throws where Tenon has none such */
c10::ScalarType scalar_type_of(tn_dtype dtype);
inline tn_ints ints_of(c10::IntArrayRef list) {
    return tn_ints_of(list.data(), static_cast<int64_t>(list.size()));
}
/* t as Tenon sees it: the tensor that made t's storage, which other threads may be given, too, where t is still the same view of it; else one
 * over the storage, in the scope that is open. */
tn_tensor *borrow(const at::Tensor &t);
/* Always one that nobody else has: to hang a history on. */
tn_tensor *borrow_another(const at::Tensor &t);
/* A tensor of PyTorch's over t's storage; of NULL and TN_NONE an undefined one. */
at::Tensor adopt(tn_tensor *t);
/* The same of a tensor without history on the device of that index, whose reference it takes, also where it throws. */
at::Tensor adopt_owned(tn_tensor *owned, c10::DeviceIndex index);

/* ---- calls.cpp --------------------------------------------------------------------------- */

/* An operator of Tenon by name, called with arguments in the order of its schema. A scope must be open, which its results belong to. */
class Call {
  public:
    explicit Call(const char *name);
    Call &tensor(tn_tensor *t);
    Call &tensor(const at::Tensor &t); /* undefined: None */
    Call &ints(c10::IntArrayRef list);
    Call &integer(int64_t value);
    Call &number(double value);
    Call &flag(bool value);
    Call &scalar(const c10::Scalar &value);
    Call &dtype(c10::ScalarType type);
    Call &device(c10::DeviceIndex index);
    Call &none();
    std::vector<tn_tensor *> results(); /* NULL for what is no tensor */
    std::vector<at::Tensor> run();      /* the same, adopted */
    at::Tensor one() {
        return run().at(0);
    }

  private:
    tn_cell &next(uint32_t tag);
    const tn_op *op;
    std::vector<tn_cell> cells;
};

/* ---- graphs.cpp -------------------------------------------------------------------------- */

void bind_graphs(pybind11::module_ &m);

/* ---- profiler.cpp ------------------------------------------------------------------------ */

void register_profiler();

/* ---- operators.cpp ----------------------------------------------------------------------- */

/* What became of an operator of PyTorch. */
struct Outcome {
    std::string name;  /* "add.Tensor" */
    std::string how;   /* "operator", "by hand", "copy of NAME", "skipped", "left to PyTorch" */
    std::string tenon; /* the operator of Tenon that answers, or why none does */
};
const std::vector<Outcome> &outcomes();

} // namespace tenon_torch

#endif
