#include "python/torch/csrc/bridge.h"

namespace tenon_torch {

Call::Call(const char *name) : op(check(tn_op_find(name))) {
    cells.reserve(tn_op_n_args(op));
}

tn_cell &Call::next(uint32_t tag) {
    tn_cell cell = {};
    cell.tag = tag;
    cells.push_back(cell);
    return cells.back();
}

Call &Call::tensor(tn_tensor *t) {
    next(TN_CELL_TENSOR).v.pointer = t;
    return *this;
}
Call &Call::tensor(const at::Tensor &t) {
    return t.defined() ? tensor(borrow(t)) : none();
}
Call &Call::ints(c10::IntArrayRef list) {
    tn_cell &cell = next(TN_CELL_INTS);
    cell.n = static_cast<uint32_t>(list.size());
    cell.v.ints = list.data();
    return *this;
}
Call &Call::integer(int64_t value) {
    next(TN_CELL_I64).v.i64 = value;
    return *this;
}
Call &Call::number(double value) {
    next(TN_CELL_F64).v.f64 = value;
    return *this;
}
Call &Call::flag(bool value) {
    next(TN_CELL_BOOL).v.boolean = value;
    return *this;
}
Call &Call::scalar(const c10::Scalar &value) {
    if (value.isBoolean())
        return flag(value.toBool());
    if (value.isIntegral(false))
        return integer(value.toLong());
    return number(value.toDouble());
}
Call &Call::dtype(c10::ScalarType type) {
    return integer(dtype_of(type));
}
Call &Call::device(c10::DeviceIndex index) {
    return integer(tn_device_pack(device_at(index)));
}
Call &Call::none() {
    next(TN_CELL_NONE);
    return *this;
}

std::vector<tn_tensor *> Call::results() {
    std::vector<tn_cell> rets(tn_op_n_rets(op));
    check(tn_op_call(op, cells.data(), static_cast<uint32_t>(cells.size()), rets.data()));
    std::vector<tn_tensor *> given;
    for (const tn_cell &ret : rets)
        given.push_back(ret.tag == TN_CELL_TENSOR ? tn_give(static_cast<tn_tensor *>(ret.v.pointer))
                                                  : nullptr);
    return given;
}

std::vector<at::Tensor> Call::run() {
    std::vector<at::Tensor> adopted;
    for (tn_tensor *t : results())
        adopted.push_back(adopt(t));
    return adopted;
}

} // namespace tenon_torch
