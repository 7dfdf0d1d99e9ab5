#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/tensor.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

TEST(Shape, ScalarHasOneElement) {
  EXPECT_EQ(Shape().rank(), 0U);
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape().to_string(), "[]");
}

TEST(Shape, HoldsItsAxes) {
  const Shape shape{256, 32, 24, 3};
  EXPECT_EQ(shape.rank(), 4U);
  EXPECT_EQ(shape[2], 24);
  EXPECT_EQ(shape.num_elements(), 256 * 32 * 24 * 3);
  EXPECT_EQ(shape.to_string(), "[256,32,24,3]");
  EXPECT_EQ((Shape{5, 0, 3}).num_elements(), 0);
}

TEST(Shape, FirstAxisComesAndGoes) {
  const Shape sample{32, 24, 3};
  const Shape batch = sample.with_first_axis(7);
  EXPECT_EQ(batch, (Shape{7, 32, 24, 3}));
  EXPECT_EQ(batch.without_first_axis(), sample);
  EXPECT_NE(batch, sample);
}

TEST(Shape, RefusesNineAxesAndNegativeOnes) {
  const std::vector<std::int64_t> nine(9, 1);
  test::expect_error(ErrorCode::invalid_argument, {},
                     [&] { Shape{std::span<const std::int64_t>(nine)}; });
  test::expect_error(ErrorCode::invalid_argument, {}, [] {
    (void)Shape({1, 1, 1, 1, 1, 1, 1, 1}).with_first_axis(1);
  });
  test::expect_error(ErrorCode::invalid_argument, {}, [] { Shape({3, -1}); });
}

TEST(Shape, RefusesMoreElementsThan63Bits) {
  const Shape shape{std::int64_t{1} << 32, std::int64_t{1} << 31};
  test::expect_error(ErrorCode::out_of_resources, {}, [&] { (void)shape.num_elements(); });
}

TEST(DType, SizesAndNamesAgreeWithNumPy) {
  EXPECT_EQ(size_of(DType::uint8), 1U);
  EXPECT_EQ(size_of(DType::int16), 2U);
  EXPECT_EQ(size_of(DType::float32), 4U);
  EXPECT_EQ(size_of(DType::int64), 8U);
  EXPECT_EQ(size_of(DType::float16), 2U);
  EXPECT_EQ(size_of(DType::bfloat16), 2U);
  EXPECT_EQ(to_string(DType::uint8), "uint8");
  EXPECT_EQ(to_string(DType::bfloat16), "bfloat16");
  EXPECT_EQ(to_string(DType::float64), "float64");
  EXPECT_EQ(dtype_of<std::int64_t>(), DType::int64);
  EXPECT_EQ(dtype_of<std::byte>(), DType::uint8);
}

TEST(Tensor, GivesValuesOfItsTypeOnly) {
  const std::array<std::int64_t, 6> labels{1, 2, 3, 4, 5, 6};
  const Tensor view(labels.data(), DType::int64, Shape{3, 2});
  EXPECT_EQ(view.size_bytes(), 48U);
  ASSERT_EQ(view.values<std::int64_t>().size(), 6U);
  EXPECT_EQ(view.values<std::int64_t>()[5], 6);
  test::expect_error(ErrorCode::invalid_argument, {}, [&] { (void)view.values<float>(); });
}

TEST(Tensor, DefaultIsEmpty) {
  EXPECT_TRUE(Tensor().empty());
  EXPECT_EQ(Tensor().size_bytes(), 0U);
  EXPECT_TRUE(Tensor().values<double>().empty());
}

}  // namespace
}  // namespace chunkio
