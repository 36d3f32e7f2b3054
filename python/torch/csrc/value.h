/* An argument of a call as PyTorch gives it: boxed, or as the C++ function of the operator has it. Copies nothing that counts references:
 * a second reference of a tensor that Python has takes the interpreter's lock. */
#ifndef TNI_PYTHON_TORCH_CSRC_VALUE_H
#define TNI_PYTHON_TORCH_CSRC_VALUE_H

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <optional>
#include <ostream>

namespace tenon_torch {

class Value {
  public:
    enum class Tag { none, tensor, integer, number, flag, complex, ints, boxed };

    Value(const at::Tensor &t) : tag(t.defined() ? Tag::tensor : Tag::none) {
        v.tensor = &t;
    }
    Value(bool flag) : tag(Tag::flag) {
        v.flag = flag;
    }
    Value(int64_t integer) : tag(Tag::integer) {
        v.integer = integer;
    }
    Value(double number) : tag(Tag::number) {
        v.number = number;
    }
    Value(c10::ScalarType type) : Value(static_cast<int64_t>(type)) {}
    Value(const c10::Scalar &scalar) {
        if (scalar.isBoolean())
            *this = scalar.toBool();
        else if (scalar.isIntegral(false))
            *this = scalar.toLong();
        else if (!scalar.isComplex())
            *this = scalar.toDouble();
        else
            tag = Tag::complex;
    }
    Value(c10::IntArrayRef list) : tag(Tag::ints) {
        v.list = {list.data(), list.size()};
    }
    Value(const c10::OptionalArrayRef<int64_t> &list) : tag(Tag::none) {
        if (list.has_value())
            *this = *list;
    }
    template <typename T> Value(const std::optional<T> &given) : tag(Tag::none) {
        if (given.has_value())
            *this = *given;
    }
    explicit Value(const c10::IValue &value) : tag(Tag::none) {
        if (value.isTensor())
            *this = value.toTensor();
        else if (value.isInt() || value.isSymInt())
            *this = value.toInt();
        else if (value.isDouble())
            *this = value.toDouble();
        else if (value.isBool())
            *this = value.toBool();
        else if (value.isComplexDouble())
            tag = Tag::complex;
        else if (!value.isNone())
            box(value);
    }

    bool is_none() const {
        return tag == Tag::none;
    }
    bool is_tensor() const {
        return tag == Tag::tensor;
    }
    const at::Tensor &tensor() const {
        return *v.tensor;
    }
    bool is_list() const {
        return tag == Tag::ints || (tag == Tag::boxed && v.boxed->isList());
    }
    c10::ArrayRef<c10::IValue> list() const { /* of what is no integer */
        return v.boxed->toListRef();
    }
    /* Of a list of them, or one for all. */
    size_t n_ints() const {
        return tag == Tag::ints ? v.list.n : is_list() ? list().size() : 1;
    }
    int64_t int_at(size_t i) const {
        return tag == Tag::ints ? v.list.data[i] : is_list() ? list()[i].toInt() : integer();
    }
    /* Numbers are converted as PyTorch converts a Scalar; complex ones are refused. */
    c10::Scalar scalar() const {
        TORCH_CHECK_TYPE(tag != Tag::complex,
                         "a complex number is no argument of Tenon's operators; make "
                         "the tensor on the CPU, and copy it");
        if (tag == Tag::flag)
            return v.flag;
        if (tag == Tag::integer)
            return v.integer;
        TORCH_CHECK_TYPE(tag == Tag::number, "a number is expected, not ", *this);
        return v.number;
    }
    int64_t integer() const {
        return scalar().toLong();
    }
    const char *text() const {
        return boxed().toStringRef().c_str();
    }
    const c10::IValue &boxed() const {
        TORCH_CHECK_TYPE(tag == Tag::boxed, "unexpected argument ", *this);
        return *v.boxed;
    }
    /* None, False, an empty list. */
    bool is_unset() const {
        return is_none() || (tag == Tag::flag && !v.flag) || (is_list() && n_ints() == 0);
    }
    bool equals(const c10::IValue &other) const {
        switch (tag) {
        case Tag::integer:
            return other.isInt() && other.toInt() == v.integer;
        case Tag::number:
            return other.isDouble() && other.toDouble() == v.number;
        case Tag::flag:
            return other.isBool() && other.toBool() == v.flag;
        default:
            return false;
        }
    }

    friend std::ostream &operator<<(std::ostream &out, const Value &value) {
        switch (value.tag) {
        case Tag::none:
            return out << "None";
        case Tag::tensor:
            return out << "a tensor";
        case Tag::integer:
            return out << value.v.integer;
        case Tag::number:
            return out << value.v.number;
        case Tag::flag:
            return out << (value.v.flag ? "True" : "False");
        case Tag::complex:
            return out << "a complex number";
        case Tag::ints:
            return out << c10::IntArrayRef(value.v.list.data, value.v.list.n);
        case Tag::boxed:
            return out << *value.v.boxed;
        }
        return out;
    }

    Tag tag;

  private:
    void box(const c10::IValue &value) {
        tag = Tag::boxed;
        v.boxed = &value;
    }

    union {
        const at::Tensor *tensor;
        const c10::IValue *boxed;
        int64_t integer;
        double number;
        bool flag;
        struct {
            const int64_t *data;
            size_t n;
        } list;
    } v;
};

} // namespace tenon_torch

#endif
