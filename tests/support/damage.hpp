/// Damaged files, and what of them is noticed: read in every way, an error or the right pixels
/// come.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "sources/source_select.hpp"
#include "support/h5_files.hpp"
#include "support/placed_rows.hpp"

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
        const auto selected = sources::select_source(
            internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
            {.kind = kind, .group_samples = num_rows, .direct_io = false});
        SCOPED_TRACE(to_string(kind));
        const RowGroup all{0, num_rows};
        place_rows(*selected.source, all, all_rows(all), row_bytes, rows_in(pixels, row_bytes));
      });
    }
  });
  return noticed;
}

/// Flips a bit of the file where it lies, so that who has it open sees it.
inline void flip_bit(const std::string& path, std::int64_t offset, int bits = 1) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const int value = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(value ^ bits));
  ASSERT_TRUE(file.flush());
}

/// Of image `row`, which is stored without a filter; and times of the file stay as they are.
inline void damage_image(const std::string& path, std::int64_t row) {
  const auto time = std::filesystem::last_write_time(path);
  const Dataset dataset = Dataset::open(path);
  flip_bit(path, internal::Access::impl(dataset)->leading->linear_offset.value() +
                     row * dataset.info().sample_bytes() + 5);
  std::filesystem::last_write_time(path, time);
}

/// Three ways in which a byte can be wrong: all bits, one bit, and zeroed (or not, if it was 0).
inline std::vector<std::uint8_t> other_values(std::uint8_t byte) {
  return {static_cast<std::uint8_t>(~byte), static_cast<std::uint8_t>(byte ^ 1),
          static_cast<std::uint8_t>(byte == 0 ? 0x80 : 0)};
}

}  // namespace chunkio::test
