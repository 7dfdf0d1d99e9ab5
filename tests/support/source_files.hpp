/// Small inputs for the tests of image sources.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "h5pack/sources/listing.hpp"
#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace h5pack {

using chunkio::ErrorCode;
using chunkio::test::expect_error;
using Names = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

/// Writes a file, making its folders.
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  ASSERT_TRUE(out.flush()) << path;
}

/// The values of a field, in T.
template <class T>
std::vector<T> field_values(const Split& split, std::string_view name) {
  const chunkio::FieldData* field = find_field(split.fields, name);
  if (field == nullptr || field->info.dtype != chunkio::dtype_of<T>()) {
    ADD_FAILURE() << "no field " << name << " of that type";
    return {};
  }
  std::vector<T> values(field->values.size() / sizeof(T));
  std::memcpy(values.data(), field->values.data(), field->values.size());
  return values;
}

/// The paths of a split's images, relative to `root`.
inline std::vector<std::string> relative_paths(const Split& split, const std::string& root) {
  std::vector<std::string> paths;
  for (const std::string& path : split.images->files().paths) {
    EXPECT_EQ(path.substr(0, root.size() + 1), root + "/");
    paths.push_back(path.substr(root.size() + 1));
  }
  return paths;
}

/// A folder of such inputs.
class SourceTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string root() const { return scratch_.path().string(); }

  chunkio::test::ScratchFolder scratch_;
};

}  // namespace h5pack
