#include "python/torch/csrc/names.h"

namespace tenon_torch {

const Name names[] = {
    {"_adaptive_avg_pool2d", "adaptive_avg_pool2d", ""},
    {"_adaptive_avg_pool2d_backward", "adaptive_avg_pool2d_backward", ""},
    {"_adaptive_avg_pool3d", "adaptive_avg_pool3d", ""},
    {"_cdist_forward", "cdist", "-compute_mode"},
    {"_embedding_bag", "embedding_bag", ""},
    {"_embedding_bag_forward_only", "embedding_bag", ""},
    {"_log_softmax", "log_softmax_forward", ""},
    {"_log_softmax_backward_data", "log_softmax_backward", "-input_dtype"},
    {"_logcumsumexp", "logcumsumexp", ""},
    {"_index_put_impl_", "index_put_", "-unsafe"},
    {"_pdist_forward", "pdist", ""},
    {"_softmax", "softmax_forward", ""},
    {"_softmax_backward_data", "softmax_backward", "-input_dtype"},
    {"_unique2", "unique2", ""},
    {"addbmm", "addbmm", "~beta ~alpha"},
    {"addmm", "addmm", "~beta ~alpha"},
    {"addmv", "addmv", "~beta ~alpha"},
    {"any.dims", "any.dim", ""},
    {"all.dims", "all.dim", ""},
    {"avg_pool2d_backward", "avg_pool2d_backward", "input_size=self.sizes"},
    {"baddbmm", "baddbmm", "~beta ~alpha"},
    {"embedding", "embedding", "-sparse"},
    {"fill_.Scalar", "fill_", ""},
    {"floor_divide", "floor_divide.Tensor", ""},
    {"gather", "gather", "-sparse_grad"},
    {"hardtanh", "hardtanh", "~min_val ~max_val"},
    {"hardtanh_", "hardtanh_", "~min_val ~max_val"},
    {"max_pool2d_with_indices_backward", "max_pool2d_backward",
     "input_size=self.sizes -kernel_size -stride -padding -dilation -ceil_mode"},
    {"native_group_norm_backward", "native_group_norm_backward", "-output_mask"},
    {"native_layer_norm_backward", "native_layer_norm_backward", "-output_mask"},
    {"pow.Tensor_Scalar", "pow.Scalar", ""},
    {"pow.Tensor_Tensor", "pow.Tensor", ""},
    {"pow_.Scalar", "pow_.Scalar", ""},
    {"pow_.Tensor", "pow_.Tensor", ""},
    {"prod.dim_int", "prod.dim", ""},
    {"sort.stable", "sort", "-stable"},
    {"std.correction", "std.dim", ""},
    {"sum.dim_IntList", "sum.dim", ""},
    {"topk", "topk", "-sorted"},
    {"uniform_", "uniform_", "low=from high=to"},
    {"unique_dim", "unique_dim", ""},
    {"var.correction", "var.dim", ""},
    {"where.self", "where", ""},
};
const int n_names = sizeof names / sizeof *names;

const Left left_to_torch[] = {
    {"copy", "copies between devices, too; it calls _copy_from"},
    {"copy_", "copies between devices, too; it calls _copy_from"},
    {"convolution", "has transposed ones, too; it calls convolution_overrideable"},
    {"count_nonzero", "takes a dimension, too; it calls count_nonzero.dim_IntList"},
    {"detach", "is a view"},
    {"dropout", "is composed"},
    {"native_dropout", "takes train=None, too, and its mask is drawn by bernoulli_"},
    {"repeat_interleave.Tensor", "is composed"},
};
const int n_left_to_torch = sizeof left_to_torch / sizeof *left_to_torch;

} // namespace tenon_torch
