#include "python/torch/csrc/plan.h"

#include <map>
#include <set>
#include <sstream>
#include <tenon/introspect.h>

namespace tenon_torch {

namespace {

/* What tn_arg_info says, kept. */
struct Argument {
    std::string name, type;
    bool optional, has_default;
};

struct Description {
    std::vector<Argument> args;
    std::vector<std::string> rets;
};

void describe(const tn_op_info *info, void *user) {
    auto *description = static_cast<Description *>(user);
    for (uint32_t i = 0; i < info->n_args; i++)
        description->args.push_back({info->args[i].name, info->args[i].type, info->args[i].optional,
                                     info->args[i].has_default});
    for (uint32_t i = 0; i < info->n_rets; i++)
        description->rets.push_back(info->rets[i].type);
}

std::optional<Description> description_of(const char *name) {
    Description description;
    if (tn_op_describe(name, describe, &description) != TN_OK) {
        tn_error_clear();
        return {};
    }
    return description;
}

std::optional<Kind> kind_of(const std::string &type) {
    static const std::map<std::string, Kind> kinds = {
        {"Tensor", Kind::tensor}, {"Tensor[]", Kind::tensors}, {"Tensor?[]", Kind::tensors},
        {"int", Kind::integer},   {"float", Kind::number},     {"bool", Kind::flag},
        {"Scalar", Kind::scalar}, {"int[]", Kind::ints},       {"ScalarType", Kind::dtype},
        {"Device", Kind::device}, {"str", Kind::string}};
    auto found = kinds.find(type);
    if (found == kinds.end())
        return {};
    return found->second;
}

struct Words {
    std::map<std::string, std::string> renamed;
    std::set<std::string> ignored, cut;
};

Words parse(const char *text) {
    Words words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        size_t equals = word.find('=');
        if (word[0] == '-')
            words.ignored.insert(word.substr(1));
        else if (word[0] == '~')
            words.cut.insert(word.substr(1));
        else
            words.renamed[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return words;
}

int position_of(const c10::FunctionSchema &schema, size_t inputs, const std::string &name) {
    for (size_t i = 0; i < inputs; i++)
        if (schema.arguments()[i].name() == name)
            return static_cast<int>(i);
    return -1;
}

bool is_tensor(const c10::TypePtr &type) {
    auto kind = type->kind() == c10::TypeKind::OptionalType
                    ? type->castRaw<c10::OptionalType>()->getElementType()->kind()
                    : type->kind();
    return kind == c10::TypeKind::TensorType;
}

/* Does what PyTorch passes fit Tenon's kind? Numbers of any kind are converted, an int stands for a list of one. */
bool fits(const c10::TypePtr &type, Kind kind) {
    auto bare = type->kind() == c10::TypeKind::OptionalType
                    ? type->castRaw<c10::OptionalType>()->getElementType()
                    : type;
    bool tensor = bare->kind() == c10::TypeKind::TensorType;
    bool list = bare->kind() == c10::TypeKind::ListType;
    bool tensors = list && is_tensor(bare->castRaw<c10::ListType>()->getElementType());
    switch (kind) {
    case Kind::tensor:
        return tensor;
    case Kind::tensors:
        return tensors;
    case Kind::ints:
        return (list && !tensors) || (!list && !tensor);
    default:
        return !tensor && !list;
    }
}

/* "mul.Tensor" has "mul.Scalar", "div.Tensor_mode" "div.Scalar_mode"; logical_and and their like have none. */
void find_scalar_form(Plan &plan, const std::string &tenon) {
    size_t at = tenon.find(".Tensor");
    if (at == std::string::npos)
        return;
    std::string name = tenon.substr(0, at) + ".Scalar" + tenon.substr(at + 7);
    auto description = description_of(name.c_str());
    if (!description || description->args.size() != plan.sources.size())
        return;
    int scalar = -1;
    for (size_t i = 0; i < plan.sources.size(); i++) {
        if (description->args[i].name != plan.sources[i].name)
            return;
        if (description->args[i].type == "Scalar" && plan.sources[i].kind == Kind::tensor)
            scalar = static_cast<int>(i);
    }
    if (scalar < 0)
        return;
    plan.scalar_op = tn_op_find(name.c_str());
    plan.scalar_at = plan.sources[static_cast<size_t>(scalar)].from;
}

} // namespace

std::optional<Plan> plan_for(const c10::FunctionSchema &schema, size_t inputs, const char *tenon,
                             const char *text, std::string &why) {
    auto description = description_of(tenon);
    if (!description) {
        why = "Tenon has no such operator";
        return {};
    }
    Words words = parse(text);
    Plan plan;
    plan.op = tn_op_find(tenon);
    plan.n_rets = tn_op_n_rets(plan.op);
    std::set<std::string> used;
    for (const Argument &argument : description->args) {
        Source source;
        source.name = argument.name;
        source.optional = argument.optional || argument.has_default;
        auto kind = kind_of(argument.type);
        if (!kind) {
            why = "its argument " + argument.name + " is " + argument.type;
            return {};
        }
        source.kind = *kind;
        source.cut = words.cut.count(argument.name) != 0;
        std::string name =
            words.renamed.count(argument.name) != 0 ? words.renamed[argument.name] : argument.name;
        size_t dot = name.find(".sizes");
        source.sizes = dot != std::string::npos;
        if (source.sizes)
            name.resize(dot);
        source.from = position_of(schema, inputs, name);
        if (source.from < 0 && !source.optional) {
            why = tenon + (" needs " + argument.name);
            return {};
        }
        if (source.from >= 0 && !source.sizes) {
            used.insert(name);
            const auto &type = schema.arguments()[static_cast<size_t>(source.from)].real_type();
            if (source.kind == Kind::string && name == "reduction")
                source.kind = Kind::reduction;
            if (!fits(type, source.kind)) {
                why = "its " + name + " is " + type->str() + ", that of " + tenon + " " +
                      argument.type;
                return {};
            }
        }
        plan.sources.push_back(source);
    }
    for (size_t i = 0; i < inputs; i++) {
        const auto &argument = schema.arguments()[i];
        if (argument.name() == "generator") {
            plan.generator = static_cast<int>(i);
        } else if (used.count(argument.name()) == 0 && words.ignored.count(argument.name()) == 0) {
            bool known = false; /* "self" of "input_size=self.sizes" */
            for (const Source &source : plan.sources)
                known |= source.from == static_cast<int>(i);
            if (known)
                continue;
            if (is_tensor(argument.real_type()) &&
                argument.real_type()->kind() != c10::TypeKind::OptionalType) {
                why = tenon + (" has no " + argument.name());
                return {};
            }
            plan.unused.push_back({static_cast<int>(i), argument.name(), argument.default_value()});
        }
    }
    find_scalar_form(plan, tenon);
    return plan;
}

} // namespace tenon_torch
