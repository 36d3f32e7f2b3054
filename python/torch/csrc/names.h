/* Where an operator of PyTorch and the one of Tenon that answers it differ in name or arguments. */
#ifndef TNI_PYTHON_TORCH_CSRC_NAMES_H
#define TNI_PYTHON_TORCH_CSRC_NAMES_H

namespace tenon_torch {

struct Name {
    const char *torch, *tenon;
    /* In words: "low=from" gives Tenon's argument what PyTorch calls otherwise, "input_size=self.sizes" the sizes of a tensor,
     * "-sorted" leaves out what does not change the result, "~beta" cuts a number to an integer where the result is one. An argument of PyTorch's that stands in neither, and that
     * Tenon's operator does not have, has to have its default value, None or False. */
    const char *arguments;
};

extern const Name names[];
extern const int n_names;

/* Operators that PyTorch composes better than the one of Tenon that has their name answers them, and why. */
struct Left {
    const char *torch, *why;
};

extern const Left left_to_torch[];
extern const int n_left_to_torch;

} // namespace tenon_torch

#endif
