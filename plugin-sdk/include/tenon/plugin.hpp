/* tenon/plugin.hpp: what an author in C++ wants beside tenon/plugin.h.
 *
 * C++17, header only, nothing but the standard library; compiles with -fno-rtti. It wraps what C++ makes
 * hard and leaves alone what is plain in C: no exception may cross into the host, host memory comes from
 * the host, tables have no designated initialisers before C++20.
 *
 *     const tn_host *host_of(const tn_device_impl *device);       // once for each handle, see host_of
 *
 *     static void add(const tn_call *call) {                      // throws what it likes
 *         const float *self = tenon::data<const float>(tenon::arg(call, TN_ARG_add_self).tensor());
 *         ...
 *     }
 *     constexpr tn_kernel add_f32 = tenon::kernel(TN_KERNEL_add, TN_KERNEL_HASH_add)
 *                                       .dtypes(tenon::dtype_set<float>)
 *                                       .run<add>();
 *
 * Exceptions. What a function throws below tenon::slot, tenon::guard or a kernel's builder becomes a
 * status, and its text the message that host->fail is given:
 *
 *     tenon::error           its status          std::bad_alloc     TN_ERR_OUT_OF_MEMORY
 *     std::exception         TN_ERR_INTERNAL     anything else      TN_ERR_INTERNAL
 *
 * With -fno-exceptions there is nothing to catch: a guard is the call alone, in which no try block is
 * compiled, and what would throw here calls std::terminate. All files of a plugin are compiled the same
 * way in this. What ends a thread by unwinding (pthread_cancel) must not pass a guard.
 *
 * Ownership. tenon::host_ptr owns an object in host memory; a handle that is given out is `release`d, and
 * `tenon::destroy` ends it. Nothing else here owns anything. Threads. Nothing here has state: all of it
 * may be used by any thread, as far as the host may. */
#ifndef TENON_PLUGIN_HPP
#define TENON_PLUGIN_HPP

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <tenon/plugin.h>

namespace tenon {

/* ---- failures ---------------------------------------------------------------------------- */

/* A status and what to tell the user, formatted as by printf. Copying it does not throw, so work in a
 * queue can keep one until its stream is asked. */
class error : public std::exception {
  public:
    [[gnu::format(printf, 3, 4)]] error(tn_status status, const char *format, ...) noexcept
        : status_(status) {
        std::va_list args;
        va_start(args, format);
        std::vsnprintf(text_, sizeof text_, format, args);
        va_end(args);
    }
    /* Not TN_OK, which is no error: TN_ERR_INTERNAL then. */
    tn_status status() const noexcept {
        return status_ == TN_OK ? TN_ERR_INTERNAL : status_;
    }
    const char *what() const noexcept override {
        return text_;
    }

  private:
    tn_status status_;
    char text_[320];
};

/* host->fail with a message formatted as by printf, for where nothing is thrown. Returns `status`. */
[[gnu::format(printf, 3, 4)]] inline tn_status fail(const tn_host *host, tn_status status,
                                                    const char *format, ...) noexcept {
    char text[320];
    std::va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return host->fail(host, status, text);
}

#if defined(__cpp_exceptions)
/* The exception that is being handled, as an error: for a thread of the plugin's own, which keeps it
 * for the stream. To be called in a catch block. */
inline error current_error() noexcept {
    try {
        throw;
    } catch (const error &e) {
        return e;
    } catch (const std::bad_alloc &) {
        return error(TN_ERR_OUT_OF_MEMORY, "there is no host memory left for this");
    } catch (const std::exception &e) {
        return error(TN_ERR_INTERNAL, "%s", e.what());
    } catch (...) {
        return error(TN_ERR_INTERNAL, "an exception was thrown that is no std::exception");
    }
}
#endif

namespace detail {

inline const char *dtype_name(tn_dtype dtype) noexcept {
    switch (dtype) {
#define TN_DTYPE_CASE(NAME, value, name, bytes, category) \
    case TN_##NAME: \
        return name;
        TN_DTYPE_MAP(TN_DTYPE_CASE)
#undef TN_DTYPE_CASE
    default:
        return "a dtype of a later version";
    }
}

template <class E> [[noreturn]] void raise(const E &e) {
#if defined(__cpp_exceptions)
    throw e;
#else
    static_cast<void>(e);
    std::terminate();
#endif
}

/* What `body` returns, or TN_OK when it returns nothing; of an exception what `on_throw` makes of it. */
template <class Result, class Body, class OnThrow>
Result guarded(Body &&body, [[maybe_unused]] OnThrow &&on_throw) noexcept {
    using Own = decltype(body());
    static_assert((std::is_convertible_v<Own, Result> && !std::is_same_v<Own, bool>) ||
                      (std::is_void_v<Own> && std::is_same_v<Result, tn_status>),
                  "the function returns what the slot does, or void in the place of a tn_status");
#if defined(__cpp_exceptions)
    try {
#endif
        if constexpr (std::is_void_v<Own> && !std::is_void_v<Result>) {
            body();
            return TN_OK;
        } else {
            return body();
        }
#if defined(__cpp_exceptions)
    } catch (...) {
        return on_throw(current_error());
    }
#endif
}

} // namespace detail

/* ---- guards ------------------------------------------------------------------------------ */

/* How the host is reached from the first argument of a slot. The plugin adds one overload for each
 * handle that it has, beside the handle and outside of any namespace, such as
 *
 *     inline const tn_host *host_of(const tn_device_impl *device) { return device->self->host; }
 *
 * It is asked before a slot that frees the handle runs, and must not throw. */
inline const tn_host *host_of(const tn_host *host) noexcept {
    return host;
}

template <class Call, class = std::enable_if_t<std::is_same_v<Call, tn_call>>>
const tn_host *host_of(const Call *call) noexcept {
    return host_of(call->device);
}

/* Runs `body`, which returns a tn_status or nothing; what it throws becomes a status. */
template <class Body> tn_status guard(const tn_host *host, Body &&body) noexcept {
    return detail::guarded<tn_status>(
        body, [&](const error &e) { return host->fail(host, e.status(), e.what()); });
}

namespace detail {

template <auto F, class First, class... Rest> decltype(auto) invoke(First first, Rest... rest) {
    if constexpr (std::is_member_function_pointer_v<decltype(F)>)
        return (first->*F)(rest...);
    else
        return F(first, rest...);
}

/* The function behind a slot that F fills. */
template <auto F, class Result, class First, class... Rest>
Result entry(First first, Rest... rest) noexcept {
    static_assert(std::is_invocable_v<decltype(F), First, Rest...>,
                  "the function does not take the arguments of the slot");
    if constexpr (std::is_same_v<Result, tn_status>) {
        return guarded<tn_status>([&]() -> decltype(auto) { return invoke<F>(first, rest...); },
                                  [&](const error &e) {
                                      const tn_host *host = host_of(first);
                                      return host->fail(host, e.status(), e.what());
                                  });
    } else { /* no failure can be returned, and the handle may be gone */
        const tn_host *host = host_of(first);
        return guarded<Result>([&]() -> decltype(auto) { return invoke<F>(first, rest...); },
                               [&](const error &e) {
                                   host->log_message(host, TN_LOG_ERROR, e.what());
                                   return Result();
                               });
    }
}

template <class Result, class... Args> using function = Result (*)(Args...);

template <auto F> struct slot {
    template <class Result, class... Args>
    constexpr operator function<Result, Args...>() const noexcept {
        return entry<F, Result, Args...>;
    }
};

} // namespace detail

/* The guarded form of F, for any slot of a table whose first argument leads to the host:
 * `ops.alloc = tenon::slot<alloc>`. F is a function with the slot's arguments, or a member function of
 * the handle that comes first; in the place of a tn_status it may return nothing, which is TN_OK. What
 * F throws where the slot can return no failure is logged, and a slot that returns a pointer returns
 * NULL. A function that is noexcept needs no guard. */
template <auto F> inline constexpr detail::slot<F> slot{};

/* ---- host memory ------------------------------------------------------------------------- */

/* For containers: std::vector<int, tenon::host_allocator<int>> v(host). Throws std::bad_alloc. */
template <class T> class host_allocator {
  public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    host_allocator(const tn_host *host) noexcept : host_(host) {}
    template <class U>
    host_allocator(const host_allocator<U> &other) noexcept : host_(other.host()) {}

    T *allocate(std::size_t n) {
        void *p = nullptr;
        if (n <= PTRDIFF_MAX / sizeof(T))
            p = host_->alloc(host_, n ? n * sizeof(T) : 1, alignof(T));
        if (!p)
            detail::raise(std::bad_alloc());
        return static_cast<T *>(p);
    }
    void deallocate(T *p, std::size_t) noexcept {
        host_->dealloc(host_, p);
    }
    const tn_host *host() const noexcept {
        return host_;
    }

  private:
    const tn_host *host_;
};

template <class T, class U>
bool operator==(const host_allocator<T> &a, const host_allocator<U> &b) noexcept {
    return a.host() == b.host();
}
template <class T, class U>
bool operator!=(const host_allocator<T> &a, const host_allocator<U> &b) noexcept {
    return !(a == b);
}

/* Ends an object in host memory. */
template <class T> struct host_delete {
    const tn_host *host = nullptr;

    host_delete() = default;
    host_delete(const tn_host *its_host) noexcept : host(its_host) {}
    void operator()(T *object) const noexcept {
        object->~T();
        host->dealloc(host, object);
    }
};

/* Owns an object in host memory. host_ptr<T>(p, host) takes over what make_host made and release gave. */
template <class T> using host_ptr = std::unique_ptr<T, host_delete<T>>;

/* A T in host memory, an aggregate too, whose last members may be left out. Throws std::bad_alloc, and
 * what T's constructor throws. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
template <class T, class... Args> host_ptr<T> make_host(const tn_host *host, Args &&...args) {
    host_allocator<T> memory(host);
    auto give_back = [&](T *p) { memory.deallocate(p, 1); };
    std::unique_ptr<T, decltype(give_back)> place(memory.allocate(1), give_back);
    if constexpr (std::is_constructible_v<T, Args...>)
        ::new (static_cast<void *>(place.get())) T(std::forward<Args>(args)...);
    else
        ::new (static_cast<void *>(place.get())) T{std::forward<Args>(args)...};
    return host_ptr<T>(place.release(), host);
}
#pragma GCC diagnostic pop

/* Ends what was released from a host_ptr, such as a handle; NULL is allowed. */
template <class T> void destroy(const tn_host *host, T *object) noexcept {
    host_ptr<T>(object, host).reset();
}

/* ---- tables ------------------------------------------------------------------------------ */

/* A table with struct_size set, of a plugin the versions too. The rest is NULL, or 0:
 *
 *     constexpr tn_memory_ops memory_ops = [] {
 *         auto ops = tenon::table<tn_memory_ops>();
 *         ops.alloc = tenon::slot<alloc>;
 *         ...
 *         return ops;
 *     }();
 *
 * constexpr keeps it independent of the order in which files are initialised. */
template <class Table> constexpr Table table() noexcept {
    Table t{};
    t.struct_size = sizeof t;
    if constexpr (std::is_same_v<Table, tn_plugin>) {
        t.abi_version = TN_ABI_VERSION;
        t.abi_required = TN_ABI_TARGET;
    }
    return t;
}

/* A value, for tn_device_ops.property. */
template <class T> tn_cell cell(T value) noexcept {
    tn_cell c{};
    if constexpr (std::is_same_v<T, bool>) {
        c.tag = TN_CELL_BOOL;
        c.v.boolean = value;
    } else if constexpr (std::is_floating_point_v<T>) {
        c.tag = TN_CELL_F64;
        c.v.f64 = value;
    } else if constexpr (std::is_convertible_v<T, const char *>) {
        c.tag = TN_CELL_STRING;
        c.v.string = value;
    } else {
        c.tag = TN_CELL_I64;
        c.v.i64 = static_cast<std::int64_t>(value);
    }
    return c;
}

/* ---- element types ----------------------------------------------------------------------- */

/* The dtype whose elements are of type T. A plugin adds its own for f16 and bf16:
 * template <> struct tenon::element<half> : std::integral_constant<tn_dtype, TN_F16> {}; */
template <class T> struct element;
template <> struct element<float> : std::integral_constant<tn_dtype, TN_F32> {};
template <> struct element<double> : std::integral_constant<tn_dtype, TN_F64> {};
template <> struct element<std::int8_t> : std::integral_constant<tn_dtype, TN_I8> {};
template <> struct element<std::int16_t> : std::integral_constant<tn_dtype, TN_I16> {};
template <> struct element<std::int32_t> : std::integral_constant<tn_dtype, TN_I32> {};
template <> struct element<std::int64_t> : std::integral_constant<tn_dtype, TN_I64> {};
template <> struct element<std::uint8_t> : std::integral_constant<tn_dtype, TN_U8> {};
template <> struct element<bool> : std::integral_constant<tn_dtype, TN_BOOL> {};

/* The mask of the dtypes of these types, as TN_DTYPE_BIT(...) | ... */
template <class... T>
inline constexpr std::uint64_t dtype_set = (TN_DTYPE_BIT(element<T>::value) | ...);

/* ---- views and arguments ----------------------------------------------------------------- */

template <class T> struct span {
    T *data;
    std::size_t size;

    constexpr T *begin() const noexcept {
        return data;
    }
    constexpr T *end() const noexcept {
        return data + size;
    }
    constexpr T &operator[](std::size_t i) const noexcept {
        return data[i];
    }
};

inline span<const std::int64_t> sizes(const tn_tensor_view &view) noexcept {
    return {view.sizes, static_cast<std::size_t>(view.rank)};
}
inline span<const std::int64_t> strides(const tn_tensor_view &view) noexcept {
    return {view.strides, static_cast<std::size_t>(view.rank)};
}

/* The first element, in an allocation that the host reaches at `allocation`. Another dtype than T's
 * throws: the record claims what the kernel does not do. */
template <class T> T *data(const tn_tensor_view &view, void *allocation) {
    if (view.dtype != element<std::remove_cv_t<T>>::value)
        detail::raise(error(TN_ERR_INTERNAL, "a kernel for %s was given %s",
                            detail::dtype_name(element<std::remove_cv_t<T>>::value),
                            detail::dtype_name(view.dtype)));
    return reinterpret_cast<T *>(static_cast<char *>(allocation) + view.offset);
}

/* The same where memory handles are addresses. */
template <class T> T *data(const tn_tensor_view &view) {
    return data<T>(view, reinterpret_cast<void *>(view.memory));
}

/* Argument `position` of a call, TN_ARG_... of tenon/kernels.h. What does not hold an argument of the
 * kind asked for throws; the schema says which kind it is. */
class arg {
  public:
    arg(const tn_call *call, std::uint32_t position) : position_(position) {
        if (position >= call->n_args)
            detail::raise(error(TN_ERR_INTERNAL, "the kernel asks for argument %u of %u", position,
                                call->n_args));
        cell_ = &call->args[position];
    }

    /* Is it there? For those that a schema marks with "?". */
    bool given() const noexcept {
        return cell_->tag != TN_CELL_NONE;
    }
    const tn_tensor_view &tensor() const {
        return *of(TN_CELL_TENSOR).view;
    }
    span<const tn_tensor_view *const> tensors() const {
        return {of(TN_CELL_TENSORS).views, cell_->n};
    }
    std::int64_t i64() const {
        return of(TN_CELL_I64).i64;
    }
    double f64() const {
        return of(TN_CELL_F64).f64;
    }
    bool boolean() const {
        return of(TN_CELL_BOOL).boolean != 0;
    }
    span<const std::int64_t> ints() const {
        return {of(TN_CELL_INTS).ints, cell_->n};
    }
    const char *string() const {
        return of(TN_CELL_STRING).string;
    }
    /* A Scalar, which is an integer, a number or a bool, as a T. */
    template <class T> T scalar() const {
        if (cell_->tag == TN_CELL_I64)
            return static_cast<T>(cell_->v.i64);
        if (cell_->tag == TN_CELL_BOOL)
            return static_cast<T>(cell_->v.boolean);
        return static_cast<T>(f64());
    }

  private:
    const decltype(tn_cell::v) &of(std::uint32_t tag) const {
        if (cell_->tag != tag)
            detail::raise(error(TN_ERR_INTERNAL,
                                "the kernel takes argument %u for a cell of tag %u; it has tag %u",
                                position_, tag, cell_->tag));
        return cell_->v;
    }

    const tn_cell *cell_;
    std::uint32_t position_;
};

/* ---- kernels ----------------------------------------------------------------------------- */

namespace detail {

/* Slots of a kernel whose cookie is a Plan in host memory. */
template <auto Prepare, auto Run> struct planned {
    template <class Result, class Plan>
    static Plan plan_of(Result (*)(const tn_call *, tn_plan *, host_ptr<Plan> &));
    using Plan = decltype(plan_of(Prepare));

    static host_ptr<Plan> take(const tn_call *call) {
        return host_ptr<Plan>(reinterpret_cast<Plan *>(call->cookie), host_of(call));
    }
    static tn_status prepare(const tn_call *call, tn_plan *out) {
        host_ptr<Plan> plan;
        tn_status status = TN_OK;
        if constexpr (std::is_void_v<decltype(Prepare(call, out, plan))>)
            Prepare(call, out, plan);
        else
            status = Prepare(call, out, plan);
        if (status == TN_OK)
            out->cookie = reinterpret_cast<std::uint64_t>(plan.release());
        return status;
    }
    static decltype(auto) run(const tn_call *call) {
        return Run(call, take(call));
    }
    static void abandon(const tn_call *call) {
        take(call);
    }
};

} // namespace detail

/* Builds a record, at compile time: constexpr tn_kernel k = tenon::kernel(...).dtypes(...).run<...>();
 * Each step returns a changed copy. */
class kernel {
  public:
    /* TN_KERNEL_add and TN_KERNEL_HASH_add, for example. */
    constexpr kernel(const char *op, std::uint64_t schema_hash) noexcept {
        record_.op = op;
        record_.schema_hash = schema_hash;
    }

    /* A mask for each type variable, in the order of the schema. */
    template <class... Masks> constexpr kernel dtypes(Masks... masks) const noexcept {
        static_assert(sizeof...(masks) <= TN_KERNEL_MAX_TYPES, "a kernel has eight type variables");
        kernel next = *this;
        std::size_t i = 0;
        for (std::uint64_t mask : {masks...})
            next.record_.dtypes[i++] = mask;
        return next;
    }
    /* TN_KERNEL_STRIDED | ... */
    constexpr kernel flags(std::uint64_t flags) const noexcept {
        kernel next = *this;
        next.record_.flags = flags;
        return next;
    }
    /* What call->user will be; an object that stays. */
    template <class T> constexpr kernel user(T *user) const noexcept {
        kernel next = *this;
        next.record_.user = const_cast<void *>(static_cast<const void *>(user));
        return next;
    }
    /* tn_status or void F(const tn_call *call) */
    template <auto F> constexpr kernel run() const noexcept {
        kernel next = *this;
        next.record_.run = slot<F>;
        return next;
    }
    /* tn_status F(const tn_call *call), which answers TN_OK or TN_ERR_UNSUPPORTED */
    template <auto F> constexpr kernel supports() const noexcept {
        kernel next = *this;
        next.record_.supports = slot<F>;
        return next;
    }
    /* A kernel that plans in one object and uses it in another:
     *
     *     tn_status Prepare(const tn_call *call, tn_plan *out, tenon::host_ptr<my_plan> &plan)
     *     void Run(const tn_call *call, tenon::host_ptr<my_plan> plan)
     *
     * Prepare makes `plan`, sets out->workspace_bytes, and answers TN_OK, or TN_ERR_UNSUPPORTED to be
     * passed over. Run owns the plan, which ends with it unless it was moved to where work is queued.
     * A plan whose call does not come ends in `abandon`, one whose Prepare fails at once. Either may
     * return nothing, which is TN_OK. */
    template <auto Prepare, auto Run> constexpr kernel planned() const noexcept {
        using slots = detail::planned<Prepare, Run>;
        kernel next = run<slots::run>();
        next.record_.prepare = slot<slots::prepare>;
        next.record_.abandon = slot<slots::abandon>;
        return next;
    }

    constexpr operator tn_kernel() const noexcept {
        return record_;
    }

  private:
    tn_kernel record_ = table<tn_kernel>();
};

} // namespace tenon

#endif /* TENON_PLUGIN_HPP */
