/* memory.c: device and pinned memory behind opaque handles, and the transfers.
 *
 * A handle is an address in the device's reservation, which nobody may read or write: a host that
 * takes a handle for a pointer faults at once. The bytes lie elsewhere, found through the device's
 * table when a command is queued. Between two handles a gap is left, so that no handle plus a wrong
 * offset is another handle. Freed handles are reused late. */
#include "sim.h"

#include <string.h>

/* ---- tables ---- */

/* The first entry whose start is not below `start`. */
static uint64_t table_position(const struct sim_table *table, uint64_t start) {
    uint64_t low = 0, high = table->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (table->entries[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sim_allocation *table_find(const struct sim_table *table, uint64_t start) {
    uint64_t i = table_position(table, start);
    return i < table->n && table->entries[i].start == start ? &table->entries[i] : NULL;
}

/* Makes room for one more entry, so that the insertion after it cannot fail. */
static tn_status table_reserve(const tn_pself *self, struct sim_table *table) {
    if (table->n < table->capacity)
        return TN_OK;
    uint64_t capacity = table->capacity ? 2 * table->capacity : 64;
    struct sim_allocation *entries =
        sim_host_alloc(self, capacity * sizeof *entries, "the table of allocations");
    if (!entries)
        return TN_OUT_OF_MEMORY;
    if (table->n)
        memcpy(entries, table->entries, table->n * sizeof *entries);
    self->host->free(table->entries);
    table->entries = entries;
    table->capacity = capacity;
    return TN_OK;
}

static void table_insert(struct sim_table *table, struct sim_allocation entry) {
    uint64_t i = table_position(table, entry.start);
    memmove(table->entries + i + 1, table->entries + i, (table->n - i) * sizeof entry);
    table->entries[i] = entry;
    table->n++;
}

static void table_remove(struct sim_table *table, struct sim_allocation *entry) {
    uint64_t after = table->n - (uint64_t)(entry - table->entries) - 1;
    memmove(entry, entry + 1, after * sizeof *entry);
    table->n--;
}

void sim_table_finish(const tn_pself *self, struct sim_table *table) {
    self->host->free(table->entries);
    *table = (struct sim_table){0};
}

/* ---- allocation ---- */

static uint64_t round_up(uint64_t bytes) {
    return (bytes + SIM_ALIGNMENT - 1) / SIM_ALIGNMENT * SIM_ALIGNMENT;
}

/* A place of `span` bytes that no handle uses, searched from `from` to the end; 0 when there is
 * none. */
static uint64_t find_place(const tn_pdevice *device, uint64_t from, uint64_t span) {
    const struct sim_table *table = &device->allocations;
    uint64_t end = (uint64_t)(uintptr_t)device->reservation + device->reserved_bytes;
    uint64_t i = table_position(table, from);
    if (i > 0) {
        const struct sim_allocation *before = &table->entries[i - 1];
        uint64_t free_from = before->start + round_up(before->bytes) + SIM_ALIGNMENT;
        from = from > free_from ? from : free_from;
    }
    for (; from < end && end - from >= span; i++) {
        if (i == table->n || table->entries[i].start - from >= span)
            return from;
        from = table->entries[i].start + round_up(table->entries[i].bytes) + SIM_ALIGNMENT;
    }
    return 0;
}

/* Enters an allocation under a handle not used lately. The device is locked. */
static tn_status enter(tn_pdevice *device, int32_t space, uint64_t bytes, char *data,
                       tn_memory *out_memory) {
    tn_status status = table_reserve(device->self, &device->allocations);
    if (status != TN_OK)
        return status;
    uint64_t span = round_up(bytes) + SIM_ALIGNMENT;
    uint64_t start = find_place(device, device->cursor, span);
    if (!start)
        start = find_place(device, (uint64_t)(uintptr_t)device->reservation, span);
    if (!start)
        return sim_fail(device->self, TN_OUT_OF_MEMORY,
                        "sim:%u: no address range of %llu bytes is left for a handle",
                        device->index, (unsigned long long)span);
    device->cursor = start + span;
    table_insert(&device->allocations, (struct sim_allocation){start, bytes, data, space});
    *out_memory = start;
    return TN_OK;
}

static tn_status alloc_device(tn_pdevice *device, uint64_t bytes, tn_memory *out_memory) {
    tn_pself *self = device->self;
    const uint64_t charge = bytes <= device->limit_bytes ? round_up(bytes) : bytes;
    tn_status status = TN_OK;
    char *data = NULL;

    pthread_mutex_lock(&device->lock);
    if (charge > device->limit_bytes - device->used_bytes) {
        status = sim_fail(self, TN_OUT_OF_MEMORY,
                          "sim:%u: out of memory: %llu bytes asked for, %llu of %llu bytes in use; "
                          "free tensors or raise TENON_SIM_MEMORY",
                          device->index, (unsigned long long)bytes,
                          (unsigned long long)device->used_bytes,
                          (unsigned long long)device->limit_bytes);
        goto out;
    }
    data = self->host->alloc(bytes, SIM_ALIGNMENT);
    if (!data) {
        status =
            sim_fail(self, TN_OUT_OF_MEMORY,
                     "sim:%u: no host memory to simulate device memory with: %llu bytes asked for",
                     device->index, (unsigned long long)bytes);
        goto out;
    }
    status = enter(device, TN_SPACE_DEVICE, bytes, data, out_memory);
    if (status == TN_OK)
        device->used_bytes += charge;
    else
        self->host->free(data);
out:
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Pinned memory is host memory: it has an address the host may use, which `write` and `read`
 * recognise on every device, and a handle on the device it was allocated for. */
static tn_status alloc_pinned(tn_pdevice *device, uint64_t bytes, tn_memory *out_memory,
                              void **out_host) {
    tn_pself *self = device->self;
    if (bytes > device->reserved_bytes / 2)
        return sim_fail(self, TN_OUT_OF_MEMORY, "sim:%u: cannot pin %llu bytes", device->index,
                        (unsigned long long)bytes);
    char *data = self->host->alloc(bytes, SIM_ALIGNMENT);
    if (!data)
        return sim_fail(self, TN_OUT_OF_MEMORY,
                        "sim:%u: no host memory to pin: %llu bytes asked for", device->index,
                        (unsigned long long)bytes);

    /* The two tables are locked one after the other: device, then plugin. */
    tn_status status;
    pthread_mutex_lock(&device->lock);
    pthread_mutex_lock(&self->lock);
    status = table_reserve(self, &self->pinned);
    if (status == TN_OK)
        status = enter(device, TN_SPACE_PINNED, bytes, data, out_memory);
    if (status == TN_OK)
        table_insert(&self->pinned, (struct sim_allocation){(uint64_t)(uintptr_t)data, bytes, data,
                                                            TN_SPACE_PINNED});
    pthread_mutex_unlock(&self->lock);
    pthread_mutex_unlock(&device->lock);
    if (status == TN_OK)
        *out_host = data;
    else
        self->host->free(data);
    return status;
}

static tn_status alloc(tn_pdevice *device, int32_t space, uint64_t bytes, tn_memory *out_memory,
                       void **out_host) {
    *out_memory = 0;
    *out_host = NULL;
    if (bytes == 0)
        return sim_fail(device->self, TN_INVALID_ARGUMENT, "sim:%u: an allocation of 0 bytes",
                        device->index);
    switch (space) {
    case TN_SPACE_DEVICE:
        return alloc_device(device, bytes, out_memory);
    case TN_SPACE_PINNED:
        return alloc_pinned(device, bytes, out_memory, out_host);
    default:
        return sim_fail(device->self, TN_UNSUPPORTED, "sim:%u: there is no memory space %d",
                        device->index, space);
    }
}

static void free_memory(tn_pdevice *device, int32_t space, tn_memory memory) {
    tn_pself *self = device->self;
    char *data = NULL;
    pthread_mutex_lock(&device->lock);
    struct sim_allocation *entry = table_find(&device->allocations, memory);
    if (entry && entry->space == space) {
        data = entry->data;
        if (space == TN_SPACE_DEVICE)
            device->used_bytes -= round_up(entry->bytes);
        table_remove(&device->allocations, entry);
    }
    if (data && space == TN_SPACE_PINNED) {
        pthread_mutex_lock(&self->lock);
        table_remove(&self->pinned, table_find(&self->pinned, (uint64_t)(uintptr_t)data));
        pthread_mutex_unlock(&self->lock);
    }
    pthread_mutex_unlock(&device->lock);
    if (data)
        self->host->free(data);
    else
        self->host->log(self, TN_LOG_ERROR, "free of a handle that names no allocation");
}

void sim_memory_finish(tn_pdevice *device) {
    while (device->allocations.n) {
        const struct sim_allocation last = device->allocations.entries[device->allocations.n - 1];
        free_memory(device, last.space, last.start);
    }
    sim_table_finish(device->self, &device->allocations);
}

tn_status sim_resolve(tn_pdevice *device, const char *what, tn_memory memory, uint64_t offset,
                      uint64_t bytes, char **out_data) {
    struct sim_allocation found = {0};
    pthread_mutex_lock(&device->lock);
    const struct sim_allocation *entry = table_find(&device->allocations, memory);
    if (entry)
        found = *entry;
    pthread_mutex_unlock(&device->lock);

    *out_data = NULL;
    if (!entry)
        return sim_fail(device->self, TN_INVALID_ARGUMENT,
                        "%s: %#llx is no memory handle of sim:%u; it was freed, is of another "
                        "device, or had an offset added to it",
                        what, (unsigned long long)memory, device->index);
    if (offset > found.bytes || bytes > found.bytes - offset)
        return sim_fail(device->self, TN_INVALID_ARGUMENT,
                        "%s: bytes [%llu, %llu) of handle %#llx of sim:%u, which has %llu bytes",
                        what, (unsigned long long)offset, (unsigned long long)offset + bytes,
                        (unsigned long long)memory, device->index, (unsigned long long)found.bytes);
    *out_data = found.data + offset;
    return TN_OK;
}

/* Does [p, p + bytes) lie in one pinned allocation? */
static bool is_pinned(tn_pself *self, const void *p, uint64_t bytes) {
    uint64_t address = (uint64_t)(uintptr_t)p;
    bool pinned = false;
    pthread_mutex_lock(&self->lock);
    uint64_t i = table_position(&self->pinned, address + 1);
    if (i > 0) {
        const struct sim_allocation *entry = &self->pinned.entries[i - 1];
        uint64_t offset = address - entry->start;
        pinned = offset < entry->bytes && bytes <= entry->bytes - offset;
    }
    pthread_mutex_unlock(&self->lock);
    return pinned;
}

/* ---- transfers ---- */

struct transfer {
    struct sim_command command;
    char *dst;
    const char *src;
    uint64_t bytes;
    uint32_t value;              /* of a fill */
    _Alignas(16) char payload[]; /* of a write from pageable memory */
};

static tn_status run_copy(struct sim_command *command, char message[SIM_MESSAGE]) {
    struct transfer *t = (struct transfer *)command;
    memcpy(t->dst, t->src, t->bytes);
    return TN_OK;
}

static tn_status run_fill(struct sim_command *command, char message[SIM_MESSAGE]) {
    struct transfer *t = (struct transfer *)command;
    memset(t->dst, (int)(t->value & 0xff), t->bytes);
    return TN_OK;
}

static tn_status transfer_create(tn_pself *self, uint64_t payload, struct transfer **out_transfer) {
    *out_transfer = sim_host_alloc(self, sizeof(struct transfer) + payload, "a transfer");
    if (!*out_transfer)
        return TN_OUT_OF_MEMORY;
    **out_transfer = (struct transfer){.command.run = run_copy};
    return TN_OK;
}

static tn_status write(tn_pdevice *device, tn_pstream *stream, tn_memory dst, uint64_t dst_offset,
                       const void *src, uint64_t bytes) {
    tn_pself *self = device->self;
    char *to;
    struct transfer *t;
    tn_status status = sim_stream_check(device, stream, "write");
    if (status == TN_OK)
        status = sim_resolve(device, "write", dst, dst_offset, bytes, &to);
    if (status != TN_OK || bytes == 0)
        return status;

    bool pinned = is_pinned(self, src, bytes);
    status = transfer_create(self, pinned ? 0 : bytes, &t);
    if (status != TN_OK)
        return status;
    if (!pinned)
        memcpy(t->payload, src, bytes);
    t->dst = to;
    t->src = pinned ? src : t->payload;
    t->bytes = bytes;
    sim_stream_push(stream, &t->command);
    return TN_OK;
}

static tn_status read(tn_pdevice *device, tn_pstream *stream, void *dst, tn_memory src,
                      uint64_t src_offset, uint64_t bytes) {
    tn_pself *self = device->self;
    char *from;
    struct transfer *t;
    tn_status status = sim_stream_check(device, stream, "read");
    if (status == TN_OK)
        status = sim_resolve(device, "read", src, src_offset, bytes, &from);
    if (status != TN_OK || bytes == 0)
        return status;

    status = transfer_create(self, 0, &t);
    if (status != TN_OK)
        return status;
    t->dst = dst;
    t->src = from;
    t->bytes = bytes;
    bool pinned = is_pinned(self, dst, bytes);
    uint64_t place = sim_stream_push(stream, &t->command);
    if (!pinned)
        sim_stream_wait(stream, place);
    return TN_OK;
}

/* Both ends of a copy are found; queues it on `stream`. */
static tn_status push_copy(tn_pstream *stream, char *to, const char *from, uint64_t bytes) {
    struct transfer *t;
    if (bytes == 0)
        return TN_OK;
    tn_status status = transfer_create(stream->device->self, 0, &t);
    if (status != TN_OK)
        return status;
    t->dst = to;
    t->src = from;
    t->bytes = bytes;
    sim_stream_push(stream, &t->command);
    return TN_OK;
}

static tn_status copy(tn_pdevice *device, tn_pstream *stream, tn_memory dst, uint64_t dst_offset,
                      tn_memory src, uint64_t src_offset, uint64_t bytes) {
    char *to, *from;
    tn_status status = sim_stream_check(device, stream, "copy");
    if (status == TN_OK)
        status = sim_resolve(device, "copy to", dst, dst_offset, bytes, &to);
    if (status == TN_OK)
        status = sim_resolve(device, "copy from", src, src_offset, bytes, &from);
    if (status != TN_OK)
        return status;
    if (dst == src && dst_offset < src_offset + bytes && src_offset < dst_offset + bytes)
        return sim_fail(device->self, TN_INVALID_ARGUMENT,
                        "copy: the ranges at %llu and %llu of handle %#llx overlap in %llu bytes",
                        (unsigned long long)dst_offset, (unsigned long long)src_offset,
                        (unsigned long long)dst, (unsigned long long)bytes);
    return push_copy(stream, to, from, bytes);
}

static tn_status copy_peer(tn_pdevice *device, tn_pstream *stream, tn_memory dst,
                           uint64_t dst_offset, tn_pdevice *src_device, tn_memory src,
                           uint64_t src_offset, uint64_t bytes) {
    char *to, *from;
    tn_status status = sim_stream_check(device, stream, "copy_peer");
    if (status == TN_OK)
        status = sim_resolve(device, "copy_peer to", dst, dst_offset, bytes, &to);
    if (status == TN_OK)
        status = sim_resolve(src_device, "copy_peer from", src, src_offset, bytes, &from);
    return status == TN_OK ? push_copy(stream, to, from, bytes) : status;
}

static tn_status fill(tn_pdevice *device, tn_pstream *stream, tn_memory dst, uint64_t dst_offset,
                      uint32_t value, uint64_t bytes) {
    char *to;
    struct transfer *t;
    tn_status status = sim_stream_check(device, stream, "fill");
    if (status == TN_OK)
        status = sim_resolve(device, "fill", dst, dst_offset, bytes, &to);
    if (status != TN_OK || bytes == 0)
        return status;
    status = transfer_create(device->self, 0, &t);
    if (status != TN_OK)
        return status;
    t->command.run = run_fill;
    t->dst = to;
    t->value = value;
    t->bytes = bytes;
    sim_stream_push(stream, &t->command);
    return TN_OK;
}

static tn_status info(tn_pdevice *device, tn_memory_info *out) {
    pthread_mutex_lock(&device->lock);
    uint64_t used = device->used_bytes;
    pthread_mutex_unlock(&device->lock);
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = device->limit_bytes;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = device->limit_bytes - used;
    return TN_OK;
}

const tn_memory_ops sim_memory_ops = {
    .struct_size = sizeof sim_memory_ops,
    .alloc = alloc,
    .free = free_memory,
    .write = write,
    .read = read,
    .copy = copy,
    .copy_peer = copy_peer,
    .fill = fill,
    .info = info,
};
