/// Writing in several runs: journal, resuming, and files that become shorter.
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/statistics.hpp>
#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"
#include "support/damage.hpp"
#include "support/h5_files.hpp"
#include "write/journal.hpp"

namespace chunkio {
namespace {

using test::expect_error;
using test::small_spec;

constexpr std::int64_t kSampleBytes = 90;
constexpr std::int64_t kSamples = 40;
constexpr std::int64_t kChunkSamples = 6;  // 7 chunks, the last one of 4

const std::vector<std::string> kLeftover = {"out.h5.partial", "out.h5.partial.journal"};

class DatasetWriterResume : public testing::Test {
 protected:
  ~DatasetWriterResume() override { EXPECT_EQ(h5::live_ids(), 0) << "an HDF5 id leaked"; }

  static WriterOptions fresh(const std::string& identity = R"({"files":40})") {
    WriterOptions options;
    options.chunk_samples = kChunkSamples;
    options.identity = identity;
    options.commit_bytes = 2 * kChunkSamples * kSampleBytes;
    return options;
  }
  static WriterOptions resume(const std::string& identity = R"({"files":40})") {
    WriterOptions options = fresh(identity);
    options.resume = true;
    return options;
  }

  static void write(DatasetWriter& writer, std::int64_t chunk) {
    const std::int64_t first = chunk * kChunkSamples;
    writer.write_chunk(
        chunk, test::pattern_rows(first, std::min(kChunkSamples, kSamples - first), kSampleBytes),
        "note " + std::to_string(chunk));
  }

  /// A run that wrote `chunks` and stopped there, politely.
  void interrupted_run(const std::vector<std::int64_t>& chunks) const {
    DatasetWriter writer(path_, small_spec(kSamples), fresh());
    for (const std::int64_t chunk : chunks) write(writer, chunk);
    writer.commit();
  }

  /// Writes what `writer` lacks, publishes, and looks at the result.
  void finish(DatasetWriter writer) const {
    std::vector<std::int64_t> missing(static_cast<std::size_t>(writer.num_chunks()));
    for (std::size_t i = 0; i < missing.size(); ++i) missing[i] = static_cast<std::int64_t>(i);
    for (const ResumedChunk& chunk : writer.resumed()) {
      EXPECT_EQ(chunk.note, "note " + std::to_string(chunk.chunk));
      EXPECT_EQ(chunk.num_rows, std::min(kChunkSamples, kSamples - chunk.chunk * kChunkSamples));
      std::erase(missing, chunk.chunk);
    }
    for (const std::int64_t chunk : missing) write(writer, chunk);
    writer.close();
    EXPECT_FALSE(writer.committed());
    expect_complete(small_spec(kSamples));
    // Of the chunks of the earlier run, too.
    PixelStatistics pixels(3, Layout::nhwc);
    for (std::int64_t row = 0; row < kSamples; ++row) {
      const std::vector<std::byte> image = test::pattern_rows(row, 1, kSampleBytes);
      pixels.add({reinterpret_cast<const std::uint8_t*>(image.data()), image.size()});
    }
    const DatasetInfo info = Dataset::open(path_).info();
    ASSERT_TRUE(info.statistics);
    EXPECT_EQ(info.statistics->mean, pixels.result().mean);
    EXPECT_EQ(info.statistics->std, pixels.result().std);
    EXPECT_EQ(info.mean_picture_std, pixels.mean_picture_std());
    EXPECT_EQ(info.class_counts, count_classes(small_spec(kSamples).fields, info.class_names));
  }

  static std::vector<std::int64_t> chunks_of(const DatasetWriter& writer) {
    std::vector<std::int64_t> chunks;
    for (const ResumedChunk& chunk : writer.resumed()) chunks.push_back(chunk.chunk);
    return chunks;
  }

  /// The file at path_ holds all of `spec`, and nothing lies beside it.
  void expect_complete(const DatasetSpec& spec) const {
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5"});
    const Dataset dataset = Dataset::open(path_);
    ASSERT_EQ(dataset.size(), spec.num_samples);
    EXPECT_TRUE(internal::Access::impl(dataset)->leading->linear_offset);
    EXPECT_TRUE(test::read_rows(dataset, 0, spec.num_samples) ==
                test::pattern_rows(0, spec.num_samples, kSampleBytes));
    for (const FieldData& field : spec.fields) {
      std::vector<std::byte> values(field.values.size());
      dataset.read_field(field.info.name, 0, spec.num_samples, values);
      EXPECT_TRUE(values == field.values) << field.info.name;
    }
    EXPECT_EQ(dataset.info().digests_cover.size(), 1 + spec.fields.size());
    EXPECT_TRUE(verify_chunks(dataset).damaged.empty());
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("out.h5");
  std::string partial_ = path_ + ".partial";
  std::string journal_ = partial_ + ".journal";
};

TEST_F(DatasetWriterResume, StoppedWhileReadingBackAllCanBeResumed) {
  std::stop_source stop;
  WriterOptions options = fresh();
  options.stop = stop.get_token();
  {
    DatasetWriter writer(path_, small_spec(kSamples), options);
    for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) write(writer, chunk);
    stop.request_stop();
    expect_error(ErrorCode::cancelled, {}, [&] { writer.close(); });
    EXPECT_TRUE(writer.committed());
  }
  EXPECT_EQ(folder_.names(), kLeftover);
  options.resume = true;
  expect_error(ErrorCode::cancelled, {"resume"},
               [&] { DatasetWriter(path_, small_spec(kSamples), options); });
  EXPECT_EQ(folder_.names(), kLeftover);
  DatasetWriter writer(path_, small_spec(kSamples), resume());
  EXPECT_EQ(chunks_of(writer).size(), 7U);
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, GoesOnWhereTheLastGroupWasCommitted) {
  {
    DatasetWriter writer(path_, small_spec(kSamples), fresh());
    EXPECT_FALSE(writer.committed());
    write(writer, 4);
    EXPECT_FALSE(writer.committed());
    write(writer, 1);
    EXPECT_TRUE(writer.committed());
    write(writer, 2);
  }
  EXPECT_EQ(folder_.names(), kLeftover);
  DatasetWriter writer(path_, small_spec(kSamples), resume());
  EXPECT_EQ(chunks_of(writer), (std::vector<std::int64_t>{1, 4}));
  EXPECT_TRUE(writer.committed());
  expect_error(ErrorCode::invalid_argument, {"written twice"}, [&] { write(writer, 4); });
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, ChunksFromManyThreadsAreAllRecorded) {
  {
    DatasetWriter writer(path_, small_spec(kSamples), fresh());
    {
      std::vector<std::jthread> threads;
      for (std::int64_t thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&writer, thread] {
          for (std::int64_t chunk = thread; chunk < 7; chunk += 3) write(writer, chunk);
        });
      }
    }
    writer.commit();
  }
  DatasetWriter writer(path_, small_spec(kSamples), resume());
  EXPECT_EQ(chunks_of(writer).size(), 7U);
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, ANoteThatCouldNotBeReadAgainIsRefused) {
  constexpr std::size_t kTooMany = (std::size_t{1} << 30) + 1;
  void* map =
      ::mmap(nullptr, kTooMany, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  DatasetWriter writer(path_, small_spec(kSamples), fresh());
  expect_error(ErrorCode::invalid_argument, {"chunk 3", "note"}, [&] {
    writer.write_chunk(3, test::pattern_rows(0, kChunkSamples, kSampleBytes),
                       {static_cast<const char*>(map), kTooMany});
  });
  ::munmap(map, kTooMany);
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, WithoutACommittedGroupNothingIsLeft) {
  {
    DatasetWriter writer(path_, small_spec(kSamples), fresh());
    write(writer, 0);
  }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(DatasetWriterResume, WithNothingToResumeItStartsAfresh) {
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
  std::filesystem::remove(path_);

  test::write_bytes(partial_, {'x'});
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
  std::filesystem::remove(path_);

  test::write_bytes(journal_, {'x'});
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
  std::filesystem::remove(path_);

  interrupted_run({1});
  std::filesystem::remove(partial_);
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
  std::filesystem::remove(path_);

  interrupted_run({1});
  std::filesystem::resize_file(journal_, 20);
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
}

TEST_F(DatasetWriterResume, AJournalWithoutItsFileIsReplaced) {
  interrupted_run({1});
  std::filesystem::remove(partial_);
  finish(DatasetWriter(path_, small_spec(kSamples), fresh()));
}

TEST_F(DatasetWriterResume, ALeftoverIsRefusedUnlessAskedFor) {
  interrupted_run({1, 2});
  expect_error(ErrorCode::output_exists, {partial_, "resume", "overwrite"},
               [&] { DatasetWriter(path_, small_spec(kSamples), fresh()); });
  EXPECT_EQ(folder_.names(), kLeftover);
  EXPECT_EQ(chunks_of(DatasetWriter(path_, small_spec(kSamples), resume())).size(), 2U);

  WriterOptions options = fresh();
  options.overwrite = true;
  DatasetWriter writer(path_, small_spec(kSamples), options);
  EXPECT_TRUE(writer.resumed().empty());
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, AnotherRunIsRefusedAndTheFirstDifferenceNamed) {
  interrupted_run({1, 2});
  const auto refused = [&](const std::string& difference, const WriterOptions& options,
                           auto change) {
    SCOPED_TRACE(difference);
    DatasetSpec spec = small_spec(kSamples);
    change(spec);
    expect_error(ErrorCode::invalid_argument, {partial_, difference, "overwrite"},
                 [&] { DatasetWriter(path_, spec, options); });
    EXPECT_EQ(folder_.names(), kLeftover);
  };
  refused(R"("files" was 40 and is now 41)", resume(R"({"files":41})"), [](DatasetSpec&) {});
  refused(R"("seed" was)", resume(), [](DatasetSpec& s) { s.seed = 1; });
  refused(R"("field labels" was)", resume(),
          [](DatasetSpec& s) { s.fields[0].values[0] = std::byte{1}; });
  WriterOptions larger = resume();
  larger.chunk_samples = 7;
  refused(R"("chunk_samples" was 6 and is now 7)", larger, [](DatasetSpec&) {});
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
}

TEST_F(DatasetWriterResume, AJournalThatDoesNotSayWhoseItIsIsNamed) {
  interrupted_run({1});
  std::filesystem::remove(journal_);
  write::Journal::create(journal_, {.run = "{}"}).file().keep();
  expect_error(ErrorCode::corrupt_data, {journal_, "identity", "overwrite"},
               [&] { DatasetWriter(path_, small_spec(kSamples), resume()); });
  EXPECT_EQ(folder_.names(), kLeftover);
}

TEST_F(DatasetWriterResume, ChunksThatWereDamagedAreWrittenAgain) {
  interrupted_run({0, 1, 2, 6});
  const std::int64_t base =
      *internal::Access::impl(Dataset::open(partial_))->leading->linear_offset;
  test::flip_bit(partial_, base + 1 * kChunkSamples * kSampleBytes + 5);
  test::flip_bit(partial_, base + 7 * kChunkSamples * kSampleBytes - 1);  // padding
  DatasetWriter writer(path_, small_spec(kSamples), resume());
  EXPECT_EQ(chunks_of(writer), (std::vector<std::int64_t>{0, 2}));
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, TheLastRecordOfAChunkCounts) {
  interrupted_run({0, 1});
  const std::int64_t base =
      *internal::Access::impl(Dataset::open(partial_))->leading->linear_offset;
  test::flip_bit(partial_, base);
  {
    DatasetWriter writer(path_, small_spec(kSamples), resume());
    EXPECT_EQ(chunks_of(writer), (std::vector<std::int64_t>{1}));
    write(writer, 0);
    writer.commit();
  }
  DatasetWriter writer(path_, small_spec(kSamples), resume());
  EXPECT_EQ(chunks_of(writer), (std::vector<std::int64_t>{0, 1}));
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, ADamagedStructureIsAnErrorAndLosesNothing) {
  interrupted_run({0, 1});
  test::flip_bit(partial_, 300);
  expect_error(ErrorCode::corrupt_data, {partial_, "overwrite"},
               [&] { DatasetWriter(path_, small_spec(kSamples), resume()); });
  EXPECT_EQ(folder_.names(), kLeftover);
  test::flip_bit(partial_, 300);
  std::filesystem::resize_file(partial_, std::filesystem::file_size(partial_) + 1);
  expect_error(ErrorCode::corrupt_data, {partial_, "overwrite"},
               [&] { DatasetWriter(path_, small_spec(kSamples), resume()); });
  std::filesystem::resize_file(partial_, std::filesystem::file_size(partial_) - 1);
  finish(DatasetWriter(path_, small_spec(kSamples), resume()));
}

TEST_F(DatasetWriterResume, ARunningWriterIsLeftAlone) {
  DatasetWriter first(path_, small_spec(kSamples), fresh());
  write(first, 0);
  for (const bool overwrite : {false, true}) {
    WriterOptions options = resume();
    options.overwrite = overwrite;
    expect_error(ErrorCode::output_exists, {"in use by another process"},
                 [&] { DatasetWriter(path_, small_spec(kSamples), options); });
  }
  for (std::int64_t chunk = 1; chunk < 7; ++chunk) write(first, chunk);
  first.close();
  expect_complete(small_spec(kSamples));
}

TEST_F(DatasetWriterResume, AFailedCloseCanBeResumed) {
  {
    DatasetWriter writer(path_, small_spec(kSamples), fresh());
    for (std::int64_t chunk = 0; chunk < 7; ++chunk) write(writer, chunk);
    test::write_bytes(path_, {'n', 'e', 'w'});
    expect_error(ErrorCode::output_exists, {path_}, [&] { writer.close(); });
    EXPECT_TRUE(writer.committed());
    expect_error(ErrorCode::invalid_argument, {"after close"}, [&] { write(writer, 0); });
  }
  EXPECT_FALSE(DatasetWriter::is_published(path_)) << "an unfinished file lies beside it";
  std::filesystem::remove(path_);
  EXPECT_EQ(folder_.names(), kLeftover);
  DatasetWriter writer(path_, small_spec(kSamples), resume());
  EXPECT_EQ(chunks_of(writer).size(), 7U);
  finish(std::move(writer));
}

TEST_F(DatasetWriterResume, WhatIsPublishedNeedNoResume) {
  EXPECT_FALSE(DatasetWriter::is_published(path_));
  interrupted_run({0});
  EXPECT_FALSE(DatasetWriter::is_published(path_));
  std::filesystem::rename(partial_, path_);  // as by a run that was killed right there
  EXPECT_TRUE(DatasetWriter::is_published(path_));
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5"});
}

TEST_F(DatasetWriterResume, OptionsThatCannotBeAreRefused) {
  expect_error(ErrorCode::invalid_argument, {"identity"},
               [&] { DatasetWriter(path_, small_spec(4), {.resume = true}); });
  expect_error(ErrorCode::invalid_argument, {"identity"},
               [&] { DatasetWriter(path_, small_spec(4), {.identity = "[]"}); });
  expect_error(ErrorCode::invalid_argument, {"commit_bytes"},
               [&] { DatasetWriter(path_, small_spec(4), {.identity = "{}", .commit_bytes = 0}); });
  EXPECT_TRUE(folder_.names().empty());
}

// ---- Fewer rows ----

struct Shortening {
  std::int64_t num_samples, chunk_samples, num_rows;
  bool interrupted;

  friend std::ostream& operator<<(std::ostream& out, const Shortening& s) {
    return out << s.num_rows << " of " << s.num_samples << " samples in chunks of "
               << s.chunk_samples << (s.interrupted ? ", in two runs" : "");
  }
};

class DatasetWriterSetRows : public DatasetWriterResume,
                             public testing::WithParamInterface<Shortening> {};

TEST_P(DatasetWriterSetRows, HoldsTheRowsThatAreLeft) {
  const auto [num_samples, chunk_samples, num_rows, interrupted] = GetParam();
  WriterOptions options = fresh();
  options.chunk_samples = chunk_samples;
  const auto write_rows = [&](DatasetWriter& writer) {
    const std::int64_t k = writer.chunk_samples();
    for (std::int64_t first = 0; first < num_rows; first += k) {
      const bool there = std::any_of(writer.resumed().begin(), writer.resumed().end(),
                                     [&](const auto& chunk) { return chunk.chunk == first / k; });
      if (there) continue;
      writer.write_chunk(first / k,
                         test::pattern_rows(first, std::min(k, num_rows - first), kSampleBytes));
    }
  };
  if (interrupted) {
    DatasetWriter writer(path_, small_spec(num_samples), options);
    write_rows(writer);
    writer.commit();
    options.resume = true;
  }
  DatasetWriter writer(path_, small_spec(num_samples), options);
  write_rows(writer);
  const DatasetSpec fewer = small_spec(num_rows);
  writer.set_rows(num_rows, fewer.fields);
  writer.set_statistics({{{0.25, 0.5, 0.75}, {0.1, 0.2, 0.3}}, {}});
  writer.close();
  expect_complete(fewer);
  EXPECT_EQ(Dataset::open(path_).info().class_names, fewer.class_names);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DatasetWriterSetRows,
                         testing::Values(Shortening{40, 6, 39, false}, Shortening{40, 6, 36, false},
                                         Shortening{40, 6, 37, true}, Shortening{40, 6, 13, true},
                                         Shortening{40, 6, 4, false}, Shortening{40, 6, 1, true},
                                         Shortening{40, 1, 3, false}, Shortening{5, 100, 3, false},
                                         Shortening{5, 100, 5, false},
                                         Shortening{3000, 2, 1501, false}),
                         [](const auto& param) {
                           const Shortening& s = param.param;
                           return std::to_string(s.num_rows) + "of" +
                                  std::to_string(s.num_samples) + "by" +
                                  std::to_string(s.chunk_samples) +
                                  (s.interrupted ? "InTwoRuns" : "");
                         });

TEST_F(DatasetWriterResume, RowsThatDoNotFitAreRefused) {
  DatasetWriter writer(path_, small_spec(kSamples), fresh());
  const auto refused = [&](const std::string& part, std::int64_t rows,
                           const std::vector<FieldData>& fields) {
    expect_error(ErrorCode::invalid_argument, {part}, [&] { writer.set_rows(rows, fields); });
  };
  refused("1 to 40", 0, {});
  refused("1 to 40", 41, small_spec(41).fields);
  refused("fields of the specification", 39, {});
  refused("field labels", 39, small_spec(40).fields);
  auto wrong = small_spec(39).fields;
  wrong[0].values[0] = std::byte{3};
  refused("none of the 3 classes", 39, wrong);

  for (std::int64_t chunk = 0; chunk < 6; ++chunk) write(writer, chunk);
  writer.write_chunk(6, test::pattern_rows(36, 3, kSampleBytes));
  expect_error(ErrorCode::invalid_argument, {"chunk 6 was given 3 rows, and 4"},
               [&] { writer.close(); });
  writer.set_rows(38, small_spec(38).fields);
  expect_error(ErrorCode::invalid_argument, {"chunk 6 was given 3 rows, and 2"},
               [&] { writer.close(); });
  writer.set_rows(36, small_spec(36).fields);
  expect_error(ErrorCode::invalid_argument, {"chunk 6 was given 3 rows, and 0"},
               [&] { writer.close(); });
  writer.set_rows(39, small_spec(39).fields);
  writer.close();
  expect_complete(small_spec(39));
  expect_error(ErrorCode::invalid_argument, {"after close"},
               [&] { writer.set_rows(39, small_spec(39).fields); });
}

TEST_F(DatasetWriterResume, WorksWithoutAJournalToo) {
  DatasetWriter writer(path_, small_spec(7), {.chunk_samples = 3});
  writer.write_chunk(0, test::pattern_rows(0, 3, kSampleBytes), "ignored");
  writer.write_chunk(1, test::pattern_rows(3, 2, kSampleBytes));
  writer.commit();
  EXPECT_FALSE(writer.committed());
  writer.set_rows(5, small_spec(5).fields);
  writer.close();
  expect_complete(small_spec(5));
}

}  // namespace
}  // namespace chunkio
