/* Devices: what they are called, and what they can do. The figures of an architecture are NVIDIA's,
 * so that launches meet the limits that they would meet there. */
#include "tests/cuda/double/inside.h"

#include <stdio.h>
#include <string.h>

CUresult device_find(CUdevice ordinal, gpu **out) {
    *out = NULL;
    if (ordinal < 0 || ordinal >= driver.settings.n_devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = &driver.devices[ordinal];
    return CUDA_SUCCESS;
}

limits device_limits(void) {
    static const struct {
        int capability; /* 10 major + minor: the last row that is not above the device's */
        limits limits;
    } table[] = {
        {0, {1024, 16, 64 << 10, 48 << 10, 64 << 10, 0}},
        {80, {2048, 32, 164 << 10, 48 << 10, 163 << 10, 1 << 10}},
        {86, {1536, 16, 100 << 10, 48 << 10, 99 << 10, 1 << 10}},
        {87, {1536, 16, 164 << 10, 48 << 10, 163 << 10, 1 << 10}},
        {89, {1536, 24, 100 << 10, 48 << 10, 99 << 10, 1 << 10}},
        {90, {2048, 32, 228 << 10, 48 << 10, 227 << 10, 1 << 10}},
        {120, {1536, 24, 100 << 10, 48 << 10, 99 << 10, 1 << 10}},
    };
    limits found = table[0].limits;
    int capability = 10 * driver.settings.major + driver.settings.minor;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].capability <= capability)
            found = table[i].limits;
    return found;
}

CUresult CUDAAPI cuDeviceGetCount(int *out) {
    CUresult error = enter(CALL_cuDeviceGetCount, NEEDS_INIT, NULL);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = driver.settings.n_devices;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *out, int ordinal) {
    CUresult error = enter(CALL_cuDeviceGet, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *device;
    error = out ? device_find(ordinal, &device) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = ordinal;
    return leave(error);
}

CUresult CUDAAPI cuDeviceGetName(char *out, int room, CUdevice ordinal) {
    CUresult error = enter(CALL_cuDeviceGetName, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *device;
    error = out && room > 0 ? device_find(ordinal, &device) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        snprintf(out, (size_t)room, "Tenon driver double %d", ordinal);
    return leave(error);
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *out, CUdevice ordinal) {
    CUresult error = enter(CALL_cuDeviceGetUuid_v2, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *device;
    error = out ? device_find(ordinal, &device) : CUDA_ERROR_INVALID_VALUE;
    if (!error) {
        memcpy(out->bytes, "tenon's double\0", sizeof(out->bytes));
        out->bytes[15] = (char)ordinal;
    }
    return leave(error);
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *out, CUdevice ordinal) {
    CUresult error = enter(CALL_cuDeviceTotalMem_v2, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *device;
    error = out ? device_find(ordinal, &device) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = driver.settings.memory;
    return leave(error);
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *out, CUdevice ordinal, CUdevice peer) {
    CUresult error = enter(CALL_cuDeviceCanAccessPeer, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *found;
    error = out ? device_find(ordinal, &found) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        error = device_find(peer, &found);
    if (!error)
        *out = ordinal != peer && !driver.settings.no_peers;
    return leave(error);
}

static int attribute(CUdevice_attribute asked, const gpu *device) {
    const settings *s = &driver.settings;
    limits l = device_limits();
    switch ((int)asked) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return s->major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return s->minor;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return s->n_sms;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        return 65535;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        return l.shared_per_block;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return l.shared_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return l.shared_per_sm;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        return l.shared_reserved;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return l.threads_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        return l.blocks_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: /* kHz */
        return 1000000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return 1000000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: /* bits */
        return 256;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        return 512;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return 2;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return device->ordinal + 1;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        return 1;
    default: /* what the double does not have */
        return 0;
    }
}

CUresult CUDAAPI cuDeviceGetAttribute(int *out, CUdevice_attribute asked, CUdevice ordinal) {
    CUresult error = enter(CALL_cuDeviceGetAttribute, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *device;
    error = device_find(ordinal, &device);
    if (!error && (!out || asked < 1 || asked >= CU_DEVICE_ATTRIBUTE_MAX))
        error = CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = attribute(asked, device);
    return leave(error);
}

/* Libraries of the toolkit look for the driver themselves, NVRTC among them, and ask it for
 * tables that nobody documents. Without this function they jump to address 0; told that there is
 * no such table, they do without. Not counted: it is not the program that calls it. */
CUresult CUDAAPI cuGetExportTable(const void **out, const CUuuid *id) {
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
