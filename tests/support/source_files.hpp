/// Small inputs for the tests of picture sources.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "sources/listing.hpp"
#include <chunkio/error.hpp>

namespace chunkio::test {

/// Writes a file, making its folders.
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  ASSERT_TRUE(out.flush()) << path;
}

/// The values of a field, in T.
template <class T>
std::vector<T> field_values(const h5pack::Split& split, std::string_view name) {
  const FieldData* field = h5pack::find_field(split, name);
  if (field == nullptr || field->info.dtype != dtype_of<T>()) {
    ADD_FAILURE() << "no field " << name << " of that type";
    return {};
  }
  std::vector<T> values(field->values.size() / sizeof(T));
  std::memcpy(values.data(), field->values.data(), field->values.size());
  return values;
}

/// The paths of a split's pictures, relative to `root`.
inline std::vector<std::string> relative_paths(const h5pack::Split& split,
                                               const std::string& root) {
  std::vector<std::string> paths;
  for (const std::string& path : std::get<std::vector<std::string>>(split.pictures)) {
    EXPECT_EQ(path.substr(0, root.size() + 1), root + "/");
    paths.push_back(path.substr(root.size() + 1));
  }
  return paths;
}

/// Expects an Error of that code whose message is one line and holds all of `parts`.
inline void expect_error(const std::function<void()>& call, ErrorCode code,
                         const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(to_string(error.code()), to_string(code)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    }
  }
}

}  // namespace chunkio::test
