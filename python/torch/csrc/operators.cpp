/* One function for each operator of PyTorch that one of Tenon answers: the functional form by a call, in-place and out
 * forms by the in-place form where Tenon has it, else by the functional one and a copy. Boxed where its signature is rare. */
#include "python/torch/csrc/arguments.h"
#include "python/torch/csrc/names.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <map>
#include <set>
#include <torch/library.h>

namespace tenon_torch {

namespace {

using torch::jit::Stack;

std::vector<Outcome> &list() {
    static auto *instance = new std::vector<Outcome>;
    return *instance;
}

/* The results of a call: references, each of which is dropped at the end unless it was taken. */
class Results {
  public:
    explicit Results(uint32_t n) : cells(n) {}
    ~Results() {
        for (tn_cell &cell : cells) {
            if (cell.tag == TN_CELL_TENSOR)
                tn_drop(static_cast<tn_tensor *>(cell.v.pointer));
            if (cell.tag != TN_CELL_TENSORS)
                continue;
            for (uint32_t i = 0; i < cell.n; i++)
                tn_drop(static_cast<tn_tensor **>(cell.v.pointer)[i]);
            tn_free_list(&cell);
        }
    }
    Results(const Results &) = delete;
    Results &operator=(const Results &) = delete;

    c10::SmallVector<tn_cell, 4> cells;
};

/* Takes the reference out of its place, unless it is of an input: PyTorch's functional operators never answer with an input's storage. */
template <typename Pointer> at::Tensor result_of(const Arguments &arguments, Pointer &place) {
    auto *t = static_cast<tn_tensor *>(place);
    if (t == nullptr)
        return {};
    if (arguments.is_input(t))
        return adopt(check(tn_clone(t)));
    place = nullptr;
    return adopt_owned(t, arguments.index());
}

/* An operator of PyTorch's, and the one of Tenon that answers. */
struct Answer {
    const Plan plan;
    const c10::FunctionSchema &schema;

    /* The call itself; only those that draw wait for each other. */
    void invoke(const Value *values, const Arguments &arguments, Results &results) const {
        std::optional<DrawFrom> draw;
        if (plan.generator >= 0) {
            const Value &generator = values[plan.generator];
            draw.emplace(generator.is_none() ? std::nullopt
                                             : generator.boxed().toOptional<at::Generator>(),
                         arguments.index());
        }
        check(tn_op_call(arguments.op(), arguments.data(), arguments.size(), results.cells.data()));
    }

    /* Of a functional form with one tensor for a result. */
    at::Tensor one(const Value *values) const {
        TN_SCOPE;
        Arguments arguments(plan, schema, values);
        Results results(1);
        invoke(values, arguments, results);
        return result_of(arguments, results.cells[0].v.pointer);
    }

    /* Of a functional form: all of its results. */
    c10::SmallVector<c10::IValue, 4> all(const Value *values) const {
        TN_SCOPE;
        Arguments arguments(plan, schema, values);
        Results results(plan.n_rets);
        invoke(values, arguments, results);
        c10::SmallVector<c10::IValue, 4> given;
        for (tn_cell &cell : results.cells) {
            if (cell.tag != TN_CELL_TENSORS) {
                given.push_back(result_of(arguments, cell.v.pointer));
                continue;
            }
            c10::List<at::Tensor> list;
            for (uint32_t i = 0; i < cell.n; i++)
                list.push_back(result_of(arguments, static_cast<tn_tensor **>(cell.v.pointer)[i]));
            given.push_back(list);
        }
        return given;
    }

    /* Of an in-place form: what it writes is what it is given first. */
    void write(const Value *values, size_t n) const {
        TORCH_CHECK(values[0].is_tensor(), schema.name(), " of no tensor");
        const at::Tensor &self = values[0].tensor();
        TORCH_CHECK(self.is_privateuseone(), schema.name(), " writes a tensor on ", self.device(),
                    ", other arguments are on a device of Tenon; copy one of them with .to(...)");
        if (!self.is_non_overlapping_and_dense())
            at::assert_no_internal_overlap(self);
        for (size_t i = 1; i < n; i++)
            if (values[i].is_tensor() && shares_storage(self, values[i].tensor()))
                at::assert_no_partial_overlap(self, values[i].tensor());
        TN_SCOPE;
        Arguments arguments(plan, schema, values);
        Results results(plan.n_rets);
        invoke(values, arguments, results);
    }

  private:
    static bool shares_storage(const at::Tensor &a, const at::Tensor &b) {
        return a.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() ==
               b.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    }
};

/* The arguments of a boxed call. */
class Boxed {
  public:
    Boxed(const Stack &stack, size_t n) {
        for (size_t i = stack.size() - n; i < stack.size(); i++)
            values.emplace_back(stack[i]);
    }
    const Value *data() const {
        return values.data();
    }

  private:
    c10::SmallVector<Value, 12> values;
};

class Functional final : public c10::OperatorKernel {
  public:
    explicit Functional(Answer answer) : answer(std::move(answer)) {}
    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
        size_t n = op.schema().arguments().size();
        auto results = answer.all(Boxed(*stack, n).data());
        stack->resize(stack->size() - n);
        for (auto &result : results)
            stack->push_back(std::move(result));
    }

  private:
    const Answer answer;
};

class Inplace final : public c10::OperatorKernel {
  public:
    explicit Inplace(Answer answer) : answer(std::move(answer)) {}
    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
        size_t n = op.schema().arguments().size();
        answer.write(Boxed(*stack, n).data(), n);
        stack->resize(stack->size() - n + 1); /* the first argument is the result */
    }

  private:
    const Answer answer;
};

/* ---- without boxes ----------------------------------------------------------------------- */

/* Most operators have one of few signatures in C++, and a call of such a one need not be boxed: boxes take half as long as the rest. Which
 * operator has which is found out from its schema, so that none is named here. */

template <typename F> struct Unboxed;

template <typename... Args> struct Unboxed<at::Tensor(Args...)> {
    static constexpr bool writes = false;
    static torch::CppFunction of(const Answer &answer) {
        return torch::CppFunction([answer](Args... args) -> at::Tensor {
            Value values[] = {Value(args)...};
            return answer.one(values);
        });
    }
};

template <typename... Args> struct Unboxed<at::Tensor &(at::Tensor &, Args...)> {
    static constexpr bool writes = true;
    static torch::CppFunction of(const Answer &answer) {
        return torch::CppFunction([answer](at::Tensor &self, Args... args) -> at::Tensor & {
            Value values[] = {Value(self), Value(args)...};
            answer.write(values, 1 + sizeof...(args));
            return self;
        });
    }
};

struct Signature {
    bool writes;
    std::unique_ptr<c10::FunctionSchema> schema;
    torch::CppFunction (*of)(const Answer &);
};

template <typename... F> std::vector<Signature> signatures_of() {
    std::vector<Signature> list;
    (list.push_back(
         {Unboxed<F>::writes, c10::detail::inferFunctionSchemaFromFunctor<F>(), Unboxed<F>::of}),
     ...);
    return list;
}

const std::vector<Signature> &signatures() {
    using T = const at::Tensor &;
    using S = const at::Scalar &;
    using Type = std::optional<at::ScalarType>;
    static const auto *all = new std::vector<Signature>(
        signatures_of<at::Tensor(T), at::Tensor(T, T), at::Tensor(T, T, T), at::Tensor(T, S),
                      at::Tensor(T, T, S), at::Tensor(T, S, S), at::Tensor(T, T, T, S),
                      at::Tensor(T, T, T, S, S), at::Tensor(T, int64_t), at::Tensor(T, T, int64_t),
                      at::Tensor(T, int64_t, bool), at::Tensor(T, int64_t, T),
                      at::Tensor(T, int64_t, T, bool), at::Tensor(T, T, int64_t, at::ScalarType),
                      at::Tensor(T, Type), at::Tensor(T, at::IntArrayRef, bool),
                      at::Tensor(T, at::OptionalIntArrayRef, bool, Type),
                      at::Tensor &(at::Tensor &), at::Tensor &(at::Tensor &, T),
                      at::Tensor &(at::Tensor &, S), at::Tensor &(at::Tensor &, T, T),
                      at::Tensor &(at::Tensor &, T, S), at::Tensor &(at::Tensor &, S, S),
                      at::Tensor &(at::Tensor &, T, T, S)>());
    return *all;
}

bool has_signature(const c10::FunctionSchema &schema, const Signature &signature) {
    const auto &a = schema.arguments(), &b = signature.schema->arguments();
    bool writes = !a.empty() && a[0].alias_info() != nullptr;
    bool same = writes == signature.writes && a.size() == b.size() && schema.returns().size() == 1;
    for (size_t i = 0; same && i < a.size(); i++)
        same = *a[i].real_type() == *b[i].real_type();
    return same && *schema.returns()[0].real_type() == *signature.schema->returns()[0].real_type();
}

torch::CppFunction function_of(const Answer &answer, bool inplace) {
    for (const Signature &signature : signatures())
        if (has_signature(answer.schema, signature))
            return signature.of(answer);
    return inplace ? torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Inplace>(answer))
                   : torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Functional>(answer));
}

/* Results of the functional form, copied to where they are wanted. */
class Copied final : public c10::OperatorKernel {
  public:
    Copied(Answer answer, bool inplace) : answer(std::move(answer)), inplace(inplace) {}
    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
        size_t n = op.schema().arguments().size(), n_outputs = op.schema().returns().size();
        const c10::IValue *values = stack->data() + stack->size() - n;
        auto results = answer.all(Boxed(*stack, n).data());
        std::vector<at::Tensor> outputs;
        for (size_t i = 0; i < n_outputs; i++)
            outputs.push_back(values[inplace ? i : n - n_outputs + i].toTensor());
        for (size_t i = 0; i < n_outputs; i++)
            copy(op.schema().name(), outputs[i], results[i].toTensor());
        stack->resize(stack->size() - n);
        for (at::Tensor &output : outputs)
            stack->push_back(std::move(output));
    }

  private:
    void copy(const std::string &name, at::Tensor &output, const at::Tensor &result) const {
        TORCH_CHECK(c10::canCast(result.scalar_type(), output.scalar_type()), "result type ",
                    result.scalar_type(), " can't be cast to the desired output type ",
                    output.scalar_type());
        TORCH_CHECK(output.device() == result.device(), name, ": the output is on ",
                    output.device(), ", the arguments on ", result.device());
        TORCH_CHECK(!inplace || output.sizes() == result.sizes(), "output with shape ",
                    output.sizes(), " doesn't match the broadcast shape ", result.sizes());
        if (!inplace)
            at::native::resize_output(output, result.sizes());
        output.copy_(result);
    }

    const Answer answer;
    const bool inplace;
};

/* ---- registration ------------------------------------------------------------------------ */

std::string short_name(const c10::OperatorName &name) {
    return name.name.substr(6) +
           (name.overload_name.empty() ? "" : "." + name.overload_name); /* behind "aten::" */
}

const Name *find_name(const std::string &torch) {
    for (int i = 0; i < n_names; i++)
        if (torch == names[i].torch)
            return &names[i];
    return nullptr;
}

std::optional<std::string> left_why(const std::string &torch) {
    for (int i = 0; i < n_left_to_torch; i++)
        if (torch == left_to_torch[i].torch)
            return left_to_torch[i].why;
    return {};
}

enum class Form { functional, inplace, out, view, other };

Form form_of(const c10::FunctionSchema &schema) {
    size_t written = 0;
    for (const auto &argument : schema.arguments())
        if (argument.alias_info() != nullptr && argument.alias_info()->isWrite())
            written++;
    bool returns_alias = false;
    for (const auto &result : schema.returns())
        returns_alias |= result.alias_info() != nullptr;
    if (written == 0)
        return returns_alias ? Form::view : Form::functional;
    if (written != schema.returns().size())
        return Form::other;
    const auto &last = schema.arguments().back();
    if (last.is_out())
        return Form::out;
    return written == 1 && schema.arguments()[0].alias_info() != nullptr ? Form::inplace
                                                                         : Form::other;
}

bool is_factory(const c10::FunctionSchema &schema) {
    for (const auto &argument : schema.arguments())
        if (argument.name() == "layout" || argument.name() == "memory_format")
            return true;
    return false;
}

bool returns_tensors(const c10::FunctionSchema &schema) {
    for (const auto &result : schema.returns()) {
        auto kind = result.type()->kind();
        if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType)
            return false;
    }
    return !schema.returns().empty();
}

using ByName = std::multimap<std::string, c10::OperatorHandle>;

/* The functional form of an in-place or out form: the same arguments, outputs aside. */
std::optional<c10::OperatorHandle> functional_of(const c10::FunctionSchema &schema, size_t inputs,
                                                 Form form, const ByName &all) {
    std::string name = schema.name();
    if (form == Form::inplace && name.back() == '_')
        name.pop_back();
    auto [begin, end] = all.equal_range(name);
    for (auto candidate = begin; candidate != end; ++candidate) {
        const auto &other = candidate->second.schema();
        if (other.arguments().size() != inputs || form_of(other) != Form::functional)
            continue;
        bool same = other.returns().size() == schema.returns().size();
        for (size_t i = 0; i < inputs && same; i++)
            same = other.arguments()[i].name() == schema.arguments()[i].name() &&
                   *other.arguments()[i].real_type() == *schema.arguments()[i].real_type();
        if (same)
            return candidate->second;
    }
    return {};
}

std::optional<Plan> plan_of(const std::string &torch, const c10::FunctionSchema &schema,
                            size_t inputs, std::string &tenon, std::string &why) {
    const Name *name = find_name(torch);
    tenon = name != nullptr ? name->tenon : torch;
    auto plan =
        plan_for(schema, inputs, tenon.c_str(), name != nullptr ? name->arguments : "", why);
    return plan;
}

struct Registration {
    torch::Library &library;
    const ByName &all;

    void consider(const c10::OperatorHandle &op) const {
        const auto &schema = op.schema();
        std::string name = short_name(op.operator_name()), tenon, why;
        Form form = form_of(schema);
        if (form == Form::view || form == Form::other || is_factory(schema) ||
            !returns_tensors(schema))
            return;
        if (auto reason = left_why(name)) {
            list().push_back({name, "left to PyTorch", *reason});
            return;
        }
        size_t inputs = form == Form::out ? schema.arguments().size() - schema.returns().size()
                                          : schema.arguments().size();
        if (form != Form::out) {
            auto plan = plan_of(name, schema, inputs, tenon, why);
            if (plan && plan->n_rets == schema.returns().size()) {
                list().push_back({name, "operator", tenon});
                library.impl(name.c_str(), function_of({*plan, schema}, form == Form::inplace));
                return;
            }
            if (plan)
                why = tenon + " has " + std::to_string(plan->n_rets) + " results";
            if (form == Form::functional) {
                if (tn_op_find(tenon.c_str()) == nullptr)
                    tn_error_clear(); /* nothing of that name: no news */
                else
                    list().push_back({name, "skipped", why});
                return;
            }
        }
        auto functional = functional_of(schema, inputs, form, all);
        if (!functional)
            return;
        std::string base = short_name(functional->operator_name());
        if (left_why(base))
            return;
        auto plan = plan_of(base, functional->schema(), inputs, tenon, why);
        if (!plan || plan->n_rets != schema.returns().size())
            return;
        list().push_back({name, "copy of " + base, tenon});
        library.impl(name.c_str(),
                     torch::CppFunction::makeFromBoxedFunctor(
                         std::make_unique<Copied>(Answer{*plan, schema}, form == Form::inplace)));
    }
};

} // namespace

const std::vector<Outcome> &outcomes() {
    return list();
}

/* Operators with a CompositeImplicit kernel are PyTorch's to compose: a kernel of ours would hide their gradients. */
void register_operators(const std::set<std::string> &by_hand) {
    static auto *library =
        new torch::Library(torch::Library::IMPL, "aten", backend_key, __FILE__, __LINE__);
    auto &dispatcher = c10::Dispatcher::singleton();
    ByName all;
    for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
        if (name.name.rfind("aten::", 0) != 0)
            continue;
        if (auto op = dispatcher.findSchema(name))
            all.emplace(name.name, *op);
    }
    Registration registration{*library, all};
    for (const auto &[full, op] : all) {
        std::string name = short_name(op.operator_name());
        if (by_hand.count(name) != 0)
            list().push_back({name, "by hand", ""});
        else if (!op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
            registration.consider(op);
    }
}

} // namespace tenon_torch
