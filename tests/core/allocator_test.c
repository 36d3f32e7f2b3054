#include "tests/core/allocator_test.h"

tni_block *take(tni_device *d, uint64_t bytes) {
    tni_block *b = tni_block_alloc(d, &d->default_stream, bytes);
    if (!b)
        fail_msg("%s", tn_error_message());
    return b;
}

tni_device *open_with(const char *conf) {
    setenv("TENON_ALLOC_CONF", conf, 1);
    return open_fake();
}

uint64_t n_segments(const tni_device *d) {
    uint64_t n = 0;
    for (tni_segment *s = d->allocator->segments; s; s = s->next)
        n++;
    return n;
}

void check_pools(tni_device *d) {
    tni_allocator *a = d->allocator;
    uint64_t reserved = 0;
    tni_allocator_lock(a);
    for (tni_segment *s = a->segments; s; s = s->next) {
        uint64_t at = 0;
        const tni_block *previous = NULL;
        for (tni_block *b = s->first; b; previous = b, b = b->next) {
            assert_int_equal(b->offset, at);
            assert_ptr_equal(b->previous, previous);
            assert_ptr_equal(b->segment, s);
            assert_int_equal(b->offset % d->alignment, 0);
            assert_false(previous && previous->state == TNI_BLOCK_FREE &&
                         b->state == TNI_BLOCK_FREE);
            at += b->bytes;
        }
        assert_int_equal(at, s->bytes);
        reserved += s->bytes;
    }
    assert_int_equal(reserved, a->reserved_bytes);
    tni_allocator_unlock(a);
}
