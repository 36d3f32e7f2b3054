/* Devices by name: parsing "npu:1", the default device, what is known without opening one. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "core/device/open.h"
#include "core/tensor/tensor.h"
#include "dispatcher/registry.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TYPE = 256 };

static _Atomic int64_t default_device; /* packed; 0: not chosen yet */

/* ---- parsing ----------------------------------------------------------------------------- */

/* "npu@com.acme:1" into its type and 1; without a colon 0. */
static bool split(const char *name, char type[MAX_TYPE], int32_t *out_index) {
    const char *colon = strrchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    if (n == 0 || n >= MAX_TYPE)
        return false;
    memcpy(type, name, n);
    type[n] = '\0';
    *out_index = 0;
    if (!colon)
        return true;
    if (strchr(type, ':'))
        return false;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 6 || colon[1 + digits])
        return false;
    for (const char *p = colon + 1; *p; p++)
        *out_index = *out_index * 10 + (*p - '0');
    return true;
}

static tn_status fail_index(const char *name, const char *type, int32_t type_id, uint32_t n) {
    if (n == 0)
        return tni_fail(TN_ERR_DEVICE, "%s: %s", name, tni_device_type_reason(type_id));
    if (n == 1)
        return tni_fail(TN_ERR_DEVICE, "%s: there is 1 device of type %s (%s:0)", name, type, type);
    return tni_fail(TN_ERR_DEVICE, "%s: there are %u devices of type %s (%s:0 to %s:%u)", name, n,
                    type, type, type, n - 1);
}

static tn_status parse(const char *name, tn_device *out) {
    char type[MAX_TYPE];
    int32_t index;
    *out = tn_no_device();
    if (!name || !split(name, type, &index))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "'%s' is no device; write its type, and after a colon its number, such as"
                        " cpu, npu:1 or npu@com.acme:0",
                        name ? name : "(null)");
    int32_t type_id;
    uint32_t n;
    tn_status status = tni_device_type_count(type, &type_id, &n);
    if (status)
        return status;
    if ((uint32_t)index >= n)
        return fail_index(name, type, type_id, n);
    tn_device device = {type_id, index};
    if (!tni_device_get(device))
        return tn_error_status();
    *out = device;
    return TN_OK;
}

tn_device tn_device_parse(const char *name) {
    tn_device device;
    parse(name, &device);
    return device;
}

/* ---- the default device ------------------------------------------------------------------ */

/* The device that TENON_DEVICE names; an error says that it came from there. */
static tn_status parse_environment(tn_device *out) {
    const char *name = tni_env(TNI_ENV_DEVICE);
    if (!tni_env_is_set(TNI_ENV_DEVICE))
        return parse(name, out);
    tni_saved_error before;
    tni_error_save(&before);
    tn_status status = parse(name, out);
    char *message = status ? tni_strdup(tn_error_message()) : NULL;
    tni_error_restore(&before);
    if (status && message)
        tni_fail(status, "TENON_DEVICE=%s: %s", name, message);
    else if (status)
        tni_fail_memory("a message about TENON_DEVICE");
    tni_free(message);
    return status;
}

tn_device tn_default_device(void) {
    int64_t packed = atomic_load_explicit(&default_device, memory_order_acquire);
    if (TNI_LIKELY(packed != 0))
        return tn_device_unpack(packed);
    tn_device device;
    if (parse_environment(&device))
        return tn_no_device();
    /* A device that was set meanwhile wins. */
    int64_t unset = 0;
    if (!atomic_compare_exchange_strong(&default_device, &unset, tn_device_pack(device)))
        device = tn_device_unpack(unset);
    return device;
}

tn_status tn_set_default_device(tn_device device) {
    if (!tni_device_get(device))
        return tn_error_status();
    atomic_store_explicit(&default_device, tn_device_pack(device), memory_order_release);
    return TN_OK;
}

void tni_default_device_forget(void) {
    atomic_store(&default_device, 0);
}

/* ---- what is known of a device ----------------------------------------------------------- */

char *tn_device_name(tn_device device, char *out, uint64_t size) {
    const char *key = device.type > 0 ? tni_backend_name(device.type - 1) : NULL;
    if (size && key)
        snprintf(out, size, "%s:%d", key, device.index);
    else if (size)
        snprintf(out, size, "%s", device.type ? "(no device)" : "(none)");
    return out;
}

const char *tn_device_product(tn_device device) {
    const tni_device *d = tni_device_get(device);
    return d ? d->product : "";
}

uint32_t tn_device_count(const char *type) {
    int32_t id;
    uint32_t n = 0;
    if (!type)
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_device_count: type is NULL; give one such as \"cpu\"");
    else
        tni_device_type_count(type, &id, &n);
    return n;
}

bool tn_device_equal(tn_device a, tn_device b) {
    return a.type == b.type && a.index == b.index;
}

bool tn_device_has_dtype(tn_device device, tn_dtype dtype) {
    const tni_device *d = tni_device_get(device);
    return d && tni_is_dtype(dtype) && (d->dtypes & TN_DTYPE_BIT(dtype));
}

bool tn_device_flushes_subnormals(tn_device device, tn_dtype dtype) {
    const tni_device *d = tni_device_get(device);
    return d && tni_is_dtype(dtype) && (d->flushes & TN_DTYPE_BIT(dtype));
}
