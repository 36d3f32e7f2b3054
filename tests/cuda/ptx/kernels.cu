// What test_ptx_warps.c runs. kernels.ptx is what NVRTC 13 makes of it for compute_80:
//     build/tests/cuda/ptx/nvrtc tests/cuda/ptx/kernels.cu 80 > tests/cuda/ptx/kernels.ptx
typedef unsigned int u32;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
#define ALL 0xffffffffu
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

// ---- lanes that part and meet ---------------------------------------------------------------

KERNEL collatz(u32 *out) {
    u32 n = AT + 1, steps = 0;
    for (; n != 1; steps++) {
        if (n % 2)
            n = 3 * n + 1;
        else
            n /= 2;
        if (steps == 1000)
            break;
    }
    out[AT] = steps;
}

// How many lanes went together through what follows a loop of different lengths.
KERNEL meets_again(u32 *out) {
    volatile u32 sum = 0;
    for (u32 k = 0; k < threadIdx.x % 7; k++)
        sum += k;
    __syncwarp();
    out[AT] = __popc(__activemask());
}

KERNEL switches(u32 *out, const u32 *in) {
    u32 x = in[AT];
    switch (x) {
    case 0: x = 100; break;
    case 1: x = x * 7 + 3; break;
    case 2: x = __clz(x); break;
    case 3: x = __popc(0x12345 * x); break;
    case 4: x = x ^ 0x55; break;
    case 5: x = x << 9; break;
    case 6: x = 1000 / x; break;
    case 7: x = ~x; break;
    case 8: x = __brev(x); break;
    default: x = 0; break;
    }
    out[AT] = x;
}

KERNEL leaves_early(u32 *out, u32 n) {
    if (AT >= n)
        return;
    __shared__ u32 count;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    atomicAdd(&count, 1u);
    __syncthreads();
    out[AT] = count;
}

// A lock that lanes of one warp hold in turns.
KERNEL takes_turns(u32 *lock, u32 *count) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0u, 1u) == 0) {
            *(volatile u32 *)count = *(volatile u32 *)count + 1;
            __threadfence();
            atomicExch(lock, 0u);
            done = true;
        }
    }
}

// The first warp waits for the last without a barrier.
KERNEL waits_for_flag(u32 *out) {
    __shared__ volatile u32 flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x / 32 == blockDim.x / 32 - 1)
        flag = 17;
    else
        while (flag == 0) {
        }
    out[AT] = flag;
}

// ---- barriers -------------------------------------------------------------------------------

KERNEL sums(u32 *out, const u32 *in) {
    __shared__ u32 part[256];
    part[threadIdx.x] = in[AT];
    for (u32 half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}

KERNEL sums_dynamic(u32 *out, const u32 *in) {
    extern __shared__ u32 dynamic[];
    __shared__ u32 fixed[4];
    if (threadIdx.x < 4)
        fixed[threadIdx.x] = threadIdx.x;
    dynamic[threadIdx.x] = in[AT];
    __syncthreads();
    u32 sum = 0;
    for (u32 k = 0; k < blockDim.x; k++)
        sum += dynamic[k];
    out[AT] = sum + fixed[threadIdx.x % 4];
}

KERNEL counts(u32 *out, const u32 *in) {
    int n = __syncthreads_count(in[AT] & 1), all = __syncthreads_and(in[AT] < 1000), any = __syncthreads_or(in[AT] == 5);
    out[AT] = n * 4 + (all != 0) * 2 + (any != 0);
}

// Two halves of a block, each with a barrier of its own.
KERNEL halves(u32 *out) {
    __shared__ u32 part[128];
    part[threadIdx.x] = threadIdx.x * threadIdx.x;
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    out[AT] = part[threadIdx.x ^ 63];
}

// All write the same.
KERNEL same_value(u32 *out) {
    __shared__ u32 value;
    value = blockIdx.x + 5;
    __syncthreads();
    out[AT] = value;
}

// ---- lanes of a warp ------------------------------------------------------------------------

KERNEL shuffles(u32 *out, const u32 *in) {
    u32 x = in[AT], lane = threadIdx.x % 32;
    out[8 * AT + 0] = __shfl_xor_sync(ALL, x, 5);
    out[8 * AT + 1] = __shfl_up_sync(ALL, x, 3);
    out[8 * AT + 2] = __shfl_down_sync(ALL, x, 7, 16);
    out[8 * AT + 3] = __shfl_sync(ALL, x, lane * 5 + 1, 8);
    out[8 * AT + 4] = __shfl_up_sync(ALL, x, 1, 4);
    out[8 * AT + 5] = (u32)(__shfl_xor_sync(ALL, (u64)x << 20, 16) >> 20);
    float sum = (float)x;
    for (int k = 16; k; k /= 2)
        sum += __shfl_xor_sync(ALL, sum, k);
    out[8 * AT + 6] = (u32)sum;
    u32 half;
    if (lane < 16)
        half = __shfl_xor_sync(0x0000ffffu, x, 1);
    else
        half = __shfl_xor_sync(0xffff0000u, x + 1, 2);
    out[8 * AT + 7] = half;
}

KERNEL votes(u32 *out, const u32 *in) {
    u32 x = in[AT];
    out[8 * AT + 0] = __ballot_sync(ALL, x & 1);
    out[8 * AT + 1] = __any_sync(ALL, x == 3) + 2 * __all_sync(ALL, x < 100000) + 4 * __uni_sync(ALL, x & 1);
    out[8 * AT + 2] = __match_any_sync(ALL, x % 5);
    int same;
    out[8 * AT + 3] = __match_all_sync(ALL, x / 100000, &same);
    out[8 * AT + 4] = same != 0;
    u32 odd = 0;
    if (threadIdx.x & 1)
        odd = __ballot_sync(0xaaaaaaaau, x & 2);
    out[8 * AT + 5] = odd;
#if __CUDA_ARCH__ >= 800
    out[8 * AT + 6] = __reduce_add_sync(ALL, x) ^ __reduce_max_sync(ALL, x);
    out[8 * AT + 7] = (u32)__reduce_min_sync(ALL, (int)x - 50) ^ __reduce_xor_sync(ALL, x);
#endif
}

// ---- memory ---------------------------------------------------------------------------------

__constant__ float table[8] = {1.5f, -2.0f, 3.25f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f};
__device__ u32 counter = 40;
__device__ const char *const names[2] = {"seven", "one"};

KERNEL variables(float *out, u32 *length) {
    out[AT] = table[AT % 8];
    if (threadIdx.x == 0)
        atomicAdd(&counter, 2u);
    __syncthreads();
    u32 n = 0;
    while (names[AT % 2][n])
        n++;
    length[AT] = n * 100 + counter;
}

static __device__ __noinline__ u32 sum_of(const u32 *at, u32 n) {
    u32 sum = 0;
    for (u32 k = 0; k < n; k++)
        sum += at[k];
    return sum;
}

// One function reads global, shared and local memory.
KERNEL generic(u32 *out, const u32 *in) {
    __shared__ u32 shared[32];
    u32 local[8];
    for (u32 k = 0; k < 8; k++)
        local[(k + threadIdx.x) % 8] = in[AT] * k;
    shared[threadIdx.x % 32] = threadIdx.x % 32;
    __syncthreads();
    const u32 *at = threadIdx.x % 3 == 0 ? in : threadIdx.x % 3 == 1 ? shared : local;
    out[AT] = sum_of(at, 8);
}

struct pair {
    double a;
    u32 b;
    unsigned char c[5];
};
static __device__ __noinline__ pair twice(pair x, float factor) {
    x.a = x.a * factor + x.b;
    x.b += x.c[threadIdx.x % 5];
    x.c[2] += 3;
    return x;
}
static __device__ __noinline__ pair four_times(pair x) {
    if (threadIdx.x & 1)
        x = twice(x, 2.0f);
    else
        x.b = 9;
    return twice(x, 0.5f);
}
KERNEL calls(double *out, u32 *more) {
    pair x = {(double)AT, AT + 1, {1, 2, 3, 4, 5}};
    x = four_times(x);
    out[AT] = x.a;
    more[AT] = x.b * 256 + x.c[2];
}

KERNEL vectors(float4 *out, const float4 *in, uchar4 *small, short2 *pairs) {
    float4 v = in[AT];
    out[AT] = make_float4(v.w, v.z + 1, v.y, v.x);
    uchar4 s = small[AT];
    small[AT] = make_uchar4(s.w, s.x, s.y, s.z);
    short2 p = pairs[AT];
    pairs[AT] = make_short2(p.y, (short)-p.x);
}

KERNEL atomics(int *i, float *f, double *d, u64 *u, u32 *w, int *least, int *most) {
    atomicAdd(i, (int)AT - 100);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicAdd(u, (u64)AT << 32);
    atomicInc(w, 99u);
    atomicMin(least, -(int)(AT * 7919 % 1000));
    atomicMax(most, (int)(AT * 7919 % 1000));
    atomicXor(w + 1, 1u << AT % 32);
    atomicOr(w + 2, 1u << AT % 32);
    atomicAnd(w + 3, ~(1u << AT % 31));
    u32 old = w[4], seen;
    do {
        seen = old;
        old = atomicCAS(w + 4, seen, seen * 3 + 1);
    } while (old != seen);
    __shared__ u32 inside;
    if (threadIdx.x == 0)
        inside = 0;
    __syncthreads();
    atomicAdd(&inside, threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicExch(w + 5, inside);
}

#if __CUDA_ARCH__ >= 800
KERNEL asynchronous(float *out, const float *in, u32 n) {
    __shared__ __align__(16) float part[2][128];
    for (u32 k = 0; k < 2; k++) {
        u32 to = (u32)__cvta_generic_to_shared(&part[k][threadIdx.x * 4]);
        u32 first = k * 128 + threadIdx.x * 4, bytes = first < n ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + first), "r"(bytes));
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    float first = part[0][threadIdx.x * 4 ^ 4];
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = first + part[1][threadIdx.x * 4 ^ 4];
}

// Reads what it does not wait for.
KERNEL impatient(float *out, const float *in) {
    __shared__ __align__(16) float part[128];
    u32 to = (u32)__cvta_generic_to_shared(&part[threadIdx.x * 4]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + threadIdx.x * 4));
    asm volatile("cp.async.commit_group;");
    out[threadIdx.x] = part[threadIdx.x * 4];
}
#endif

// ---- what must not be -----------------------------------------------------------------------

KERNEL reads_at(u32 *out, const u32 *in, long long index) {
    out[AT] = in[AT == 37 ? index : 0];
}
KERNEL writes_at(unsigned char *out, long long offset) {
    *(u32 *)(out + (threadIdx.x == 3 ? offset : 0)) = 7;
}
KERNEL reads_wide(float4 *out, const float *in, u32 offset) {
    out[threadIdx.x] = *(const float4 *)(in + offset);
}
KERNEL shared_at(u32 *out, u32 index) {
    __shared__ u32 part[64];
    part[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x == 5 ? index : 0];
}
KERNEL local_at(u32 *out, u32 index) {
    u32 local[16];
    for (u32 k = 0; k < 16; k++)
        local[k] = out[k];
    out[threadIdx.x] = local[threadIdx.x == 6 ? index : 0];
}
KERNEL atomic_at(u32 *out, u64 offset) {
    atomicAdd((u32 *)((char *)out + offset), 1u);
}
KERNEL traps(u32 *out, u32 which) {
    if (AT == which)
        asm volatile("trap;");
    out[AT] = 1;
}
// The last warp never comes.
KERNEL never_passes(u32 *out) {
    if (threadIdx.x / 32 != blockDim.x / 32 - 1)
        asm volatile("bar.sync 3, %0;" ::"r"(blockDim.x));
    out[AT] = 1;
}
// Lanes wait for those that wait for the block.
KERNEL waits_apart(u32 *out) {
    if (threadIdx.x & 1)
        __syncwarp(ALL);
    else
        asm volatile("barrier.sync 0;");
    out[AT] = 1;
}
KERNEL parts_at_barrier(u32 *out) {
    if (threadIdx.x & 1) {
        out[AT] = 1;
        asm volatile("bar.sync 0;");
    } else {
        out[AT] = 2;
        asm volatile("bar.sync 0; // the other");
    }
}
KERNEL wrong_mask(u32 *out) {
    out[AT] = __shfl_sync(0x0000ffffu, AT, 0);
}

// ---- races ----------------------------------------------------------------------------------

KERNEL races(u32 *out, u32 which) {
    __shared__ volatile u32 x[64];
    __shared__ u32 count;
    u32 t = threadIdx.x, got = 0;
    if (which == 0) { // between lanes
        x[t] = t;
        got = x[t ^ 1];
    } else if (which == 1) {
        x[t] = t;
        __syncwarp();
        got = x[t ^ 1];
    } else if (which == 2) { // between warps
        x[t] = t;
        __syncwarp();
        got = x[t ^ 32];
    } else if (which == 3) {
        x[t] = t;
        __syncthreads();
        got = x[t ^ 32];
    } else if (which == 4) { // written after others read
        got = x[t];
        __syncthreads();
        got += x[t ^ 32];
        x[t] = 5;
    } else if (which == 5) { // all write the same
        x[0] = 7;
        __syncthreads();
        got = x[0];
    } else if (which == 6) { // written twice
        x[0] = t;
        __syncthreads();
        got = x[0];
    } else if (which == 7) {
        atomicAdd(&count, 1u);
        __syncthreads();
        got = count;
    } else if (which == 8) { // read while others count
        atomicAdd(&count, 1u);
        got = *(volatile u32 *)&count;
    }
    out[AT] = got;
}
