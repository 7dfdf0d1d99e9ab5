/// Truncated and altered files: an error or the right pixels, never a crash, a hang or wrong
/// pixels.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"
#include "support/damage.hpp"
#include "support/h5_files.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace chunkio {
namespace {

std::string own_file(const test::ScratchFolder& folder) {
  const DatasetSpec spec = test::small_spec(40);
  std::string path = folder.file("own.h5");
  DatasetWriter writer(path, spec, {.chunk_samples = 16});
  test::write_pattern(writer, spec);
  writer.set_statistics({{{0.25, 0.5, 0.75}, {0.1, 0.2, 0.3}}, {14, 13, 13}});
  writer.close();
  return path;
}

class TruncatedFileTest : public testing::TestWithParam<const char*> {
 protected:
  test::ScratchFolder folder_;
};

TEST_P(TruncatedFileTest, IsAnErrorAtEveryLength) {
  const std::string name = GetParam();
  const std::string path = name == "own" ? own_file(folder_) : test::h5py_file(folder_, name);
  const auto whole = test::read_bytes(path);
  EXPECT_NO_THROW(Dataset::open(path));
  for (std::size_t part = 0; part < 64; ++part) {
    const std::size_t length = whole.size() * part / 64;
    SCOPED_TRACE(std::to_string(length) + " of " + std::to_string(whole.size()) + " bytes");
    test::write_bytes(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    test::expect_error(ErrorCode::corrupt_data, {path}, [&] { Dataset::open(path); });
  }
  test::write_bytes(path, {whole.begin(), whole.end() - 1});
  test::expect_error(ErrorCode::corrupt_data, {path}, [&] { Dataset::open(path); });
  EXPECT_EQ(h5::live_ids(), 0);
}

INSTANTIATE_TEST_SUITE_P(Files, TruncatedFileTest,
                         testing::Values("own", "contiguous", "whole_chunks", "deflate",
                                         "user_block", "unallocated"),
                         [](const auto& param) { return std::string(param.param); });

TEST(DamagedFile, TrailingGarbageDoesNoHarm) {
  const test::ScratchFolder folder;
  const std::string path = own_file(folder);
  auto bytes = test::read_bytes(path);
  bytes.insert(bytes.end(), 1000, 'x');
  test::write_bytes(path, bytes);
  EXPECT_EQ(test::read_rows(Dataset::open(path), 0, 40), test::pattern_rows(0, 40, 90));
}

/// What is changed in a file, and who notices.
class ChangedMetadata {
 public:
  ChangedMetadata() : path_(own_file(folder_)), whole_(test::read_bytes(path_)) {
    const std::int64_t begin =
        *internal::Access::impl(Dataset::open(path_))->leading->linear_offset;
    pixels_begin_ = static_cast<std::size_t>(begin);
  }

  /// Every `step`th byte that is no pixel, one after the other, with each of its wrong values.
  void expect_harmless(std::size_t step) {
#if defined(__SANITIZE_ADDRESS__)
    // libhdf5 1.10.8 itself loses some 400 bytes for each damaged object header, which may come
    // from its lists of free objects; our ids are counted below.
    H5garbage_collect();
    const __lsan::ScopedDisabler disabler;
#endif
    const auto pixels = test::pattern_rows(0, 40, 90);
    for (std::size_t at = 0; at < whole_.size(); at += step) {
      if (at >= pixels_begin_ && at < pixels_begin_ + kPixelBytes) continue;
      for (const std::uint8_t value : test::other_values(whole_[at])) {
        SCOPED_TRACE("byte " + std::to_string(at) + " is " + std::to_string(value));
        auto bytes = whole_;
        bytes[at] = value;
        test::write_bytes(path_, bytes);
        ++(test::is_noticed(path_, pixels) ? noticed : harmless);
        if (testing::Test::HasFailure()) return;
      }
    }
    EXPECT_EQ(h5::live_ids(), 0);
  }

  int noticed = 0;
  int harmless = 0;  ///< The right pixels all the same.

 private:
  static constexpr std::size_t kPixelBytes = 3UL * 16 * 90;

  test::ScratchFolder folder_;
  std::string path_;
  std::vector<std::uint8_t> whole_;
  std::size_t pixels_begin_ = 0;
};

/// Metadata of this format carries checksums, so a changed byte is noticed or does not matter.
TEST(DamagedFile, ChangedMetadataNeverGivesOtherPixels) {
  ChangedMetadata file;
  file.expect_harmless(29);
  EXPECT_GT(file.noticed, 20);
}

/// The same of every byte; takes long.
TEST(EveryByteOfAFile, ChangedMetadataNeverGivesOtherPixels) {
  ChangedMetadata file;
  file.expect_harmless(1);
  EXPECT_GT(file.noticed, 600);
}

}  // namespace
}  // namespace chunkio
