#include "h5pack/dataset/class_labels.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace h5pack {
namespace {

chunkio::DatasetInfo with_classes(std::vector<std::string> names) {
  chunkio::DatasetInfo info;
  info.path = "photos.h5";
  info.class_names = std::move(names);
  return info;
}

std::string message(const chunkio::DatasetInfo& info, const std::string& name) {
  return chunkio::test::refusal([&] { static_cast<void>(labels_of(info, {name})); });
}

TEST(ClassLabels, AreNamesOrNumbers) {
  const chunkio::DatasetInfo info = with_classes({"airplane", "cat", "dog"});
  EXPECT_EQ(labels_of(info, {"dog", "0", "cat"}), (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_EQ(labels_of(with_classes({}), {"7", "-1"}), (std::vector<std::int64_t>{7, -1}));
  EXPECT_TRUE(labels_of(info, {}).empty());
}

TEST(ClassLabels, AClassCalledByANumberIsMeantByIt) {
  // As ImageFolder sorts them.
  EXPECT_EQ(labels_of(with_classes({"0", "1", "10", "2"}), {"10", "2", "3"}),
            (std::vector<std::int64_t>{2, 3, 3}));
}

TEST(ClassLabels, SuggestsCloseNamesClosestFirst) {
  const chunkio::DatasetInfo info = with_classes({"dogs", "cat", "dog", "DOG"});
  EXPECT_EQ(message(info, "cot"), "--labels: photos.h5 has no class 'cot'; did you mean cat?");
  EXPECT_NE(message(info, "Dog").find("did you mean dog, DOG, dogs?"), std::string::npos);
  EXPECT_NE(message(info, "dogz").find("did you mean dogs, dog, DOG?"), std::string::npos);
}

TEST(ClassLabels, ListsTheFirstNamesIfNoneIsClose) {
  EXPECT_NE(message(with_classes({"a", "b", "c", "d", "e", "f", "g"}), "horse")
                .find("the file has a, b, c, d, e and 2 more"),
            std::string::npos);
  EXPECT_NE(message(with_classes({}), "horse").find("no class names: use numbers"),
            std::string::npos);
}

TEST(ClassLabels, LongNamesAreNoTrouble) {
  const std::string longest(1 << 20, 'a');
  EXPECT_NE(message(with_classes({longest + "b"}), longest).find("did you mean"),
            std::string::npos);
}

}  // namespace
}  // namespace h5pack
