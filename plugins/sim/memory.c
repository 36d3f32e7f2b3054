/* Device and pinned memory behind opaque handles.
 *
 * A handle is an address in the device's reservation, which nobody may read or write: a host that
 * takes a handle for a pointer faults at once. The bytes of device memory lie elsewhere, found
 * through the device's table when a command is queued. Between two handles a gap is left, so that
 * no handle plus a wrong offset is another handle. Freed handles are reused late. */
#include "plugins/sim/sim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the host's ------------------------------------------------------------------------- */

void *sim_host_alloc(const tn_instance *self, uint64_t bytes, const char *what) {
    void *p = self->host->alloc(self->host, bytes, _Alignof(max_align_t));
    if (!p)
        sim_fail(self, TN_ERR_OUT_OF_MEMORY, "no host memory for %s (%llu bytes)", what,
                 (unsigned long long)bytes);
    return p;
}

/* ---- tables ------------------------------------------------------------------------------ */

/* The first entry whose start is not below `start`. */
static uint64_t table_position(const sim_table *table, uint64_t start) {
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

static sim_allocation *table_find(const sim_table *table, uint64_t start) {
    uint64_t i = table_position(table, start);
    return i < table->n && table->entries[i].start == start ? &table->entries[i] : NULL;
}

/* Makes room for one more entry, so that the insertion after it cannot fail. */
static tn_status table_reserve(const tn_instance *self, sim_table *table) {
    if (table->n < table->capacity)
        return TN_OK;
    uint64_t capacity = table->capacity ? 2 * table->capacity : 64;
    sim_allocation *entries =
        sim_host_alloc(self, capacity * sizeof *entries, "the table of allocations");
    if (!entries)
        return TN_ERR_OUT_OF_MEMORY;
    if (table->n)
        memcpy(entries, table->entries, table->n * sizeof *entries);
    self->host->dealloc(self->host, table->entries);
    table->entries = entries;
    table->capacity = capacity;
    return TN_OK;
}

static void table_insert(sim_table *table, sim_allocation entry) {
    uint64_t i = table_position(table, entry.start);
    memmove(table->entries + i + 1, table->entries + i, (table->n - i) * sizeof entry);
    table->entries[i] = entry;
    table->n++;
}

static void table_remove(sim_table *table, sim_allocation *entry) {
    uint64_t after = table->n - (uint64_t)(entry - table->entries) - 1;
    memmove(entry, entry + 1, after * sizeof *entry);
    table->n--;
}

/* ---- allocation -------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* What an allocation takes of the device's memory. */
static uint64_t charge_of(uint64_t bytes) {
    return round_up(bytes, SIM_ALIGNMENT);
}

/* Fresh memory holds this: NaN in every floating dtype, no index of any tensor, no bool. */
static void fill_pattern(char *data, uint64_t bytes) {
    static const unsigned char pattern[2] = {0xfb, 0x7f};
    uint64_t done = bytes < 2 ? bytes : 2;
    memcpy(data, pattern, done);
    for (; done < bytes; done *= 2)
        memcpy(data + done, data, done < bytes - done ? done : bytes - done);
}

/* Of large blocks only the ends, so that what nobody writes to takes none of the machine's memory. */
static void poison(char *data, uint64_t bytes) {
    static const uint64_t LARGE = UINT64_C(64) << 20, END = UINT64_C(1) << 20;
    if (bytes <= LARGE) {
        fill_pattern(data, bytes);
        return;
    }
    fill_pattern(data, END);
    fill_pattern(data + bytes - END, END);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static sim_block *block_create(tn_instance *self, int32_t space, uint64_t bytes) {
    sim_block *block = sim_host_alloc(self, sizeof *block, "an allocation");
    if (block)
        *block = (sim_block){.self = self, .references = 1, .space = space, .bytes = bytes};
    return block;
}

static void block_drop(sim_block *block) {
    if (atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel) != 1)
        return;
    tn_instance *self = block->self;
    if (block->space == TN_SPACE_DEVICE)
        self->host->dealloc(self->host, block->data);
    self->host->dealloc(self->host, block);
}

void sim_uses_drop(sim_uses *uses) {
    while (uses->n)
        block_drop(uses->blocks[--uses->n]);
}

const sim_block *sim_uses_freed(const sim_uses *uses) {
    for (uint32_t i = 0; i < uses->n; i++)
        if (atomic_load_explicit(&uses->blocks[i]->freed, memory_order_acquire))
            return uses->blocks[i];
    return NULL;
}

/* ---- places ------------------------------------------------------------------------------ */

/* A place of `span` bytes at a multiple of `unit` that no handle uses, searched from `from` to the
 * end; 0 when there is none. */
static uint64_t find_place(const tn_device_impl *device, uint64_t from, uint64_t span,
                           uint64_t unit) {
    const sim_table *table = &device->allocations;
    uint64_t end = (uint64_t)(uintptr_t)device->reservation + device->reserved_bytes;
    uint64_t i = table_position(table, from);
    if (i > 0) {
        const sim_allocation *before = &table->entries[i - 1];
        from = from > before->start + before->span ? from : before->start + before->span;
    }
    for (from = round_up(from, unit); from < end && end - from >= span; i++) {
        if (i == table->n ||
            (table->entries[i].start >= from && table->entries[i].start - from >= span))
            return from;
        from = round_up(table->entries[i].start + table->entries[i].span, unit);
    }
    return 0;
}

/* Enters a block under a handle not used lately. Between two handles a gap of at least `unit` is
 * left. The device is locked. */
static tn_status enter(tn_device_impl *device, sim_block *block, uint64_t unit) {
    PLUGIN_TRY(table_reserve(device->self, &device->allocations));
    uint64_t span = round_up(block->bytes, unit) + unit;
    uint64_t start = find_place(device, device->cursor, span, unit);
    if (!start)
        start = find_place(device, (uint64_t)(uintptr_t)device->reservation, span, unit);
    if (!start)
        return sim_fail(device->self, TN_ERR_OUT_OF_MEMORY,
                        "sim:%u: no address range of %llu bytes is left for a handle",
                        device->index, (unsigned long long)span);
    device->cursor = start + span;
    block->handle = start;
    table_insert(&device->allocations, (sim_allocation){start, span, block});
    return TN_OK;
}

/* ---- the two spaces ---------------------------------------------------------------------- */

static tn_status alloc_device(tn_device_impl *device, sim_block *block) {
    tn_instance *self = device->self;
    uint64_t bytes = block->bytes;
    uint64_t charge = bytes <= device->limit_bytes ? charge_of(bytes) : bytes;
    tn_status status = TN_OK;
    pthread_mutex_lock(&device->lock);
    if (charge > device->limit_bytes - device->used_bytes) {
        status = sim_fail(self, TN_ERR_OUT_OF_MEMORY,
                          "sim:%u: out of memory: %llu bytes asked for, %llu of %llu bytes in use; "
                          "free tensors or raise TENON_SIM_MEMORY",
                          device->index, (unsigned long long)bytes,
                          (unsigned long long)device->used_bytes,
                          (unsigned long long)device->limit_bytes);
        goto out;
    }
    block->data = self->host->alloc(self->host, bytes, SIM_ALIGNMENT);
    if (!block->data) {
        status =
            sim_fail(self, TN_ERR_OUT_OF_MEMORY,
                     "sim:%u: no host memory to simulate device memory with: %llu bytes asked for",
                     device->index, (unsigned long long)bytes);
        goto out;
    }
    status = enter(device, block, SIM_ALIGNMENT);
    if (status == TN_OK)
        device->used_bytes += charge;
out:
    pthread_mutex_unlock(&device->lock);
    return status;
}

static uint64_t page_bytes(void) {
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Pinned memory lies in the reservation, at its handle: its pages are opened here and closed for
 * good by dealloc, so that the host faults when it comes back too late. */
static tn_status alloc_pinned(tn_device_impl *device, sim_block *block) {
    tn_instance *self = device->self;
    if (block->bytes > device->reserved_bytes / 2)
        return sim_fail(self, TN_ERR_OUT_OF_MEMORY, "sim:%u: cannot pin %llu bytes", device->index,
                        (unsigned long long)block->bytes);

    pthread_mutex_lock(&device->lock);
    tn_status status = enter(device, block, page_bytes());
    if (status == TN_OK) {
        block->data = (char *)(uintptr_t)block->handle;
        if (mprotect(block->data, round_up(block->bytes, page_bytes()), PROT_READ | PROT_WRITE)) {
            table_remove(&device->allocations, table_find(&device->allocations, block->handle));
            status = sim_fail(self, TN_ERR_OUT_OF_MEMORY,
                              "sim:%u: no host memory to pin: %llu bytes asked for", device->index,
                              (unsigned long long)block->bytes);
        }
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

bool sim_has_space(const tn_instance *self, int32_t space) {
    return space == TN_SPACE_DEVICE || (space == TN_SPACE_PINNED && self->options.pinned);
}

static tn_status check_space(tn_device_impl *device, int32_t space) {
    if (sim_has_space(device->self, space))
        return TN_OK;
    return sim_fail(device->self, TN_ERR_UNSUPPORTED, "sim:%u has no memory space %d%s",
                    device->index, space,
                    space == TN_SPACE_PINNED ? ", as TENON_SIM_PINNED asks" : "");
}

static tn_status check_request(tn_device_impl *device, const tn_allocation *a) {
    PLUGIN_TRY(check_space(device, a->space));
    if (a->flags)
        return sim_fail(device->self, TN_ERR_UNSUPPORTED, "sim:%u knows no allocation flags %#x",
                        device->index, a->flags);
    if (a->bytes == 0)
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT, "sim:%u: an allocation of 0 bytes",
                        device->index);
    if (a->alignment == 0 || a->alignment & (a->alignment - 1))
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "sim:%u: an alignment of %llu, which is no power of two", device->index,
                        (unsigned long long)a->alignment);
    if (a->alignment > SIM_ALIGNMENT)
        return sim_fail(device->self, TN_ERR_UNSUPPORTED,
                        "sim:%u: an alignment of %llu; memory is aligned to %d here", device->index,
                        (unsigned long long)a->alignment, SIM_ALIGNMENT);
    return TN_OK;
}

static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    const sim_options *options = &device->self->options;
    PLUGIN_TRY(sim_enter(device, SIM_FAULT_alloc));
    PLUGIN_TRY(check_request(device, a));
    bool is_pinned = a->space == TN_SPACE_PINNED;
    sim_block *block = block_create(device->self, a->space, a->bytes);
    if (!block)
        return TN_ERR_OUT_OF_MEMORY;
    tn_status status = is_pinned ? alloc_pinned(device, block) : alloc_device(device, block);
    if (status != TN_OK) {
        block_drop(block);
        return status;
    }
    if (options->poison)
        poison(block->data, a->bytes);
    a->memory = block->handle;
    a->host = is_pinned || options->host_pointers ? block->data : NULL;
    return TN_OK;
}

/* Takes the pages away again, and what they hold. */
static void close_pages(sim_block *block) {
    uint64_t bytes = round_up(block->bytes, page_bytes());
    if (mmap(block->data, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        mprotect(block->data, bytes, PROT_NONE);
}

static void free_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    tn_instance *self = device->self;
    sim_block *block = NULL;
    pthread_mutex_lock(&device->lock);
    sim_allocation *entry = table_find(&device->allocations, memory);
    if (entry && entry->block->space == space) {
        block = entry->block;
        atomic_store_explicit(&block->freed, true, memory_order_release);
        if (space == TN_SPACE_DEVICE)
            device->used_bytes -= charge_of(block->bytes);
        table_remove(&device->allocations, entry);
    }
    if (block && space == TN_SPACE_PINNED)
        close_pages(block);
    pthread_mutex_unlock(&device->lock);
    if (block)
        block_drop(block);
    else
        self->host->log_message(self->host, TN_LOG_ERROR,
                                "dealloc of a handle that names no allocation");
}

void sim_memory_finish(tn_device_impl *device) {
    while (device->allocations.n) {
        sim_allocation last = device->allocations.entries[device->allocations.n - 1];
        free_memory(device, last.block->space, last.start);
    }
    device->self->host->dealloc(device->self->host, device->allocations.entries);
}

/* ---- finding the bytes ------------------------------------------------------------------- */

/* The allocation of `space` that the handle names, which is added to `uses`. */
static tn_status find_block(tn_device_impl *device, const char *what, tn_memory memory,
                            int32_t space, sim_uses *uses, sim_block **out_block) {
    sim_block *block = NULL;
    pthread_mutex_lock(&device->lock);
    const sim_allocation *entry = table_find(&device->allocations, memory);
    if (entry) {
        block = entry->block;
        atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&device->lock);

    *out_block = block;
    if (!block)
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "%s: %#llx is no memory handle of sim:%u; it was freed, is of another "
                        "device, or had an offset added to it",
                        what, (unsigned long long)memory, device->index);
    uses->blocks[uses->n++] = block;
    if (block->space == space)
        return TN_OK;
    return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                    space == TN_SPACE_PINNED
                        ? "%s: handle %#llx of sim:%u is device memory, and should be pinned"
                        : "%s: handle %#llx of sim:%u is pinned memory, which stands for the "
                          "host's side of a transfer alone",
                    what, (unsigned long long)memory, device->index);
}

tn_status sim_resolve(tn_device_impl *device, const char *what, tn_memory memory, uint64_t offset,
                      uint64_t bytes, sim_uses *uses, char **out_data) {
    sim_block *block;
    *out_data = NULL;
    PLUGIN_TRY(find_block(device, what, memory, TN_SPACE_DEVICE, uses, &block));
    if (offset > block->bytes || bytes > block->bytes - offset)
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "%s: bytes [%llu, %llu) of handle %#llx of sim:%u, which has %llu bytes",
                        what, (unsigned long long)offset, (unsigned long long)offset + bytes,
                        (unsigned long long)memory, device->index,
                        (unsigned long long)block->bytes);
    *out_data = block->data + offset;
    return TN_OK;
}

tn_status sim_resolve_pinned(tn_device_impl *device, const char *what, tn_memory pinned,
                             const void *host, uint64_t bytes, sim_uses *uses) {
    sim_block *block;
    PLUGIN_TRY(find_block(device, what, pinned, TN_SPACE_PINNED, uses, &block));
    uint64_t offset = (uint64_t)(uintptr_t)host - (uint64_t)(uintptr_t)block->data;
    if (offset > block->bytes || bytes > block->bytes - offset)
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "%s: %llu bytes at %p do not lie in pinned handle %#llx of sim:%u, which "
                        "has %llu bytes at %p",
                        what, (unsigned long long)bytes, host, (unsigned long long)pinned,
                        device->index, (unsigned long long)block->bytes, (void *)block->data);
    return TN_OK;
}

/* ---- the table --------------------------------------------------------------------------- */

/* How much can be pinned is not known. */
static tn_status info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    PLUGIN_TRY(sim_check_lost(device));
    PLUGIN_TRY(check_space(device, space));
    pthread_mutex_lock(&device->lock);
    uint64_t used = device->used_bytes;
    pthread_mutex_unlock(&device->lock);
    uint64_t total = space == TN_SPACE_DEVICE ? device->limit_bytes : 0;
    if (TN_HAS(out, tn_memory_info, total_bytes))
        out->total_bytes = total;
    if (TN_HAS(out, tn_memory_info, free_bytes))
        out->free_bytes = total ? total - used : 0;
    return TN_OK;
}

const tn_memory_ops sim_memory_ops = {
    .struct_size = sizeof sim_memory_ops,
    .alloc = alloc,
    .dealloc = free_memory,
    .copy_from_host = sim_copy_from_host,
    .copy_to_host = sim_copy_to_host,
    .copy = sim_copy,
    .copy_peer = sim_copy_peer,
    .fill = sim_fill,
    .info = info,
};
