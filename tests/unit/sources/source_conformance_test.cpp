/// The conformance suite: every chunk source, over the same files, must put the same bytes in the
/// same places.
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/access.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "io/disk_limiter.hpp"
#include "io/local_file.hpp"
#include "io/read_ahead.hpp"
#include "sources/mapped_source.hpp"
#include "sources/scatter_source.hpp"
#include "sources/source_select.hpp"
#include "sources/trial_source.hpp"
#include "support/errors.hpp"
#include "support/pixels.hpp"
#include "support/placed_rows.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

struct Case {
  std::string name;
  test::PackedFile file;
};

/// A source by itself, as a slower disk serves it, or alternately with another one.
struct Kind {
  SourceKind kind = SourceKind::automatic;
  bool limited = false;
  bool tried = false;  ///< `mapped` and `scatter`, both with all stores, each for one group read.

  [[nodiscard]] std::string name() const {
    return tried ? "tried" : (limited ? "limited_" : "") + std::string(to_string(kind));
  }
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name(); }
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"small_pictures", {.num_samples = 100, .chunk_samples = 7}},
      {"one_sample_a_chunk", {.num_samples = 13, .chunk_samples = 1}},
      {"one_chunk", {.num_samples = 50, .chunk_samples = 50}},
      {"chunk_as_large_as_the_data_but_one", {.num_samples = 51, .chunk_samples = 50}},
      {"one_sample", {.num_samples = 1, .chunk_samples = 1}},
      {"one_byte", {.num_samples = 31, .height = 1, .width = 1, .channels = 1, .chunk_samples = 8}},
      {"nchw",
       {.num_samples = 60,
        .height = 6,
        .width = 5,
        .channels = 3,
        .chunk_samples = 11,
        .layout = Layout::nchw}},
      // Rows that straddle the pieces in which scatter reads, and rows larger than a piece.
      {"rows_that_do_not_divide_a_piece",
       {.num_samples = 40, .height = 100, .width = 131, .channels = 3, .chunk_samples = 17}},
      {"rows_larger_than_a_piece",
       {.num_samples = 5, .height = 512, .width = 701, .channels = 3, .chunk_samples = 2}},
  };
  return all;
}

class ChunkSourceTest : public ::testing::TestWithParam<std::tuple<Kind, Case>> {
 protected:
  void SetUp() override {
    const Case& c = std::get<1>(GetParam());
    file_ = c.file;
    test::write_packed(scratch_.file("pictures.h5"), file_);
    dataset_.emplace(Dataset::open(scratch_.file("pictures.h5")));
    source_ = make_source(*dataset_);
  }

  [[nodiscard]] std::unique_ptr<ChunkSource> make_source(const Dataset& dataset) const {
    const Kind& kind = std::get<0>(GetParam());
    const auto& impl = internal::Access::impl(dataset);
    if (kind.tried) {
      const auto read_ahead = std::make_shared<io::ReadAhead>(true);
      const auto bytes =
          std::make_shared<io::CachedFile>(io::as_local_file(impl->bytes), read_ahead);
      std::vector<std::unique_ptr<ChunkSource>> sources;
      sources.push_back(std::make_unique<sources::MappedSource>(impl, impl->leading, read_ahead));
      sources.push_back(std::make_unique<sources::ScatterSource>(impl, impl->leading, bytes));
      constexpr sources::TrialLimits kLimits{.turn_bytes = 1, .num_turns = 3};
      return std::make_unique<sources::TrialSource>(
          std::move(sources),
          std::make_shared<sources::SourceTrials>(
              std::vector{SourceKind::mapped, SourceKind::scatter}, kLimits),
          file_.sample_bytes(), [](const RowRange& rows) { return rows.begin % 2 == 0; });
    }
    sources::SourceRequest request{.kind = kind.kind, .group_samples = file_.chunk_samples};
    if (kind.limited) {
      request.disk = std::make_shared<io::DiskLimiter>(
          DiskLimit{.bytes_per_second = 2e9, .request_seconds = 1e-5, .queue_depth = 4});
    }
    return sources::select_source(impl, impl->leading, request).source;
  }
  [[nodiscard]] RowGroup group(std::int64_t index) const {
    const std::int64_t first = index * file_.chunk_samples;
    return {.first_row = first,
            .num_rows = std::min(file_.chunk_samples, file_.num_samples - first)};
  }
  [[nodiscard]] std::int64_t num_groups() const {
    return (file_.num_samples + file_.chunk_samples - 1) / file_.chunk_samples;
  }

  ReadCost place(const ChunkSource& source, const RowGroup& rows,
                 const std::vector<std::uint32_t>& wanted, const std::stop_token& stop = {}) const {
    const std::int64_t bytes = file_.sample_bytes();
    return test::place_rows(
        source, rows, wanted, bytes, [&](std::int64_t row) { return test::image(row, bytes); },
        stop);
  }
  void check(std::int64_t index, const std::vector<std::uint32_t>& rows) const {
    EXPECT_GE(place(*source_, group(index), rows).bytes_read, file_.sample_bytes());
  }
  /// Of the last row.
  ReadCost place_last(const ChunkSource& source) const {
    const RowGroup last = group(num_groups() - 1);
    return place(source, last, {static_cast<std::uint32_t>(last.num_rows - 1)});
  }

  test::ScratchFolder scratch_;
  test::PackedFile file_;
  std::optional<Dataset> dataset_;
  std::unique_ptr<ChunkSource> source_;
};

TEST_P(ChunkSourceTest, PlacesWholeGroups) {
  for (std::int64_t g = 0; g < num_groups(); ++g) check(g, test::all_rows(group(g)));
}

TEST_P(ChunkSourceTest, PlacesAnyRowsOfAGroupAlsoTwice) {
  const std::uint64_t seed = test::test_seed();
  std::mt19937_64 random(seed);
  for (std::int64_t g = 0; g < num_groups(); ++g) {
    for (int round = 0; round < 4; ++round) {
      std::vector<std::uint32_t> rows;
      for (std::int64_t r = 0; r < group(g).num_rows; ++r) {
        const std::uint64_t copies = random() % 8 == 0 ? 2 : random() % 2;
        rows.insert(rows.end(), copies, static_cast<std::uint32_t>(r));
      }
      if (rows.empty()) rows.push_back(static_cast<std::uint32_t>(group(g).num_rows - 1));
      check(g, rows);
    }
  }
}

TEST_P(ChunkSourceTest, PlacesNothingIfNothingIsWanted) {
  const ReadCost cost = source_->place(group(0), {}, std::stop_token());
  EXPECT_EQ(cost.bytes_read, 0);
}

TEST_P(ChunkSourceTest, PrefetchesAnyRowsOfAGroup) {
  const RowGroup last = group(num_groups() - 1);
  const std::int64_t end = last.first_row + last.num_rows;
  source_->prefetch(last, {last.first_row, end});
  source_->prefetch(last, {end - 1, end});
  place_last(*source_);
}

TEST_P(ChunkSourceTest, WorksConcurrently) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (std::int64_t g = t % num_groups(); g < num_groups(); ++g) {
        check(g, test::all_rows(group(g)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ChunkSourceTest, StopsOnRequest) {
  std::stop_source stop;
  stop.request_stop();
  test::expect_error(ErrorCode::cancelled, {},
                     [&] { place(*source_, group(0), {0}, stop.get_token()); });
}

TEST_P(ChunkSourceTest, FileCutShortWhileReadingIsAnErrorNotPixels) {
  const std::string path = scratch_.file("cut.h5");
  std::filesystem::copy_file(dataset_->info().path, path,
                             std::filesystem::copy_options::overwrite_existing);
  const Dataset dataset = Dataset::open(path);
  const auto source = make_source(dataset);
  // The images lie in the middle of the file or at its end; half of it is surely gone after this.
  std::filesystem::resize_file(
      path,
      static_cast<std::uintmax_t>(internal::Access::impl(dataset)->leading->linear_offset.value() +
                                  file_.num_samples * file_.sample_bytes() / 2));
  EXPECT_THROW(place_last(*source), Error);
}

TEST_P(ChunkSourceTest, FileRewrittenWhileReadingIsAnError) {
  const std::string path = scratch_.file("rewritten.h5");
  std::filesystem::copy_file(dataset_->info().path, path,
                             std::filesystem::copy_options::overwrite_existing);
  const Dataset dataset = Dataset::open(path);
  const auto source = make_source(dataset);
  place(*source, group(0), {0});
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_THROW(place(*source, group(0), {0}), Error);
}

TEST_P(ChunkSourceTest, FileReplacedWhileReadingGoesOnWithTheOldOne) {
  const std::string path = scratch_.file("replaced.h5");
  std::filesystem::copy_file(dataset_->info().path, path,
                             std::filesystem::copy_options::overwrite_existing);
  const Dataset dataset = Dataset::open(path);
  source_ = make_source(dataset);
  std::filesystem::copy_file(dataset_->info().path, path + ".new",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(path + ".new", path);
  check(0, {0});
}

INSTANTIATE_TEST_SUITE_P(
    Sources, ChunkSourceTest,
    ::testing::Combine(::testing::Values(Kind{SourceKind::mapped}, Kind{SourceKind::scatter},
                                         Kind{SourceKind::direct}, Kind{SourceKind::hdf5},
                                         Kind{SourceKind::automatic}, Kind{.tried = true},
                                         Kind{SourceKind::scatter, true},
                                         Kind{SourceKind::hdf5, true}),
                       ::testing::ValuesIn(cases())),
    [](const auto& instance) {
      return std::get<0>(instance.param).name() + "_" + std::get<1>(instance.param).name;
    });

}  // namespace
}  // namespace chunkio
