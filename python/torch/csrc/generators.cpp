#include "python/torch/csrc/bridge.h"

#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/ops/empty.h>
#include <array>
#include <c10/core/GeneratorImpl.h>
#include <mutex>
#include <random>
#include <tenon/random.h>

namespace tenon_torch {

namespace {

/* A seed and how far it has been drawn from: that is all of a generator's state, here as in Tenon. A device's own one is kept by Tenon,
 * the others keep theirs. */
class Generator final : public c10::GeneratorImpl {
  public:
    Generator(c10::DeviceIndex index, bool is_default)
        : GeneratorImpl(c10::Device(device_type, index), c10::DispatchKeySet(backend_key)),
          is_default(is_default) {}

    void get(uint64_t *seed, uint64_t *offset) const {
        *seed = own_seed;
        *offset = own_offset;
        if (is_default)
            check(tn_generator_get(device_at(device_.index()), seed, offset));
    }
    void set(uint64_t seed, uint64_t offset) {
        own_seed = seed;
        own_offset = offset;
        if (is_default)
            check(tn_generator_set(device_at(device_.index()), seed, offset));
    }

    void set_current_seed(uint64_t seed) override {
        set(seed, 0);
    }
    void set_offset(uint64_t offset) override {
        set(current_seed(), offset);
    }
    uint64_t get_offset() const override {
        uint64_t seed = 0, offset = 0;
        get(&seed, &offset);
        return offset;
    }
    uint64_t current_seed() const override {
        uint64_t seed = 0, offset = 0;
        get(&seed, &offset);
        return seed;
    }
    uint64_t seed() override {
        std::random_device random;
        set((uint64_t{random()} << 32) | random(), 0);
        return current_seed();
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
        std::array<uint64_t, 2> state{};
        get(&state[0], &state[1]);
        at::Tensor bytes = at::empty({sizeof state}, at::TensorOptions().dtype(at::kByte));
        std::memcpy(bytes.mutable_data_ptr(), state.data(), sizeof state);
        return bytes.getIntrusivePtr();
    }
    void set_state(const c10::TensorImpl &bytes) override {
        std::array<uint64_t, 2> state{};
        TORCH_CHECK(bytes.is_cpu() && bytes.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                        bytes.is_contiguous() && bytes.numel() == sizeof state,
                    "the state of a generator is ", sizeof state,
                    " bytes on the CPU, as get_state gives them");
        std::memcpy(state.data(), bytes.data(), sizeof state);
        set(state[0], state[1]);
    }

    const bool is_default;

  private:
    Generator *clone_impl() const override {
        auto *copy = new Generator(device_.index(), false);
        get(&copy->own_seed, &copy->own_offset);
        return copy;
    }

    uint64_t own_seed = c10::default_rng_seed_val, own_offset = 0;
};

} // namespace

const at::Generator &default_generator(c10::DeviceIndex index) {
    static std::mutex lock;
    static auto *made = new std::array<at::Generator, 128>;
    if (index < 0)
        index = current_device();
    device_at(index);
    std::lock_guard<std::mutex> guard(lock);
    at::Generator &generator = (*made)[static_cast<size_t>(index)];
    if (!generator.defined())
        generator = at::make_generator<Generator>(index, true);
    return generator;
}

at::Generator new_generator(c10::DeviceIndex index) {
    if (index < 0)
        index = current_device();
    device_at(index);
    return at::make_generator<Generator>(index, false);
}

/* One draw at a time on a device: another thread's must not come from a generator that was put in for this one. */
static std::mutex &draws_on(c10::DeviceIndex index) {
    TORCH_CHECK(index >= 0, "numbers are drawn by Tenon for its devices alone");
    static auto *locks = new std::array<std::mutex, 128>;
    return (*locks)[static_cast<size_t>(index)];
}

DrawFrom::DrawFrom(const std::optional<at::Generator> &generator, c10::DeviceIndex index)
    : lock(draws_on(index)) {
    if (!generator.has_value() || !generator->defined())
        return;
    TORCH_CHECK(generator->device() == c10::Device(device_type, index), "a generator of ",
                generator->device(), " for numbers on ", c10::Device(device_type, index));
    auto *from = generator->get<Generator>();
    if (from->is_default)
        return;
    device = device_at(index);
    check(tn_generator_get(device, &seed, &offset));
    check(tn_generator_set(device, from->current_seed(), from->get_offset()));
    own = *generator;
}

DrawFrom::~DrawFrom() {
    if (!own.defined())
        return;
    uint64_t now_seed = 0, now_offset = 0;
    if (tn_generator_get(device, &now_seed, &now_offset) == TN_OK)
        own.get<Generator>()->set(now_seed, now_offset);
    tn_generator_set(device, seed, offset);
}

} // namespace tenon_torch
