#include "sources/mapped_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>

#include "base/access.hpp"
#include "base/positional_io.hpp"
#include "h5/dataset_impl.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"
#include "support/cached_pages.hpp"
#include "support/pixels.hpp"
#include "support/placed_rows.hpp"
#include "support/scratch.hpp"

namespace chunkio::sources {
namespace {

/// While it lasts, this process is another user, to whom the kernel does not tell what of a file is
/// in memory. Only root can become one.
class AnotherUser {
 public:
  explicit AnotherUser(bool wanted)
      : became_(wanted && ::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~AnotherUser() { EXPECT_TRUE(!became_ || ::seteuid(0) == 0); }
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;

 private:
  bool became_;
};

class MappedSourceTest : public testing::TestWithParam<bool> {};

/// In the order of an epoch, what follows in the file mostly comes much later. The kernel would
/// read it first: 4 MiB behind each folio.
TEST_P(MappedSourceTest, ReadsTheFoliosOfItsRowsAndNothingBehindThem) {
  const bool shown = GetParam();
  const test::ScratchFolder scratch;
  const test::PackedFile file{
      .num_samples = 192, .height = 512, .width = 512, .channels = 1, .chunk_samples = 16};
  const std::string path = scratch.file("pictures.h5");
  test::write_packed(path, file);
  base::FileDescriptor opened = base::FileDescriptor::open_for_reading(path);
  std::shared_ptr<const io::LocalFile> local;
  {
    const AnotherUser user(!shown);
    local = std::make_shared<const io::LocalFile>(std::move(opened), path);
  }
  if (local->shows_pages() != shown) GTEST_SKIP() << "only root can become another user";
  const Dataset dataset = Dataset::open(local);
  const auto& impl = internal::Access::impl(dataset);
  const auto size = static_cast<std::size_t>(local->size());
  test::drop_from_cache(local->fd());
  if (test::cached_bytes(local->fd(), size) != 0)
    GTEST_SKIP() << "this file system keeps its pages";

  const MappedSource source(impl, impl->leading, std::make_shared<io::ReadAhead>(true));
  const std::int64_t bytes = file.sample_bytes();
  const auto read = [&](const RowGroup& group) {
    const AnotherUser user(!shown);
    test::place_rows(
        source, group, test::all_rows(group), bytes,
        [&](std::int64_t row) { return test::image(row, bytes); }, std::stop_token());
  };
  // ReadAhead checks once that a folio came whole, which may bring what lies behind that one.
  if (!shown) read({.first_row = 0, .num_rows = file.chunk_samples});
  const RowGroup group{.first_row = 80, .num_rows = file.chunk_samples};
  for (int time = 0; time < 2; ++time) read(group);
  const std::vector<bool> pages = test::cached_pages(local->fd(), size);
  const auto page_at = [&](std::int64_t offset) {
    return pages.begin() + std::clamp<std::int64_t>(offset / 4096, 0, std::ssize(pages));
  };
  const std::int64_t first = impl->leading->linear_offset.value() + group.first_row * bytes;
  const std::int64_t begin = first / io::kFolioBytes * io::kFolioBytes;
  const std::int64_t end =
      (first + group.num_rows * bytes + io::kFolioBytes - 1) / io::kFolioBytes * io::kFolioBytes;
  EXPECT_EQ(std::count(page_at(begin), page_at(end), false), 0);
  EXPECT_EQ(std::count(page_at(end), pages.end(), true), 0) << "behind them";
}

INSTANTIATE_TEST_SUITE_P(Files, MappedSourceTest, testing::Values(true, false),
                         [](const auto& shown) { return shown.param ? "own" : "of_another"; });

}  // namespace
}  // namespace chunkio::sources
