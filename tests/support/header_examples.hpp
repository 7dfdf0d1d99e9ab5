/// What the examples at the head of the public headers take as given. Declared only: they are
/// compiled, not run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

namespace example {

extern const std::string path;
extern const chunkio::Dataset dataset;
extern const chunkio::Batch batch;
extern const chunkio::FieldData labels;
extern const std::span<const std::uint8_t> image;
extern const chunkio::cuda::Stream stream;
extern chunkio::Loader loader;
extern std::int64_t sum;

std::span<const std::byte> images_of(std::int64_t chunk);
/// A training step, from host and from device memory.
void train(const chunkio::Batch& batch);
void train(const chunkio::Tensor& images, const chunkio::Tensor& labels);
void train(const void* images, const void* labels, chunkio::cuda::Stream stream);
/// Takes a DLPack tensor.
template <class Managed>
void consumer(Managed* tensor);

}  // namespace example
