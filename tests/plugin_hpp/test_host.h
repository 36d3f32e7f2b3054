/* A host in a test, which says what a plugin in C++ told it, and whose memory can be made to fail. The
 * handles of the ABI are completed here, as a plugin does. */
#ifndef TNI_TESTS_PLUGIN_HPP_TEST_HOST_H
#define TNI_TESTS_PLUGIN_HPP_TEST_HOST_H

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <csetjmp>
extern "C" {
#include <cmocka.h>
}
#undef fail /* which is a member of tn_host */
#include <string>

#include <tenon/plugin.hpp>

struct test_host {
    tn_host table{};
    int64_t outstanding = 0;           /* blocks that were not given back */
    int64_t fail_after = -1;           /* so many more allocations succeed; negative: all do */
    uint64_t bytes = 0, alignment = 0; /* of the last one */
    tn_status status = TN_OK;          /* of the last host->fail */
    std::string message, log;          /* of the last host->fail, and host->log_message */

    test_host() {
        table.struct_size = sizeof table;
        table.abi_version = TN_ABI_VERSION;
        table.alloc = [](const tn_host *host, uint64_t bytes, uint64_t alignment) -> void * {
            test_host *h = of(host);
            h->bytes = bytes;
            h->alignment = alignment;
            if (h->fail_after == 0)
                return nullptr;
            h->fail_after -= h->fail_after > 0;
            h->outstanding++;
            uint64_t least = alignment < sizeof(void *) ? sizeof(void *) : alignment;
            return std::aligned_alloc(least, (bytes + least - 1) / least * least);
        };
        table.dealloc = [](const tn_host *host, void *p) {
            of(host)->outstanding -= p != nullptr;
            std::free(p);
        };
        table.log_message = [](const tn_host *host, int32_t, const char *message) {
            of(host)->log = message;
        };
        table.fail = [](const tn_host *host, tn_status status, const char *message) {
            of(host)->status = status;
            of(host)->message = message;
            return status;
        };
    }
    test_host(const test_host &) = delete;

    static test_host *of(const tn_host *host) {
        return reinterpret_cast<test_host *>(const_cast<tn_host *>(host));
    }
};

struct tn_instance {
    const tn_host *host;
};

struct tn_device_impl {
    tn_instance *self;
    int calls;

    tn_status throws_as_member();
};

inline const tn_host *host_of(const tn_instance *self) {
    return self->host;
}
inline const tn_host *host_of(const tn_device_impl *device) {
    return device->self->host;
}

/* A host with an instance and a device, and a call of a kernel there. */
struct test_device {
    test_host host;
    tn_instance self{&host.table};
    tn_device_impl device{&self, 0};
    tn_call call{};

    test_device() {
        call.struct_size = sizeof call;
        call.device = &device;
    }
};

/* The tests of one file. */
int test_plans();
int test_memory();

#endif
