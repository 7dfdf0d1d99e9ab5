#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dlpack.hpp>
#include <chunkio/loader.hpp>

#include "support/damage.hpp"
#include "support/errors.hpp"
#include "support/leased_batches.hpp"

namespace chunkio {
namespace {

using dlpack::DLDataType;
using dlpack::DLDataTypeCode;
using dlpack::DLDevice;
using dlpack::DLDeviceType;
using dlpack::DLTensor;

static_assert(!std::is_copy_constructible_v<dlpack::ManagedTensor> &&
              std::is_nothrow_move_constructible_v<dlpack::ManagedTensor>);
static_assert(sizeof(dlpack::ManagedTensor) == sizeof(void*));

/// Counts the copies of it that exist.
class Counted {
 public:
  explicit Counted(int& alive) : alive_(&alive) { ++*alive_; }
  Counted(const Counted& other) : alive_(other.alive_) { ++*alive_; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive_; }

 private:
  int* alive_;
};

/// The same without copies, as the lease of a device batch may be.
class CountedMoveOnly {
 public:
  explicit CountedMoveOnly(int& alive) : counted_(std::make_unique<Counted>(alive)) {}

 private:
  std::unique_ptr<Counted> counted_;
};

/// Cannot be moved into a managed tensor.
struct ThrowsWhenMoved {
  explicit ThrowsWhenMoved(int& alive) : counted(alive) {}
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : counted(other.counted) {
    throw std::runtime_error("moved");
  }
  Counted counted;
};

std::vector<std::int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

std::vector<std::int64_t> strides_of(const DLTensor& tensor) {
  return {tensor.strides, tensor.strides + tensor.ndim};
}

TEST(Dlpack, EveryElementTypeHasItsCodeAndBits) {
  struct Case {
    DType dtype;
    std::uint8_t code;
    std::uint8_t bits;
  };
  const std::array cases = {
      Case{DType::uint8, 1, 8},    Case{DType::int8, 0, 8},     Case{DType::uint16, 1, 16},
      Case{DType::int16, 0, 16},   Case{DType::uint32, 1, 32},  Case{DType::int32, 0, 32},
      Case{DType::uint64, 1, 64},  Case{DType::int64, 0, 64},   Case{DType::float32, 2, 32},
      Case{DType::float64, 2, 64}, Case{DType::float16, 2, 16}, Case{DType::bfloat16, 4, 16},
  };
  const std::vector<std::byte> memory(64);
  for (const Case& expected : cases) {
    SCOPED_TRACE(std::string(to_string(expected.dtype)));
    const auto tensor = to_dlpack(0, Tensor(memory.data(), expected.dtype, {4, 2}));
    const DLDataType dtype = tensor->dl_tensor.dtype;
    EXPECT_EQ(static_cast<int>(dtype.code), expected.code);
    EXPECT_EQ(dtype.bits, expected.bits);
    EXPECT_EQ(dtype.lanes, 1);
    EXPECT_EQ(to_dlpack_legacy(0, Tensor(memory.data(), expected.dtype, {4, 2}))->dl_tensor.dtype,
              dtype);
  }
  test::expect_error(ErrorCode::unsupported, {"DType 200"}, [&] {
    (void)to_dlpack(0, Tensor(memory.data(), static_cast<DType>(200), {4}));
  });
}

TEST(Dlpack, VersionedTensorsAreOfVersionOneAndReadOnlyUnlessTheyMayBeWritten) {
  std::array<std::uint8_t, 6> memory{};
  EXPECT_EQ(to_dlpack(0, Tensor::writable(memory.data(), DType::uint8, {2, 3}))->flags, 0U);
  const Device gpu{DeviceType::cuda, 3};
  const auto tensor = to_dlpack(0, Tensor(memory.data(), DType::uint8, {2, 3}, gpu));
  EXPECT_EQ(tensor->version.major, 1U);
  EXPECT_EQ(tensor->version.minor, 0U);
  EXPECT_EQ(tensor->flags, 1U);
  EXPECT_EQ(tensor->dl_tensor.data, memory.data());
  EXPECT_EQ(tensor->dl_tensor.byte_offset, 0U);
  EXPECT_EQ(static_cast<int>(tensor->dl_tensor.device.device_type), 2);
  EXPECT_EQ(tensor->dl_tensor.device.device_id, 3);
}

TEST(Dlpack, StridesAreThoseOfRowMajorOrder) {
  const std::array<std::uint8_t, 120> memory{};
  const auto strides = [&](const Shape& shape) {
    const auto tensor = to_dlpack(0, Tensor(memory.data(), DType::uint8, shape));
    EXPECT_EQ(shape_of(tensor->dl_tensor),
              std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()));
    return strides_of(tensor->dl_tensor);
  };
  EXPECT_EQ(strides({2, 3, 4, 5}), (std::vector<std::int64_t>{60, 20, 5, 1}));
  EXPECT_EQ(strides({7}), std::vector<std::int64_t>{1});
  EXPECT_EQ(strides({1, 1, 1, 1, 1, 1, 1, 2}), (std::vector<std::int64_t>{2, 2, 2, 2, 2, 2, 2, 1}));
  EXPECT_EQ(strides({}), std::vector<std::int64_t>{});
}

TEST(Dlpack, NoElementsMeanNoPointer) {
  int alive = 0;
  const std::byte memory{};
  for (const void* data : {static_cast<const void*>(&memory), static_cast<const void*>(nullptr)}) {
    const auto tensor = to_dlpack(Counted(alive), Tensor(data, DType::uint8, {0, 5, 4, 3}));
    EXPECT_EQ(tensor->dl_tensor.data, nullptr);
    EXPECT_EQ(shape_of(tensor->dl_tensor), (std::vector<std::int64_t>{0, 5, 4, 3}));
    EXPECT_EQ(strides_of(tensor->dl_tensor), (std::vector<std::int64_t>{60, 12, 3, 1}));
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Dlpack, TheOwnerLivesUntilTheDeleterWasCalled) {
  int alive = 0;
  const std::array<std::uint8_t, 6> memory{};
  const Tensor view(memory.data(), DType::uint8, {2, 3});
  {
    auto owned = to_dlpack(Counted(alive), view);
    EXPECT_EQ(alive, 1);
    dlpack::DLManagedTensorVersioned* released = owned.release();
    owned.reset();
    EXPECT_EQ(alive, 1);
    released->deleter(released);
    EXPECT_EQ(alive, 0);
  }
  {
    auto owned = to_dlpack_legacy(CountedMoveOnly(alive), view);
    EXPECT_EQ(alive, 1);
    dlpack::DLManagedTensor* released = owned.release();
    owned.reset();
    EXPECT_EQ(alive, 1);
    released->deleter(released);
    EXPECT_EQ(alive, 0);
  }
  {
    const auto never_taken = to_dlpack(CountedMoveOnly(alive), view);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Dlpack, AnErrorKeepsNothing) {
  int alive = 0;
  const std::byte memory{};
  test::expect_error(ErrorCode::invalid_argument, {"empty"},
                     [&] { (void)to_dlpack(Counted(alive), Tensor()); });
  test::expect_error(ErrorCode::invalid_argument, {"empty"},
                     [&] { (void)to_dlpack_legacy(Counted(alive), Tensor()); });
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  test::expect_error(ErrorCode::out_of_resources, {"63 bits"}, [&] {
    (void)to_dlpack(Counted(alive), Tensor(&memory, DType::uint8, {kHuge, kHuge}));
  });
  test::expect_error(ErrorCode::unsupported, {"DType 77"}, [&] {
    (void)to_dlpack(Counted(alive), Tensor(&memory, static_cast<DType>(77), {1}));
  });
  EXPECT_EQ(alive, 0);
  EXPECT_THROW((void)to_dlpack(ThrowsWhenMoved(alive), Tensor(&memory, DType::uint8, {1})),
               std::runtime_error);
  EXPECT_EQ(alive, 0);
}

class DlpackBatch : public test::LeasedBatches {
 protected:
  void expect_pixels(const DLTensor& images, std::int64_t first_row) const {
    ASSERT_EQ(images.ndim, 4);
    const auto* bytes = static_cast<const std::byte*>(images.data);
    for (std::int64_t row = 0; row < images.shape[0]; ++row) {
      const auto expected = expected_image(first_row + row);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), bytes + row * file_.sample_bytes()))
          << "row " << row;
    }
  }
};

TEST_F(DlpackBatch, ExportsImagesLabelsFieldsAndSampleIds) {
  Loader source = loader();
  source.start_epoch(0);
  const Batch batch = *source.next();
  const auto images = to_dlpack(batch, batch.images());
  EXPECT_EQ(images->dl_tensor.data, batch.images().data());
  EXPECT_EQ(shape_of(images->dl_tensor), (std::vector<std::int64_t>{9, 5, 4, 3}));
  EXPECT_EQ(images->dl_tensor.device.device_type, DLDeviceType::cpu);
  EXPECT_EQ(images->dl_tensor.device.device_id, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(images->dl_tensor.data) % 4096, 0U);
  expect_pixels(images->dl_tensor, 0);

  const auto labels = to_dlpack_legacy(batch, batch.labels());
  ASSERT_EQ(shape_of(labels->dl_tensor), std::vector<std::int64_t>{9});
  EXPECT_EQ(labels->dl_tensor.dtype, (DLDataType{DLDataTypeCode::signed_integer, 64, 1}));
  EXPECT_EQ(static_cast<const std::int64_t*>(labels->dl_tensor.data)[5], test::label_of(5));

  const auto weights = to_dlpack(batch, batch["weights"]);
  ASSERT_EQ(shape_of(weights->dl_tensor), (std::vector<std::int64_t>{9, 2}));
  EXPECT_EQ(static_cast<const float*>(weights->dl_tensor.data)[2 * 8 + 1], -8.0F);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weights->dl_tensor.data) % 64, 0U);

  const Tensor ids(batch.sample_ids().data(), DType::int64, {batch.size()});
  EXPECT_EQ(static_cast<const std::int64_t*>(to_dlpack(batch, ids)->dl_tensor.data)[8], 8);
}

TEST_F(DlpackBatch, IsHeldUntilTheLastDeleterWasCalledOnAnyThread) {
  Loader source = loader();
  source.start_epoch(0);
  std::optional<Batch> batch = source.next();
  auto images = to_dlpack(*batch, batch->images());
  auto labels = to_dlpack_legacy(*batch, batch->labels());
  batch.reset();
  EXPECT_TRUE(is_held(source));
  std::thread([&] { labels.reset(); }).join();
  EXPECT_TRUE(is_held(source));
  expect_pixels(images->dl_tensor, 0);
  std::thread([&] { images.reset(); }).join();
  EXPECT_FALSE(is_held(source));
}

TEST_F(DlpackBatch, OutlivesItsLoader) {
  dlpack::ManagedTensor images;
  {
    Loader source = loader();
    source.start_epoch(0);
    ASSERT_TRUE(source.next());
    Batch batch = *source.next();
    const Tensor view = batch.images();
    images = to_dlpack(std::move(batch), view);
  }
  expect_pixels(images->dl_tensor, 9);
}

TEST_F(DlpackBatch, WithoutRowsIsATensorWithoutElements) {
  // All of chunk 2, which is batch 2.
  for (std::int64_t row = 18; row < 27; ++row) test::damage_image(path_, row);
  Loader source(Dataset::open(path_),
                {.batch_size = 9,
                 .order = {.mode = OrderMode::sequential},
                 .io = {.verify = Verify::always, .on_error = OnError::skip}});
  int num_empty = 0;
  for (const Batch& batch : source.epoch(0)) {
    const auto images = to_dlpack(batch, batch.images());
    const auto labels = to_dlpack_legacy(batch, batch.labels());
    EXPECT_EQ(images->dl_tensor.shape[0], batch.size());
    EXPECT_EQ(labels->dl_tensor.shape[0], batch.size());
    EXPECT_EQ(images->dl_tensor.data == nullptr, batch.size() == 0);
    EXPECT_EQ(labels->dl_tensor.data == nullptr, batch.size() == 0);
    num_empty += batch.size() == 0 ? 1 : 0;
  }
  EXPECT_EQ(num_empty, 1);
}

TEST_F(DlpackBatch, RefusesWhatDoesNotLieInIt) {
  Loader source = loader();
  source.start_epoch(0);
  const Batch batch = *source.next();
  const std::array<std::uint8_t, 4> elsewhere{};
  const Tensor images = batch.images();
  const std::vector<Tensor> strangers = {
      {elsewhere.data(), DType::uint8, {4}},
      {images.data() - 1, DType::uint8, {1}},
      {images.data() + images.size_bytes(), DType::uint8, {1}},
      {images.data() + 1, images.dtype(), images.shape()},
      {batch.sample_ids().data(), DType::int64, {10}},
  };
  for (const Tensor& view : strangers) {
    EXPECT_FALSE(batch.contains(view));
    test::expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                       [&] { (void)to_dlpack(batch, view); });
    test::expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                       [&] { (void)to_dlpack_legacy(batch, view); });
  }
  // The last byte of each is still in.
  for (const Tensor& view : {images, batch.labels(), batch["weights"]}) {
    EXPECT_TRUE(batch.contains(view));
    EXPECT_TRUE(batch.contains({view.data() + view.size_bytes() - 1, DType::uint8, {1}}));
  }
  EXPECT_FALSE(Batch().contains(images));
  test::expect_error(ErrorCode::invalid_argument, {"empty"},
                     [&] { (void)to_dlpack(batch, Tensor()); });
}

}  // namespace
}  // namespace chunkio
