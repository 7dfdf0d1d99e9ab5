/// Damaged files read in every way: an error or the right pixels, nothing else.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "h5/dataset_impl.hpp"
#include "io/source_select.hpp"
#include "support/h5_files.hpp"

namespace chunkio::test {

/// Opens the file and reads all images through libhdf5 and through every source; pixels other
/// than `pixels` fail the test.
/// \returns whether any of it was an error.
inline bool is_noticed(const std::string& path, const std::vector<std::byte>& pixels) {
  bool noticed = false;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      noticed = true;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  };
  attempt([&] {
    const Dataset dataset = Dataset::open(path);
    const std::int64_t num_rows = dataset.size();
    const std::int64_t row_bytes = dataset.info().sample_bytes();
    ASSERT_EQ(num_rows * row_bytes, static_cast<std::int64_t>(pixels.size()));
    attempt([&] { EXPECT_TRUE(read_rows(dataset, 0, num_rows) == pixels) << "read_images"; });
    for (const SourceKind kind :
         {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
      attempt([&] {
        const auto selected =
            io::select_source(dataset.impl(), dataset.impl()->images,
                              {.kind = kind, .group_samples = num_rows, .direct_io = false});
        std::vector<std::byte> memory(pixels.size());
        std::vector<RowTarget> rows;
        for (std::uint32_t row = 0; row < num_rows; ++row) {
          rows.push_back({row, memory.data() + row * row_bytes});
        }
        (void)selected.source->place({0, num_rows}, rows, {});
        EXPECT_TRUE(memory == pixels) << to_string(kind);
      });
    }
  });
  return noticed;
}

/// Three ways in which a byte can be wrong: all bits, one bit, and zeroed (or not, if it was 0).
inline std::vector<std::uint8_t> other_values(std::uint8_t byte) {
  return {static_cast<std::uint8_t>(~byte), static_cast<std::uint8_t>(byte ^ 1),
          static_cast<std::uint8_t>(byte == 0 ? 0x80 : 0)};
}

}  // namespace chunkio::test
