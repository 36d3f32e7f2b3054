/* The functions of OpenCL C 1.2 that device code uses, as chapter 6.12 of its
 * specification has them. For compilers that would otherwise read a megabyte of declarations for
 * each program. */
#define OVERLOADED __attribute__((overloadable))
#define OF_VALUES __attribute__((overloadable, const))
#define OF_MEMORY __attribute__((overloadable, pure))

/* ---- work items -------------------------------------------------------------------------- */

size_t OF_VALUES get_global_id(uint d);
size_t OF_VALUES get_local_id(uint d);
size_t OF_VALUES get_local_size(uint d);
size_t OF_VALUES get_group_id(uint d);
size_t OF_VALUES get_num_groups(uint d);
void OVERLOADED __attribute__((convergent)) barrier(cl_mem_fence_flags fences);
int OVERLOADED atomic_cmpxchg(volatile __global int *p, int expected, int value);

/* ---- numbers ----------------------------------------------------------------------------- */

ulong OF_VALUES mul_hi(ulong a, ulong b);

#define DECLARE_FUNCTIONS(T) \
    T OF_VALUES acos(T x); \
    T OF_VALUES acosh(T x); \
    T OF_VALUES asin(T x); \
    T OF_VALUES asinh(T x); \
    T OF_VALUES atan(T x); \
    T OF_VALUES atan2(T y, T x); \
    T OF_VALUES atanh(T x); \
    T OF_VALUES ceil(T x); \
    T OF_VALUES copysign(T x, T y); \
    T OF_VALUES cos(T x); \
    T OF_VALUES cosh(T x); \
    T OF_VALUES erf(T x); \
    T OF_VALUES erfc(T x); \
    T OF_VALUES exp(T x); \
    T OF_VALUES exp2(T x); \
    T OF_VALUES expm1(T x); \
    T OF_VALUES fabs(T x); \
    T OF_VALUES floor(T x); \
    T OF_VALUES fma(T x, T y, T z); \
    T OF_VALUES fmod(T x, T y); \
    T OF_VALUES ldexp(T x, int e); \
    T OF_VALUES log(T x); \
    T OF_VALUES log10(T x); \
    T OF_VALUES log1p(T x); \
    T OF_VALUES log2(T x); \
    T OF_VALUES pow(T x, T y); \
    T OF_VALUES rint(T x); \
    T OF_VALUES sin(T x); \
    T OF_VALUES sinh(T x); \
    T OF_VALUES sqrt(T x); \
    T OF_VALUES tan(T x); \
    T OF_VALUES tanh(T x); \
    T OF_VALUES trunc(T x); \
    void OVERLOADED vstore_half_rte(T value, size_t i, half *p);

/* ---- vectors ----------------------------------------------------------------------------- */

float OF_MEMORY vload_half(size_t i, const half *p);

#define DECLARE_VECTOR(T, n) \
    T##n OF_MEMORY vload##n(size_t i, const __global T *p); \
    T##n OF_MEMORY vload##n(size_t i, const T *p); \
    void OVERLOADED vstore##n(T##n value, size_t i, __global T *p); \
    void OVERLOADED vstore##n(T##n value, size_t i, T *p);
#define DECLARE_VECTORS(T) \
    DECLARE_VECTOR(T, 2) \
    DECLARE_VECTOR(T, 4) \
    DECLARE_VECTOR(T, 8) \
    DECLARE_VECTOR(T, 16)

DECLARE_FUNCTIONS(float)
DECLARE_VECTORS(float)
DECLARE_VECTORS(uint)
DECLARE_VECTORS(ulong)
#if HAS_F64
DECLARE_FUNCTIONS(double)
DECLARE_VECTORS(double)
#endif

#undef OVERLOADED
#undef OF_VALUES
#undef OF_MEMORY
#undef DECLARE_FUNCTIONS
#undef DECLARE_VECTOR
#undef DECLARE_VECTORS
