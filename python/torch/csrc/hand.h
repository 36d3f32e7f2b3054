/* Operators that are written by hand: each file adds its own. */
#ifndef TNI_PYTHON_TORCH_CSRC_HAND_H
#define TNI_PYTHON_TORCH_CSRC_HAND_H

#include "python/torch/csrc/bridge.h"

#include <set>
#include <torch/library.h>

namespace tenon_torch {

class Hand {
  public:
    explicit Hand(torch::Library &library) : library(library) {}
    template <typename F> void add(const char *name, F &&function) {
        library.impl(name, std::forward<F>(function));
        names.insert(name);
    }
    std::set<std::string> names;

  private:
    torch::Library &library;
};

void add_factories(Hand &hand);
void add_copies(Hand &hand);
void add_random(Hand &hand);
void add_networks(Hand &hand);
void add_scaling(Hand &hand);

void register_operators(const std::set<std::string> &by_hand); /* operators.cpp */

} // namespace tenon_torch

#endif
