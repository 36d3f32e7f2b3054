/* What this suite writes over memory that a plugin must not look at any more: where such a byte comes
 * back, something was used after its time. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_POISON_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_POISON_H

#include <tenon/requirements.h>

enum {
    TC_POISON_SOURCE = 0xee, /* the source of a write, once copy_from_host has returned */
    TC_POISON_TARGET = 0xe7, /* the target of a read, before it */
    TC_POISON_FREED = 0xdd,  /* blocks of host->alloc, once they are given back */
    TC_POISON_CALL = 0xa5    /* a tn_call and all it points to, once `run` has returned */
};

/* What a byte that is wrong says: "; 0xdd is ...", or "" where it is none of these. */
static inline const char *tc_poison_text(unsigned char byte) {
    switch (byte) {
    case TC_POISON_SOURCE:
        return "; 0xee is what this suite writes over the source of a write once copy_from_host "
               "has "
               "returned, so that was read later";
    case TC_POISON_TARGET:
        return "; 0xe7 is what this suite fills the target of a read with before it, so nothing "
               "has "
               "arrived there";
    case TC_POISON_FREED:
        return "; 0xdd is what this suite fills blocks with that are given back to host->dealloc, "
               "so "
               "one was used after that";
    case TC_POISON_CALL:
        return "; 0xa5 is what this suite fills a tn_call and its arguments with once run has "
               "returned, so one was read after that";
    default:
        return "";
    }
}

/* The requirement that such a byte breaks; `otherwise` for any other byte. */
static inline tn_requirement tc_poison_breaks(unsigned char byte, tn_requirement otherwise) {
    return byte == TC_POISON_SOURCE   ? TNP_WRITE_CONSUMES_SOURCE
           : byte == TC_POISON_TARGET ? TNP_READ_COMPLETE
                                      : otherwise;
}

#endif
