/* One boxed function for each operator of PyTorch that one of Tenon answers: the functional form by a call, in-place
 * and out forms by the in-place form where Tenon has it, else by the functional one and a copy. */
#include "python/torch/csrc/names.h"
#include "python/torch/csrc/plan.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type.h>
#include <c10/util/SmallVector.h>
#include <list>
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

/* The arguments of one call: cells, and what they point to. */
class Arguments {
  public:
    Arguments(const Plan &plan, const c10::FunctionSchema &schema, const c10::IValue *values)
        : plan(plan), schema(schema), values(values) {
        find_device();
        for (const Unused &unused : plan.unused)
            refuse_if_set(unused);
        for (const Source &source : plan.sources)
            cells.push_back(cell_of(source));
    }

    const tn_op *op() const {
        return with_scalar ? plan.scalar_op : plan.op;
    }
    c10::DeviceIndex index() const {
        return device;
    }
    const tn_cell *data() const {
        return cells.data();
    }
    uint32_t size() const {
        return static_cast<uint32_t>(cells.size());
    }
    /* Does a result live in the storage of an argument? */
    bool is_input(tn_tensor *t) const {
        for (tn_tensor *input : inputs)
            if (tn_shares_storage(input, t))
                return true;
        return false;
    }

  private:
    void look_at(const at::Tensor &t, const std::string &name) {
        if (!t.defined() || t.device().type() != device_type)
            return;
        c10::DeviceIndex i = t.device().index();
        TORCH_CHECK(device < 0 || device == i, schema.name(), ": ", name, " is on ", device_text(i),
                    ", arguments before it on ", device_text(device),
                    "; tensors of one call must be on one device (x.to(...) copies)");
        device = i;
    }
    void find_device() {
        for (const Source &source : plan.sources) {
            if (source.from < 0)
                continue;
            const c10::IValue &value = values[source.from];
            if (source.kind == Kind::tensor && value.isTensor())
                look_at(value.toTensor(), source.name);
            else if (source.kind == Kind::tensors && value.isList())
                for (const c10::IValue &entry : value.toListRef())
                    if (entry.isTensor())
                        look_at(entry.toTensor(), source.name);
        }
        if (device < 0)
            device = current_device();
    }

    void refuse_if_set(const Unused &unused) {
        const c10::IValue &value = values[unused.at];
        if (value.isNone() || (value.isBool() && !value.toBool()))
            return;
        if (value.isList() && value.toListRef().empty())
            return;
        if (value.isTensor() && !value.toTensor().defined())
            return;
        if (unused.value.has_value() && (value.isInt() || value.isBool() || value.isDouble()) &&
            value == *unused.value)
            return;
        TORCH_CHECK_NOT_IMPLEMENTED(false, schema.name(), " with ", unused.name, "=", value,
                                    " is not there on ", device_text(device), ": Tenon's ",
                                    tn_op_schema(plan.op), " has no such argument");
    }

    static tn_cell none() {
        return {};
    }
    tn_cell tensor_cell(tn_tensor *t) {
        tn_cell cell = {};
        cell.tag = TN_CELL_TENSOR;
        cell.v.pointer = t;
        inputs.push_back(t);
        return cell;
    }

    /* A tensor of the CPU is taken where PyTorch takes it: of rank 0, beside tensors of the device. A Python number becomes one,
     * which does not promote as other tensors do. */
    tn_cell number_on_cpu(const at::Tensor &t, const Source &source) {
        TORCH_CHECK(t.device().is_cpu() && t.dim() == 0, schema.name(), ": ", source.name,
                    " is on ", t.device(), ", other arguments on ", device_text(device),
                    "; copy it with .to(\"", c10::Device(device_type, device).str(), "\")");
        bool is_number = t.unsafeGetTensorImpl()->is_wrapped_number();
        if (is_number && plan.scalar_op != nullptr && source.from == plan.scalar_at) {
            with_scalar = true;
            return scalar_cell(t.item());
        }
        c10::ScalarType type = is_number ? dtype_of_number(t) : t.scalar_type();
        return tensor_cell(check(tn_full(tn_ints_of(nullptr, 0), scalar_cell(t.item()),
                                         dtype_of(type), device_at(device))));
    }
    /* As the others, unless that would change an integer which the operator may take for a float: 300 / uint8. */
    c10::ScalarType dtype_of_number(const at::Tensor &number) const {
        c10::ScalarType type = promoted();
        if (!at::isIntegralType(type, false) || number.scalar_type() != at::kLong)
            return type;
        return number.to(type).to(at::kLong).item<int64_t>() == number.item<int64_t>() ? type
                                                                                       : at::kLong;
    }
    c10::ScalarType promoted() const {
        at::native::ResultTypeState state = {};
        for (const Source &source : plan.sources)
            if (source.kind == Kind::tensor && source.from >= 0 && values[source.from].isTensor() &&
                values[source.from].toTensor().defined())
                state = at::native::update_result_type_state(values[source.from].toTensor(), state);
        return at::native::result_type(state);
    }

    tn_cell tensor_of(const c10::IValue &value, const Source &source) {
        if (value.isNone() || !value.toTensor().defined())
            return none();
        const at::Tensor &t = value.toTensor();
        if (t.device().type() == device_type)
            return tensor_cell(borrow(t));
        return number_on_cpu(t, source);
    }

    tn_cell tensors_of(const c10::IValue &value, const Source &source) {
        auto entries = value.toListRef();
        lists.emplace_back();
        auto &list = lists.back();
        for (const c10::IValue &entry : entries) {
            at::Tensor t = entry.isTensor() ? entry.toTensor() : at::Tensor();
            if (!t.defined()) {
                list.push_back(nullptr); /* None, as Tensor?[] has it */
                continue;
            }
            if (t.device().type() != device_type) {
                /* Indices may lie on the CPU, as on any device of PyTorch's. */
                TORCH_CHECK(t.device().is_cpu() && source.name == "indices", schema.name(),
                            ": one of ", source.name, " is on ", t.device(), ", others on ",
                            device_text(device));
                moved.push_back(t.to(c10::Device(device_type, device)));
                t = moved.back();
            }
            list.push_back(borrow(t));
            inputs.push_back(list.back());
        }
        tn_cell cell = {};
        cell.tag = TN_CELL_TENSORS;
        cell.n = static_cast<uint32_t>(list.size());
        cell.v.pointer = list.data();
        return cell;
    }

    static tn_cell scalar_cell(const c10::Scalar &value) {
        TORCH_CHECK_TYPE(!value.isComplex(),
                         "a complex number is no argument of Tenon's operators; make "
                         "the tensor on the CPU, and copy it");
        if (value.isBoolean())
            return tn_bool(value.toBool());
        return value.isIntegral(false) ? tn_int(value.toLong()) : tn_float(value.toDouble());
    }

    /* Room for so many numbers: in the call's own, or beside it where that is full. */
    int64_t *room_for(size_t n) {
        if (n <= sizeof room / sizeof *room - n_room) {
            n_room += n;
            return room + n_room - n;
        }
        more_room.emplace_back(n);
        return more_room.back().data();
    }
    tn_cell ints_of(const c10::IValue &value, const Source &source) {
        tn_cell cell = {};
        cell.tag = TN_CELL_INTS;
        if (source.sizes) {
            auto sizes = value.toTensor().sizes();
            cell.n = static_cast<uint32_t>(sizes.size());
            cell.v.ints =
                std::copy(sizes.begin(), sizes.end(), room_for(sizes.size())) - sizes.size();
        } else if (value.isList()) {
            auto entries = value.toListRef();
            int64_t *list = room_for(entries.size());
            for (size_t i = 0; i < entries.size(); i++)
                list[i] = entries[i].toInt();
            cell.n = static_cast<uint32_t>(entries.size());
            cell.v.ints = list;
        } else if (!value.isNone()) {
            int64_t *list = room_for(1);
            *list = value.toInt();
            cell.n = 1;
            cell.v.ints = list;
        }
        return cell;
    }

    static tn_cell string_cell(const char *text) {
        tn_cell cell = {};
        cell.tag = TN_CELL_STRING;
        cell.v.string = text;
        return cell;
    }

    tn_cell cell_of(const Source &source) {
        if (source.from < 0)
            return left_out(source);
        const c10::IValue &value = values[source.from];
        if (value.isNone())
            return source.kind == Kind::ints && !source.optional ? ints_of(value, source) : none();
        switch (source.kind) {
        case Kind::tensor:
            return tensor_of(value, source);
        case Kind::tensors:
            return tensors_of(value, source);
        case Kind::ints:
            return ints_of(value, source);
        case Kind::integer:
            return tn_int(value.isBool() ? value.toBool() : value.toInt());
        case Kind::number:
            return tn_float(value.toScalar().toDouble());
        case Kind::flag:
            return tn_bool(value.toScalar().toBool());
        case Kind::scalar:
            return source.cut && at::isIntegralType(promoted(), true)
                       ? tn_int(value.toScalar().toLong())
                       : scalar_cell(value.toScalar());
        case Kind::dtype:
            return tn_int(dtype_of(value.toScalarType()));
        case Kind::device:
            return tn_int(tn_device_pack(device_at(device)));
        case Kind::string:
            return string_cell(value.toStringRef().c_str());
        case Kind::reduction: {
            static const char *const reductions[] = {"none", "mean", "sum"};
            TORCH_CHECK(value.toInt() >= 0 && value.toInt() < 3, schema.name(), ": a reduction of ",
                        value.toInt(), ", which is 0 (none), 1 (mean) or 2 (sum)");
            return string_cell(reductions[value.toInt()]);
        }
        }
        return none();
    }
    tn_cell left_out(const Source &source) const {
        return source.kind == Kind::device ? tn_int(tn_device_pack(device_at(device))) : none();
    }

    const Plan &plan;
    const c10::FunctionSchema &schema;
    const c10::IValue *values;
    c10::DeviceIndex device = -1;
    bool with_scalar = false;
    c10::SmallVector<tn_cell, 12> cells;
    c10::SmallVector<tn_tensor *, 8> inputs;
    std::list<c10::SmallVector<tn_tensor *, 8>> lists;
    int64_t room[32];
    size_t n_room = 0;
    std::list<std::vector<int64_t>> more_room;
    std::vector<at::Tensor> moved;
};

/* PyTorch's functional operators never answer with an input's storage. */
at::Tensor result_of(const Arguments &arguments, tn_tensor *t) {
    return adopt(arguments.is_input(t) ? check(tn_clone(t)) : t);
}

c10::IValue result_of(const Arguments &arguments, const tn_cell &ret) {
    if (ret.tag == TN_CELL_TENSOR)
        return result_of(arguments, static_cast<tn_tensor *>(ret.v.pointer));
    c10::List<at::Tensor> results;
    for (uint32_t i = 0; i < ret.n; i++)
        results.push_back(result_of(arguments, static_cast<tn_tensor **>(ret.v.pointer)[i]));
    return results;
}

/* The results of a call, which belong to the scope; their lists to this. */
class Results {
  public:
    explicit Results(uint32_t n) : cells(n) {}
    ~Results() {
        for (tn_cell &cell : cells)
            if (cell.tag == TN_CELL_TENSORS)
                tn_free_list(&cell);
    }
    Results(const Results &) = delete;
    Results &operator=(const Results &) = delete;

    void give() {
        for (tn_cell &cell : cells) {
            uint32_t n = cell.tag == TN_CELL_TENSORS ? cell.n : 0;
            if (cell.tag == TN_CELL_TENSOR)
                tn_give(static_cast<tn_tensor *>(cell.v.pointer));
            for (uint32_t i = 0; i < n; i++)
                tn_give(static_cast<tn_tensor **>(cell.v.pointer)[i]);
        }
    }
    c10::SmallVector<tn_cell, 4> cells;
};

/* The call itself; only those that draw wait for each other. */
void invoke(const Plan &plan, const c10::IValue *values, const Arguments &arguments,
            Results &results) {
    std::optional<DrawFrom> draw;
    if (plan.generator >= 0)
        draw.emplace(values[plan.generator].toOptional<at::Generator>(), arguments.index());
    check(tn_op_call(arguments.op(), arguments.data(), arguments.size(), results.cells.data()));
    results.give();
}

/* Calls Tenon with the inputs that `values` has. */
c10::SmallVector<c10::IValue, 4> call(const Plan &plan, const c10::FunctionSchema &schema,
                                      const c10::IValue *values) {
    TN_SCOPE;
    Arguments arguments(plan, schema, values);
    Results given(plan.n_rets);
    invoke(plan, values, arguments, given);
    c10::SmallVector<c10::IValue, 4> results;
    for (const tn_cell &cell : given.cells)
        results.push_back(cell.tag == TN_CELL_NONE ? at::Tensor() : result_of(arguments, cell));
    return results;
}

class Functional final : public c10::OperatorKernel {
  public:
    explicit Functional(Plan plan) : plan(std::move(plan)) {}
    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
        size_t n = op.schema().arguments().size();
        auto results = call(plan, op.schema(), stack->data() + stack->size() - n);
        stack->resize(stack->size() - n);
        for (auto &result : results)
            stack->push_back(std::move(result));
    }

  private:
    const Plan plan;
};

/* An in-place form of Tenon's: what it writes is what it is given. */
class Inplace final : public c10::OperatorKernel {
  public:
    explicit Inplace(Plan plan) : plan(std::move(plan)) {}
    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
        size_t n = op.schema().arguments().size();
        const c10::IValue *values = stack->data() + stack->size() - n;
        const at::Device written = values[0].toTensor().device();
        TORCH_CHECK(written.type() == device_type, op.schema().name(), " writes a tensor on ",
                    written,
                    ", other arguments are on a device of Tenon; copy one of them with .to(...)");
        at::assert_no_internal_overlap(values[0].toTensor());
        for (size_t i = 1; i < n; i++)
            if (values[i].isTensor() && values[i].toTensor().defined())
                at::assert_no_partial_overlap(values[0].toTensor(), values[i].toTensor());
        {
            TN_SCOPE;
            Arguments arguments(plan, op.schema(), values);
            Results given(plan.n_rets);
            invoke(plan, values, arguments, given);
        }
        stack->resize(stack->size() - n + 1); /* the first argument is the result */
    }

  private:
    const Plan plan;
};

/* Results of the functional form, copied to where they are wanted. */
class Copied final : public c10::OperatorKernel {
  public:
    Copied(Plan plan, bool inplace) : plan(std::move(plan)), inplace(inplace) {}
    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, Stack *stack) {
        size_t n = op.schema().arguments().size(), n_outputs = op.schema().returns().size();
        const c10::IValue *values = stack->data() + stack->size() - n;
        auto results = call(plan, op.schema(), values);
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

    const Plan plan;
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

    template <typename Kernel>
    void add(const std::string &name, std::unique_ptr<Kernel> kernel) const {
        library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
    }

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
                if (form == Form::functional)
                    add(name, std::make_unique<Functional>(*plan));
                else
                    add(name, std::make_unique<Inplace>(*plan));
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
        add(name, std::make_unique<Copied>(*plan, form == Form::inplace));
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
