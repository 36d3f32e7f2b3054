#include "python/torch/csrc/bridge.h"

#include <mutex>
#include <sys/mman.h>

namespace tenon_torch {

namespace {

/* One range of addresses without memory behind them, handed out in powers of two: what was given back is given out again
 * for the same size, so no two live ranges meet, and each call is a few instructions. */
class Addresses {
  public:
    void *take(unsigned order) {
        std::lock_guard<std::mutex> guard(lock);
        auto &given_back = free[order];
        if (!given_back.empty()) {
            void *address = given_back.back();
            given_back.pop_back();
            return address;
        }
        size_t bytes = size_t{1} << order;
        if (next == nullptr || static_cast<size_t>(end - next) < bytes)
            reserve(bytes);
        void *address = next;
        next += bytes;
        return address;
    }
    void give_back(void *address, unsigned order) {
        std::lock_guard<std::mutex> guard(lock);
        free[order].push_back(address);
    }

  private:
    /* As much as the system allows; what was left of the last range is lost, which are addresses alone. */
    void reserve(size_t at_least) {
        for (size_t size = size_t{1} << 44; size >= at_least; size /= 2) {
            void *range =
                mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (range == MAP_FAILED)
                continue;
            next = static_cast<char *>(range);
            end = next + size;
            return;
        }
        TORCH_CHECK_WITH(OutOfMemoryError, false, "no addresses left for ", at_least,
                         " bytes of a device's memory");
    }

    std::mutex lock;
    char *next = nullptr, *end = nullptr;
    std::vector<void *> free[64];
};

Addresses &addresses() {
    static auto *instance = new Addresses;
    return *instance;
}

constexpr unsigned smallest = 9; /* 512 bytes: PyTorch looks at how addresses are aligned */

unsigned order_of(size_t bytes) {
    unsigned order = smallest;
    while ((size_t{1} << order) < bytes)
        order++;
    return order;
}

} // namespace

void *reserve_address(size_t bytes) {
    return addresses().take(order_of(bytes));
}

void release_address(void *address, size_t bytes) {
    addresses().give_back(address, order_of(bytes));
}

} // namespace tenon_torch
