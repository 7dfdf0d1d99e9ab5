// Needs LibTorch, so it is not built everywhere.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/DLConvertor.h>
#include <ATen/dlpack.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/dlpack.hpp>
#include <chunkio/torch.hpp>

#include "support/errors.hpp"
#include "support/leased_batches.hpp"

namespace chunkio {
namespace {

// The layout that LibTorch was compiled with.
static_assert(sizeof(dlpack::DLTensor) == sizeof(::DLTensor) &&
              offsetof(dlpack::DLTensor, device) == offsetof(::DLTensor, device) &&
              offsetof(dlpack::DLTensor, ndim) == offsetof(::DLTensor, ndim) &&
              offsetof(dlpack::DLTensor, dtype) == offsetof(::DLTensor, dtype) &&
              offsetof(dlpack::DLTensor, shape) == offsetof(::DLTensor, shape) &&
              offsetof(dlpack::DLTensor, strides) == offsetof(::DLTensor, strides) &&
              offsetof(dlpack::DLTensor, byte_offset) == offsetof(::DLTensor, byte_offset));
static_assert(sizeof(dlpack::DLManagedTensor) == sizeof(::DLManagedTensor) &&
              offsetof(dlpack::DLManagedTensor, manager_ctx) ==
                  offsetof(::DLManagedTensor, manager_ctx) &&
              offsetof(dlpack::DLManagedTensor, deleter) == offsetof(::DLManagedTensor, deleter));
static_assert(static_cast<int>(dlpack::DLDeviceType::cuda) == static_cast<int>(::kDLCUDA) &&
              static_cast<int>(dlpack::DLDeviceType::cuda_host) ==
                  static_cast<int>(::kDLCUDAHost) &&
              static_cast<int>(dlpack::DLDataTypeCode::bfloat) == static_cast<int>(::kDLBfloat));
#ifdef DLPACK_FLAG_BITMASK_READ_ONLY
static_assert(sizeof(dlpack::DLManagedTensorVersioned) == sizeof(::DLManagedTensorVersioned) &&
              offsetof(dlpack::DLManagedTensorVersioned, manager_ctx) ==
                  offsetof(::DLManagedTensorVersioned, manager_ctx) &&
              offsetof(dlpack::DLManagedTensorVersioned, deleter) ==
                  offsetof(::DLManagedTensorVersioned, deleter) &&
              offsetof(dlpack::DLManagedTensorVersioned, flags) ==
                  offsetof(::DLManagedTensorVersioned, flags) &&
              offsetof(dlpack::DLManagedTensorVersioned, dl_tensor) ==
                  offsetof(::DLManagedTensorVersioned, dl_tensor) &&
              dlpack::kReadOnly == DLPACK_FLAG_BITMASK_READ_ONLY);
#endif

class Torch : public test::LeasedBatches {
 protected:
  void expect_pixels(const torch::Tensor& images, std::int64_t first_row) const {
    ASSERT_EQ(images.scalar_type(), torch::kUInt8);
    for (std::int64_t row = 0; row < images.size(0); ++row) {
      std::vector<std::byte> expected = expected_image(first_row + row);
      ASSERT_TRUE(torch::equal(
          images[row],
          torch::from_blob(expected.data(), {file_.height, file_.width, file_.channels},
                           torch::kUInt8)))
          << "row " << row;
    }
  }
};

TEST_F(Torch, SeesImagesLabelsAndFieldsWithoutACopy) {
  Loader source = loader();
  source.start_epoch(0);
  const Batch batch = *source.next();
  const torch::Tensor images = to_torch(batch, batch.images());
  EXPECT_EQ(images.sizes(), torch::IntArrayRef({9, 5, 4, 3}));
  EXPECT_TRUE(images.is_contiguous());
  EXPECT_TRUE(images.device().is_cpu());
  EXPECT_EQ(images.data_ptr(), batch.images().data());
  expect_pixels(images, 0);
  const torch::Tensor labels = to_torch(batch, batch.labels());
  EXPECT_EQ(labels.scalar_type(), torch::kInt64);
  EXPECT_EQ(labels[4].item<std::int64_t>(), test::label_of(4));
  const torch::Tensor weights = to_torch(batch, batch["weights"]);
  EXPECT_EQ(weights.scalar_type(), torch::kFloat32);
  EXPECT_EQ(weights[7][1].item<float>(), -7.0F);
}

TEST_F(Torch, HoldsTheBatchUntilTheLastTensorOverItIsGone) {
  Loader source = loader();
  source.start_epoch(0);
  std::optional<Batch> batch = source.next();
  torch::Tensor view = to_torch(*batch, batch->images())[3];
  batch.reset();
  EXPECT_TRUE(is_held(source));
  std::thread([&] { view.reset(); }).join();
  EXPECT_FALSE(is_held(source));
}

TEST_F(Torch, OutlivesTheLoader) {
  torch::Tensor images;
  {
    Loader source = loader();
    source.start_epoch(0);
    const Batch batch = *source.next();
    images = to_torch(batch, batch.images());
  }
  expect_pixels(images, 0);
}

TEST_F(Torch, ReadsDlpackTensors) {
  Loader source = loader();
  source.start_epoch(0);
  std::optional<Batch> batch = source.next();
  auto exported = to_dlpack_legacy(*batch, batch->images());
  torch::Tensor images = at::fromDLPack(reinterpret_cast<::DLManagedTensor*>(exported.release()));
  batch.reset();
  expect_pixels(images, 0);
  EXPECT_TRUE(is_held(source));
  images.reset();
  EXPECT_FALSE(is_held(source));
}

TEST_F(Torch, RefusesWhatDoesNotLieInTheBatch) {
  Loader source = loader();
  source.start_epoch(0);
  const Batch batch = *source.next();
  const Tensor images = batch.images();
  test::expect_error(ErrorCode::invalid_argument, {"not of this batch"}, [&] {
    (void)to_torch(batch, {images.data() + 1, images.dtype(), images.shape()});
  });
  test::expect_error(ErrorCode::invalid_argument, {"empty"},
                     [&] { (void)to_torch(batch, Tensor()); });
}

TEST(TorchTensor, EveryElementTypeIsKeptOrRefused) {
  struct Case {
    DType dtype;
    torch::ScalarType expected;
  };
  const std::array cases = {
      Case{DType::uint8, torch::kUInt8},       Case{DType::int8, torch::kInt8},
      Case{DType::int16, torch::kInt16},       Case{DType::int32, torch::kInt32},
      Case{DType::int64, torch::kInt64},       Case{DType::float16, torch::kFloat16},
      Case{DType::float32, torch::kFloat32},   Case{DType::float64, torch::kFloat64},
      Case{DType::bfloat16, torch::kBFloat16},
  };
  std::array<std::byte, 64> memory{};
  for (const Case& c : cases) {
    const torch::Tensor tensor = to_torch(0, Tensor(memory.data(), c.dtype, {2, 4}));
    EXPECT_EQ(tensor.scalar_type(), c.expected) << to_string(c.dtype);
    EXPECT_EQ(tensor.nbytes(), 8 * size_of(c.dtype)) << to_string(c.dtype);
  }
  for (const DType dtype : {DType::uint16, DType::uint32, DType::uint64}) {
    const Tensor view(memory.data(), dtype, {2, 4});
    if (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)) {
      const torch::Tensor tensor = to_torch(0, view);
      EXPECT_EQ(c10::toString(tensor.scalar_type()), "UInt" + std::to_string(8 * size_of(dtype)));
    } else {
      test::expect_error(ErrorCode::unsupported, {std::string(to_string(dtype)), "2.3"},
                         [&] { (void)to_torch(0, view); });
    }
  }
}

TEST(TorchTensor, OwnsWhatKeepsItsMemory) {
  // Cannot be copied, as the lease of a device batch may be.
  auto memory = std::make_unique<std::vector<float>>(6, 1.5F);
  const Tensor view(memory->data(), DType::float32, {2, 3});
  const torch::Tensor tensor = to_torch(std::move(memory), view);
  EXPECT_EQ(tensor.sum().item<float>(), 9.0F);

  auto shared = std::make_shared<int>(0);
  for (const void* data :
       {static_cast<const void*>(shared.get()), static_cast<const void*>(nullptr)}) {
    torch::Tensor none = to_torch(shared, Tensor(data, DType::uint8, {0, 5}));
    EXPECT_EQ(none.numel(), 0);
    EXPECT_EQ(none.sizes(), torch::IntArrayRef({0, 5}));
  }
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_THROW((void)to_torch(shared, Tensor()), Error);
  EXPECT_EQ(shared.use_count(), 1);
}

}  // namespace
}  // namespace chunkio
