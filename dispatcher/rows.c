/* Dispatch rows: made from registrations, interned by content, never freed while calls may read
 * them. Rows are made from a reserve, so that dropping a registration cannot fail. */
#include "base/alloc.h"
#include "dispatcher/internal.h"

typedef struct stored_row {
    tni_row row;
    struct stored_row *next; /* in the bucket, or in the reserve */
    uint64_t hash;
    tni_backend_entry backend_entries[];
} stored_row;

enum { N_BUCKETS = 256 };

const tni_row tni_row_empty = {0}, tni_row_dropped = {0};

static stored_row *buckets[N_BUCKETS];
static stored_row *reserve;
static size_t n_reserve;
static size_t reserve_entries; /* room for backend entries in each reserved row */

static void free_list(stored_row *row) {
    for (stored_row *next; row; row = next) {
        next = row->next;
        tni_free(row);
    }
}

bool tni_rows_reserve(size_t n, size_t n_backend_entries) {
    /* A key has at most one entry per backend. */
    if (n_backend_entries > (size_t)TN_KEY_COUNT * TNI_MAX_BACKENDS)
        n_backend_entries = (size_t)TN_KEY_COUNT * TNI_MAX_BACKENDS;
    bool is_too_small = n_backend_entries > reserve_entries;
    size_t room = reserve_entries;
    if (is_too_small) {
        room = 4;
        while (room < n_backend_entries)
            room *= 2;
    }
    size_t have = is_too_small ? 0 : n_reserve;
    stored_row *more = NULL, **end = &more;
    for (size_t i = have; i < n; i++) {
        *end = tni_alloc(sizeof **end + room * sizeof(tni_backend_entry));
        if (!*end) {
            free_list(more);
            return false;
        }
        (*end)->next = NULL;
        end = &(*end)->next;
    }
    if (is_too_small) {
        free_list(reserve);
        reserve = NULL;
    }
    *end = reserve;
    reserve = more;
    n_reserve = have > n ? have : n;
    reserve_entries = room;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t mix_entry(uint64_t hash, tni_entry entry) {
    return mix(mix(hash, (uint64_t)(uintptr_t)entry.fn), (uint64_t)(uintptr_t)entry.user);
}

static uint64_t hash_row(const tni_row *row) {
    uint64_t hash = row->handled;
    for (int key = 0; key < TN_KEY_COUNT; key++)
        hash = mix_entry(hash, row->entries[key]);
    for (uint32_t i = 0; i < row->n_backend_entries; i++) {
        const tni_backend_entry *e = &row->backend_entries[i];
        hash = mix_entry(mix(mix(hash, e->backends), e->key), e->entry);
    }
    return hash;
}

static bool same_entry(tni_entry a, tni_entry b) {
    return a.fn == b.fn && a.user == b.user;
}

static bool same_row(const tni_row *a, const tni_row *b) {
    if (a->handled != b->handled || a->n_backend_entries != b->n_backend_entries)
        return false;
    for (int key = 0; key < TN_KEY_COUNT; key++) {
        if (!same_entry(a->entries[key], b->entries[key]))
            return false;
    }
    for (uint32_t i = 0; i < a->n_backend_entries; i++) {
        const tni_backend_entry *x = &a->backend_entries[i], *y = &b->backend_entries[i];
        if (x->backends != y->backends || x->key != y->key || !same_entry(x->entry, y->entry))
            return false;
    }
    return true;
}

/* Who answers `key`: the operator's own registrations before those for all, the newest first; one
 * that holds for every backend hides all that follow. */
static void resolve_key(stored_row *out, tn_key key, const tn_registration *own,
                        const tn_registration *for_all) {
    const tn_registration *levels[] = {own, for_all};
    uint64_t covered = 0;
    for (int level = 0; level < 2; level++) {
        for (const tn_registration *r = levels[level]; r; r = r->next) {
            if (r->key != key)
                continue;
            if (!r->backends) {
                out->row.entries[key] = r->entry;
                if (r->entry.fn)
                    out->row.handled |= TN_KEY_BIT(key);
                return;
            }
            if (covered & r->backends)
                continue;
            covered |= r->backends;
            out->row.handled |= TN_KEY_BIT(key);
            out->backend_entries[out->row.n_backend_entries++] =
                (tni_backend_entry){r->backends, key, r->entry};
        }
    }
}

const tni_row *tni_row_resolve(const tn_registration *own, const tn_registration *for_all) {
    if (!own && !for_all)
        return &tni_row_empty;
    stored_row *made = reserve;
    made->row = (tni_row){.backend_entries = made->backend_entries};
    for (int key = 0; key < TN_KEY_COUNT; key++)
        resolve_key(made, (tn_key)key, own, for_all);
    if (!made->row.handled)
        return &tni_row_empty;

    made->hash = hash_row(&made->row);
    stored_row **bucket = &buckets[made->hash % N_BUCKETS];
    for (stored_row *old = *bucket; old; old = old->next) {
        if (old->hash == made->hash && same_row(&old->row, &made->row))
            return &old->row;
    }
    reserve = made->next;
    n_reserve--;
    made->next = *bucket;
    *bucket = made;
    return &made->row;
}

tni_entry tni_row_entry(const tni_row *row, tn_key key, uint64_t backends) {
    /* Tensors of the cpu may accompany those of another device (0-dim operands); the call is then
     * the other device's. */
    if (backends & ~TNI_BACKEND_CPU_BIT)
        backends &= ~TNI_BACKEND_CPU_BIT;
    for (uint32_t i = 0; i < row->n_backend_entries; i++) {
        const tni_backend_entry *e = &row->backend_entries[i];
        if (e->key == key && (e->backends & backends))
            return e->entry;
    }
    return row->entries[key];
}

void tni_rows_finish(void) {
    for (int i = 0; i < N_BUCKETS; i++) {
        free_list(buckets[i]);
        buckets[i] = NULL;
    }
    free_list(reserve);
    reserve = NULL;
    n_reserve = reserve_entries = 0;
}
