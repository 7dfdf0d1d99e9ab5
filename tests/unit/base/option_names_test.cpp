#include <set>
#include <string>

#include <gtest/gtest.h>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/option_names.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

template <class Option>
class OptionNames : public ::testing::Test {};

using Options = ::testing::Types<OrderMode, Uneven, SourceKind, Verify, OnError, Resident, WhenHeld,
                                 Layout, DType, Bottleneck, CropMode, MatrixAxis, ErrorCode,
                                 DeviceType, cuda::PinMemory, cuda::DeviceResident>;
TYPED_TEST_SUITE(OptionNames, Options);

TYPED_TEST(OptionNames, EveryValueHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const TypeParam value : values_of<TypeParam>()) {
    const std::string name(to_string(value));
    EXPECT_NE(name, "unknown");
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(from_string<TypeParam>(name), value);
  }
  // The number behind the last one has none: no value was forgotten.
  const auto last = static_cast<int>(values_of<TypeParam>().back());
  EXPECT_EQ(to_string(static_cast<TypeParam>(last + 1)), "unknown");
}

TEST(OptionNamesTest, AnErrorListsTheNames) {
  test::expect_error(ErrorCode::invalid_argument,
                     {"'shuffled'", "chunk_shuffled, sequential, random"},
                     [] { static_cast<void>(from_string<OrderMode>("shuffled")); });
}

}  // namespace
}  // namespace chunkio
