/* The arguments of one call of Tenon, from those of PyTorch's by the plan of the operator. */
#ifndef TNI_PYTHON_TORCH_CSRC_ARGUMENTS_H
#define TNI_PYTHON_TORCH_CSRC_ARGUMENTS_H

#include "python/torch/csrc/plan.h"
#include "python/torch/csrc/value.h"

#include <ATen/core/function_schema.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type.h>
#include <c10/util/SmallVector.h>
#include <list>
#include <vector>

namespace tenon_torch {

/* Cells, and what they point to. A scope must be open. */
class Arguments {
  public:
    Arguments(const Plan &plan, const c10::FunctionSchema &schema, const Value *values)
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
        if (!t.defined() || !t.is_privateuseone())
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
            const Value &value = values[source.from];
            if (source.kind == Kind::tensor && value.is_tensor())
                look_at(value.tensor(), source.name);
            else if (source.kind == Kind::tensors && value.is_list())
                for (const c10::IValue &entry : value.list())
                    if (entry.isTensor())
                        look_at(entry.toTensor(), source.name);
        }
        if (device < 0)
            device = current_device();
    }

    void refuse_if_set(const Unused &unused) {
        const Value &value = values[unused.at];
        if (value.is_unset() || (unused.value.has_value() && value.equals(*unused.value)))
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

    /* t.item(), without a call for the numbers that Python has. */
    static c10::Scalar number_of(const at::Tensor &t) {
        const void *data = t.unsafeGetTensorImpl()->is_wrapped_number() && !t.is_neg()
                               ? t.const_data_ptr()
                               : nullptr;
        if (data != nullptr && t.scalar_type() == at::kLong)
            return *static_cast<const int64_t *>(data);
        if (data != nullptr && t.scalar_type() == at::kDouble)
            return *static_cast<const double *>(data);
        return t.item();
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
            return scalar_cell(number_of(t));
        }
        c10::ScalarType type = is_number ? dtype_of_number(t) : t.scalar_type();
        return tensor_cell(check(tn_full(tn_ints_of(nullptr, 0), scalar_cell(number_of(t)),
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
            if (source.kind == Kind::tensor && source.from >= 0 && values[source.from].is_tensor())
                state = at::native::update_result_type_state(values[source.from].tensor(), state);
        return at::native::result_type(state);
    }

    tn_cell tensor_of(const Value &value, const Source &source) {
        const at::Tensor &t = value.tensor();
        if (t.is_privateuseone())
            return tensor_cell(borrow(t));
        return number_on_cpu(t, source);
    }

    tn_cell tensors_of(const Value &value, const Source &source) {
        auto entries = value.list();
        lists.emplace_back();
        auto &list = lists.back();
        for (const c10::IValue &entry : entries) {
            const at::Tensor *t = entry.isTensor() ? &entry.toTensor() : nullptr;
            if (t == nullptr || !t->defined()) {
                list.push_back(nullptr); /* None, as Tensor?[] has it */
                continue;
            }
            if (t->device().type() != device_type) {
                /* Indices may lie on the CPU, as on any device of PyTorch's. */
                TORCH_CHECK(t->device().is_cpu() && source.name == "indices", schema.name(),
                            ": one of ", source.name, " is on ", t->device(), ", others on ",
                            device_text(device));
                moved.push_back(t->to(c10::Device(device_type, device)));
                t = &moved.back();
            }
            list.push_back(borrow(*t));
            inputs.push_back(list.back());
        }
        tn_cell cell = {};
        cell.tag = TN_CELL_TENSORS;
        cell.n = static_cast<uint32_t>(list.size());
        cell.v.pointer = list.data();
        return cell;
    }

    static tn_cell scalar_cell(const Value &value) {
        c10::Scalar scalar = value.scalar();
        if (scalar.isBoolean())
            return tn_bool(scalar.toBool());
        return scalar.isIntegral(false) ? tn_int(scalar.toLong()) : tn_float(scalar.toDouble());
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
    tn_cell ints_of(const Value &value, const Source &source) {
        tn_cell cell = {};
        cell.tag = TN_CELL_INTS;
        if (!source.sizes && value.is_none())
            return cell;
        size_t n = source.sizes ? static_cast<size_t>(value.tensor().dim()) : value.n_ints();
        int64_t *list = room_for(n);
        for (size_t i = 0; i < n; i++)
            list[i] = source.sizes ? value.tensor().sizes()[i] : value.int_at(i);
        cell.n = static_cast<uint32_t>(n);
        cell.v.ints = list;
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
        const Value &value = values[source.from];
        if (value.is_none())
            return source.kind == Kind::ints && !source.optional ? ints_of(value, source) : none();
        switch (source.kind) {
        case Kind::tensor:
            return tensor_of(value, source);
        case Kind::tensors:
            return tensors_of(value, source);
        case Kind::ints:
            return ints_of(value, source);
        case Kind::integer:
            return tn_int(value.integer());
        case Kind::number:
            return tn_float(value.scalar().toDouble());
        case Kind::flag:
            return tn_bool(value.scalar().toBool());
        case Kind::scalar:
            return source.cut && at::isIntegralType(promoted(), true) ? tn_int(value.integer())
                                                                      : scalar_cell(value);
        case Kind::dtype:
            return tn_int(dtype_of(static_cast<c10::ScalarType>(value.integer())));
        case Kind::device:
            return tn_int(tn_device_pack(device_at(device)));
        case Kind::string:
            return string_cell(value.text());
        case Kind::reduction: {
            static const char *const reductions[] = {"none", "mean", "sum"};
            int64_t reduction = value.integer();
            TORCH_CHECK(reduction >= 0 && reduction < 3, schema.name(), ": a reduction of ",
                        reduction, ", which is 0 (none), 1 (mean) or 2 (sum)");
            return string_cell(reductions[reduction]);
        }
        }
        return none();
    }
    tn_cell left_out(const Source &source) const {
        return source.kind == Kind::device ? tn_int(tn_device_pack(device_at(device))) : none();
    }

    const Plan &plan;
    const c10::FunctionSchema &schema;
    const Value *values;
    c10::DeviceIndex device = -1;
    bool with_scalar = false;
    c10::SmallVector<tn_cell, 12> cells;
    c10::SmallVector<tn_tensor *, 8> inputs;
    std::list<c10::SmallVector<tn_tensor *, 8>> lists;
    int64_t room[32];
    size_t n_room = 0;
    std::list<std::vector<int64_t>> more_room;
    std::list<at::Tensor> moved;
};

} // namespace tenon_torch

#endif
