#include "network.hpp"

#include <algorithm>

namespace trainer {

ConvBlockImpl::ConvBlockImpl(std::int64_t from, std::int64_t to, std::int64_t stride, bool pool)
    : pool_(pool) {
  // A stride of s needs a window that leaves no pixel out: 3, 3, 5, 7 for 1, 2, 3, 4.
  const std::int64_t side = std::max<std::int64_t>(3, 2 * stride - 1);
  conv_ = register_module(
      "conv",
      torch::nn::Conv2d(
          torch::nn::Conv2dOptions(from, to, side).stride(stride).padding(side / 2).bias(false)));
  norm_ = register_module("norm", torch::nn::BatchNorm2d(to));
}

torch::Tensor ConvBlockImpl::forward(torch::Tensor x) {
  x = norm_(conv_(x));
  x.relu_();
  return pool_ ? torch::max_pool2d(x, 2) : x;
}

NetworkImpl::NetworkImpl(const NetworkShape& shape)
    : stem_(shape.channels, shape.width, shape.stem_stride, false),
      grow1_(shape.width, 2 * shape.width, 1, true),
      residual1a_(2 * shape.width, 2 * shape.width, 1, false),
      residual1b_(2 * shape.width, 2 * shape.width, 1, false),
      grow2_(2 * shape.width, 4 * shape.width, 1, true),
      grow3_(4 * shape.width, 8 * shape.width, 1, true),
      residual3a_(8 * shape.width, 8 * shape.width, 1, false),
      residual3b_(8 * shape.width, 8 * shape.width, 1, false),
      head_(8 * shape.width, shape.outputs) {
  register_module("stem", stem_);
  register_module("grow1", grow1_);
  register_module("residual1a", residual1a_);
  register_module("residual1b", residual1b_);
  register_module("grow2", grow2_);
  register_module("grow3", grow3_);
  register_module("residual3a", residual3a_);
  register_module("residual3b", residual3b_);
  register_module("head", head_);
}

torch::Tensor NetworkImpl::forward(torch::Tensor x) {
  x = grow1_(stem_(x));
  x = x + residual1b_(residual1a_(x));
  x = grow3_(grow2_(x));
  x = x + residual3b_(residual3a_(x));
  // An eighth, as in the original: large scores at the beginning make the first steps wild.
  return head_(x.amax({2, 3})) * 0.125;
}

}  // namespace trainer
