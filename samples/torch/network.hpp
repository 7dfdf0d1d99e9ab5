// A small residual network: ResNet-9 as DAWNBench's fast CIFAR-10 entries use it (David C. Page,
// "How to train your ResNet", 2018), with its width and the stride of its first convolution as
// parameters.
#pragma once

#include <cstdint>

#include <torch/nn.h>

namespace trainer {

struct NetworkShape {
  std::int64_t channels = 3;
  std::int64_t width =
      64;  ///< Channels after the first convolution; 8 times as many after the last.
  std::int64_t stem_stride = 1;  ///< Of the first convolution; the others halve sizes three times.
  std::int64_t outputs = 10;

  /// Images need this many pixels a side.
  [[nodiscard]] std::int64_t smallest_side() const { return 8 * stem_stride; }
};

/// Convolution without bias, batch normalisation, ReLU and, if asked for, a maximum over 2x2.
class ConvBlockImpl : public torch::nn::Module {
 public:
  ConvBlockImpl(std::int64_t from, std::int64_t to, std::int64_t stride, bool pool);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  bool pool_;
};
TORCH_MODULE(ConvBlock);

/// [B,C,H,W] -> [B,outputs].
class NetworkImpl : public torch::nn::Module {
 public:
  explicit NetworkImpl(const NetworkShape& shape);
  torch::Tensor forward(torch::Tensor x);

 private:
  ConvBlock stem_, grow1_, residual1a_, residual1b_, grow2_, grow3_, residual3a_, residual3b_;
  torch::nn::Linear head_;
};
TORCH_MODULE(Network);

}  // namespace trainer
