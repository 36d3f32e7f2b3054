/* Operators without tensor arguments. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

void tc_reference_fill(tc_invocation *call) {
    const tc_value *value = &call->args[TN_ARG_fill_value];
    for (int64_t i = 0; i < call->outs[0].tensor.shape.numel; i++)
        tc_out(call, 0)[i] = (tc_number){value->f, value->i};
}

void tc_reference_arange(tc_invocation *call) {
    const tc_value *start = &call->args[TN_ARG_arange_start],
                   *step = &call->args[TN_ARG_arange_step];
    for (int64_t i = 0; i < call->outs[0].tensor.shape.numel; i++) {
        tc_real value = (tc_real)start->f + (tc_real)i * (tc_real)step->f;
        tc_out(call, 0)[i] = (tc_number){value, tc_wrap_add(start->i, tc_wrap_mul(i, step->i))};
        call->outs[0].rounding[i] =
            0x1p-52L * (fabsl((tc_real)start->f) + fabsl((tc_real)i * step->f));
    }
}

/* Philox 4x32-10: J. Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011. */
static uint32_t philox_word(uint64_t key, uint64_t offset, uint64_t word) {
    uint64_t block = offset + word / 4;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
        uint64_t p0 = (uint64_t)0xD2511F53 * c[0], p1 = (uint64_t)0xCD9E8D57 * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        for (int w = 0; w < 4; w++)
            c[w] = next[w];
    }
    return c[word % 4];
}

/* From block `offset` on. */
static void random_bits(tc_invocation *call, uint64_t key, uint64_t offset) {
    for (int64_t i = 0; i < call->outs[0].tensor.shape.numel; i++) {
        uint64_t at = (uint64_t)i;
        tc_out(call, 0)[i].i =
            call->types[0] == TN_I32
                ? (int32_t)philox_word(key, offset, at)
                : (int64_t)(philox_word(key, offset, 2 * at) |
                            (uint64_t)philox_word(key, offset, 2 * at + 1) << 32);
    }
}

void tc_reference_random_bits(tc_invocation *call) {
    random_bits(call, (uint64_t)call->args[TN_ARG_random_bits_seed].i,
                (uint64_t)call->args[TN_ARG_random_bits_offset].i);
}

void tc_reference_random_bits_from(tc_invocation *call) {
    const tc_number *state = call->args[TN_ARG_random_bits_from_state].tensor.values;
    random_bits(call, (uint64_t)state[0].i,
                (uint64_t)tc_wrap_add(state[1].i, call->args[TN_ARG_random_bits_from_offset].i));
}
