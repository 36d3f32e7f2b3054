/* Memory. Addresses of devices are of pages that nobody may touch; what they hold lies at a constant
 * distance, in pages that only allocations have. An allocation begins 512 bytes after the begin of a
 * page and is followed by a page that is nobody's; its addresses are not given out again soon. */
#define _GNU_SOURCE
#include "tests/cuda/double/inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    GRAIN = 512,  /* the alignment of allocations, no more */
    POISON = 0xff /* no number in any format of floats; -1 in integers */
};

static struct {
    unsigned char *addresses, *backing; /* reserved, `bytes` each */
    size_t bytes;
    range *ranges; /* in order, devices' and pinned */
    size_t n_ranges, room;
} memory;

static uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* ---- reserved addresses ------------------------------------------------------------------ */

static unsigned char *reserve(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

bool memory_reserve(void) {
    uint64_t of_one = round_up(4 * driver.settings.memory + (64 << 20), PAGE);
    memory.bytes = of_one * (uint64_t)driver.settings.n_devices;
    memory.addresses = reserve(memory.bytes);
    memory.backing = reserve(memory.bytes);
    if (!memory.addresses || !memory.backing)
        return false;
    for (int i = 0; i < driver.settings.n_devices; i++) {
        gpu *device = &driver.devices[i];
        device->first = (uint64_t)(uintptr_t)memory.addresses + of_one * (uint64_t)i;
        device->end = device->first + of_one;
        device->cursor = device->first;
    }
    return true;
}

void memory_release(void) {
    munmap(memory.addresses, memory.bytes);
    munmap(memory.backing, memory.bytes);
    free(memory.ranges);
    memset(&memory, 0, sizeof(memory));
}

static bool of_device(uint64_t address) {
    uint64_t first = (uint64_t)(uintptr_t)memory.addresses;
    return address >= first && address < first + memory.bytes;
}

unsigned char *memory_host(uint64_t address) {
    if (of_device(address))
        return memory.backing + (address - (uint64_t)(uintptr_t)memory.addresses);
    return (unsigned char *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

/* What of the backing is an allocation's alone. */
static void open_backing(const range *r) {
    uint64_t begin = r->begin / PAGE * PAGE;
    mprotect(memory_host(begin), round_up(r->end, PAGE) - begin, PROT_READ | PROT_WRITE);
    memset(memory_host(r->begin), POISON, r->end - r->begin);
}

static void close_backing(const range *r) {
    uint64_t begin = r->begin / PAGE * PAGE, bytes = round_up(r->end, PAGE) - begin;
    madvise(memory_host(begin), bytes, MADV_DONTNEED);
    mprotect(memory_host(begin), bytes, PROT_NONE);
}

/* ---- ranges ------------------------------------------------------------------------------ */

/* The first range that ends after the address. */
static size_t place_of(uint64_t address) {
    size_t low = 0, high = memory.n_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory.ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static range *range_at(uint64_t address) {
    size_t i = place_of(address);
    return i < memory.n_ranges && memory.ranges[i].begin <= address ? &memory.ranges[i] : NULL;
}

const range *memory_find(uint64_t address, uint64_t bytes) {
    range *r = range_at(address);
    return r && bytes <= r->end - address ? r : NULL;
}

bool memory_is_host(const void *pointer, size_t bytes) {
    uint64_t begin = (uint64_t)(uintptr_t)pointer;
    if (!pointer || begin + bytes < begin || of_device(begin) || of_device(begin + bytes - 1))
        return false;
    /* Pinned from its begin to its end, or not at all. */
    size_t i = place_of(begin);
    return i == memory.n_ranges || memory.ranges[i].begin >= begin + bytes ||
           (memory.ranges[i].begin <= begin && memory.ranges[i].end >= begin + bytes);
}

static void range_insert(range r) {
    if (memory.n_ranges == memory.room) {
        memory.room = memory.room ? 2 * memory.room : 64;
        memory.ranges = take_again(memory.ranges, memory.room, sizeof(range));
    }
    size_t i = place_of(r.begin);
    memmove(&memory.ranges[i + 1], &memory.ranges[i], (memory.n_ranges - i) * sizeof(range));
    memory.ranges[i] = r;
    memory.n_ranges++;
    driver.alive[r.pinned ? DOUBLE_PINNED_MEMORY : DOUBLE_DEVICE_MEMORY]++;
    if (!r.pinned)
        r.context->device->used += round_up(r.end - r.begin, GRAIN);
}

/* Gives back what the range has, too. */
static void range_remove(range *at) {
    range r = *at;
    size_t i = (size_t)(at - memory.ranges);
    memory.n_ranges--;
    memmove(at, at + 1, (memory.n_ranges - i) * sizeof(range));
    driver.alive[r.pinned ? DOUBLE_PINNED_MEMORY : DOUBLE_DEVICE_MEMORY]--;
    if (!r.pinned) {
        r.context->device->used -= round_up(r.end - r.begin, GRAIN);
        close_backing(&r);
    } else if (!r.registered) {
        munmap(memory_host(r.begin), r.end - r.begin);
    }
}

void memory_forget(context *c) {
    for (size_t i = memory.n_ranges; i-- > 0;) {
        range *r = &memory.ranges[i];
        if (r->context != c)
            continue;
        driver.abandoned[r->pinned ? DOUBLE_PINNED_MEMORY : DOUBLE_DEVICE_MEMORY]++;
        range_remove(r);
    }
}

/* The device's next addresses that are free; 0: none. */
static uint64_t find_addresses(gpu *device, uint64_t bytes) {
    uint64_t begin = device->cursor + GRAIN;
    for (int turn = 0; turn < 2;) {
        if (begin + bytes + PAGE > device->end) {
            begin = device->first + GRAIN;
            turn++;
            continue;
        }
        size_t i = place_of(begin - GRAIN);
        if (i == memory.n_ranges || memory.ranges[i].begin >= begin + bytes + PAGE) {
            device->cursor = round_up(begin + bytes, PAGE) + PAGE;
            return begin;
        }
        begin = round_up(memory.ranges[i].end, PAGE) + PAGE + GRAIN;
    }
    return 0;
}

/* ---- device memory ----------------------------------------------------------------------- */

CUresult CUDAAPI cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
    context *c;
    CUresult error = enter(CALL_cuMemGetInfo_v2, NEEDS_ALL, &c);
    if (error)
        return error;
    if (out_free)
        *out_free = driver.settings.memory - c->device->used;
    if (out_total)
        *out_total = driver.settings.memory;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    context *c;
    CUresult error = enter(CALL_cuMemAlloc_v2, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    if (!out || !bytes)
        return leave(CUDA_ERROR_INVALID_VALUE);
    uint64_t free = driver.settings.memory - c->device->used;
    uint64_t begin =
        bytes > free || round_up(bytes, GRAIN) > free ? 0 : find_addresses(c->device, bytes);
    if (!begin)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    range r = {.begin = begin, .end = begin + bytes, .context = c};
    open_backing(&r);
    range_insert(r);
    *out = begin;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
    context *c;
    CUresult error = enter(CALL_cuMemFree_v2, NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, &c);
    if (error)
        return error;
    range *r = range_at(address);
    if (!r || r->begin != address || r->pinned)
        return leave(c->error ? c->error : CUDA_ERROR_INVALID_VALUE);
    driver.n_waits++;
    contexts_wait(r->context);
    r = range_at(address); /* another thread may have freed it */
    if (!r || r->begin != address || context_current(&c))
        return leave(CUDA_ERROR_INVALID_VALUE);
    error = c->error ? c->error : r->context->error;
    range_remove(r);
    return leave(error);
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *out_begin, size_t *out_bytes,
                                         CUdeviceptr address) {
    CUresult error = enter(CALL_cuMemGetAddressRange_v2, NEEDS_ALL, &(context *){NULL});
    if (error)
        return error;
    const range *r = memory_find(address, 1);
    if (!r)
        return leave(CUDA_ERROR_NOT_FOUND);
    if (out_begin)
        *out_begin = r->begin;
    if (out_bytes)
        *out_bytes = r->end - r->begin;
    return leave(CUDA_SUCCESS);
}

/* ---- pinned memory ----------------------------------------------------------------------- */

CUresult CUDAAPI cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    context *c;
    CUresult error = enter(CALL_cuMemHostAlloc, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!out || !bytes || (flags & ~known))
        return leave(CUDA_ERROR_INVALID_VALUE);
    void *at = bytes > SIZE_MAX / 2
                   ? MAP_FAILED
                   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    memset(at, POISON, bytes);
    uint64_t begin = (uint64_t)(uintptr_t)at;
    range_insert((range){.begin = begin, .end = begin + bytes, .context = c, .pinned = true});
    *out = at;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
    context *c;
    CUresult error = enter(CALL_cuMemHostRegister_v2, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    uint64_t begin = (uint64_t)(uintptr_t)pointer;
    if (!pointer || !bytes || begin + bytes < begin || of_device(begin) || (flags & ~known))
        return leave(CUDA_ERROR_INVALID_VALUE);
    size_t i = place_of(begin);
    if (i < memory.n_ranges && memory.ranges[i].begin < begin + bytes)
        return leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    range_insert((range){
        .begin = begin, .end = begin + bytes, .context = c, .pinned = true, .registered = true});
    return leave(CUDA_SUCCESS);
}

static CUresult unpin(function_name function, void *pointer, bool registered, CUresult unknown) {
    context *c;
    CUresult error = enter(function, NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, &c);
    if (error)
        return error;
    uint64_t begin = (uint64_t)(uintptr_t)pointer;
    for (int waited = 0;; waited++) {
        range *r = range_at(begin);
        if (!r || r->begin != begin || !r->pinned || r->registered != registered)
            return leave(c->error ? c->error : unknown);
        if (waited) {
            range_remove(r);
            return leave(c->error);
        }
        driver.n_waits++;
        contexts_wait(NULL);
        if (context_current(&c))
            return leave(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
}

CUresult CUDAAPI cuMemFreeHost(void *pointer) {
    return unpin(CALL_cuMemFreeHost, pointer, false, CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuMemHostUnregister(void *pointer) {
    return unpin(CALL_cuMemHostUnregister, pointer, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned flags) {
    context *c;
    CUresult error = enter(CALL_cuMemHostGetDevicePointer_v2, NEEDS_ALL, &c);
    if (error)
        return error;
    const range *r = memory_find((uint64_t)(uintptr_t)pointer, 1);
    if (!out || flags || !r || !r->pinned)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = (CUdeviceptr)(uintptr_t)pointer;
    return leave(CUDA_SUCCESS);
}

/* ---- what a pointer is ------------------------------------------------------------------- */

/* CUDA_ERROR_INVALID_VALUE where memory that the driver does not know has no such thing. */
static CUresult describe(void *out, CUpointer_attribute asked, CUdeviceptr address) {
    const range *r = memory_find(address, 1);
    switch ((int)asked) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = r ? object_handle(&r->context->head) : NULL;
        return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = !r ? 0 : r->pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = r ? address : 0;
        return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = r && r->pinned ? memory_host(address) : NULL;
        return r && r->pinned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = r ? r->context->device->ordinal : -2;
        return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = r ? r->begin : 0;
        return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = r ? r->end - r->begin : 0;
        return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult CUDAAPI cuPointerGetAttribute(void *out, CUpointer_attribute asked, CUdeviceptr address) {
    context *c;
    CUresult error = enter(CALL_cuPointerGetAttribute, NEEDS_ALL, &c);
    if (error)
        return error;
    return leave(out ? describe(out, asked, address) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned n, CUpointer_attribute *asked, void **out,
                                        CUdeviceptr address) {
    context *c;
    CUresult error = enter(CALL_cuPointerGetAttributes, NEEDS_ALL, &c);
    if (error)
        return error;
    if (!asked || !out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < n; i++)
        if (describe(out[i], asked[i], address) == CUDA_ERROR_NOT_SUPPORTED)
            return leave(CUDA_ERROR_NOT_SUPPORTED);
    return leave(CUDA_SUCCESS);
}
