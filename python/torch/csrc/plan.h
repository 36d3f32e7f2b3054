/* How the arguments of an operator of PyTorch become those of one of Tenon, worked out once, when it is registered. */
#ifndef TNI_PYTHON_TORCH_CSRC_PLAN_H
#define TNI_PYTHON_TORCH_CSRC_PLAN_H

#include "python/torch/csrc/bridge.h"

#include <ATen/core/function_schema.h>
#include <optional>

namespace tenon_torch {

enum class Kind {
    tensor,
    tensors,
    integer,
    number,
    flag,
    scalar,
    ints,
    dtype,
    device,
    string,
    reduction
};

/* Of an argument of Tenon's operator. */
struct Source {
    Kind kind;
    int from = -1;         /* position among PyTorch's; -1: left out */
    bool sizes = false;    /* of the tensor there */
    bool optional = false; /* may be None */
    bool cut = false;      /* to an integer, where the tensors are integers */
    std::string name;
};

/* An argument of PyTorch's that Tenon's operator does not have: it must have this value, None or False. */
struct Unused {
    int at;
    std::string name;
    std::optional<c10::IValue> value;
};

struct Plan {
    const tn_op *op = nullptr;
    std::vector<Source> sources;
    std::vector<Unused> unused;
    int generator = -1; /* position among PyTorch's */
    uint32_t n_rets = 0;
    /* The same operator with a number for its argument `scalar_at` of PyTorch's, where there is one. */
    const tn_op *scalar_op = nullptr;
    int scalar_at = -1;
};

/* `inputs`: how many of PyTorch's arguments count; the others are outputs. Says in `why` what does not fit. */
std::optional<Plan> plan_for(const c10::FunctionSchema &schema, size_t inputs, const char *tenon,
                             const char *words, std::string &why);

} // namespace tenon_torch

#endif
