// Where a writer writes: outputs that are in the way, disks that are full, and writers that end
// early.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/positional_io.hpp"
#include "support/child.hpp"
#include "support/damage.hpp"
#include "support/dataset_writer_fixture.hpp"

namespace chunkio {
namespace {

using test::DatasetWriterTest;
using test::expect_error;
using test::in_child;
using test::small_spec;
using test::write_file;

TEST_F(DatasetWriterTest, AnExistingOutputIsNotTouchedUnlessAskedFor) {
  test::write_bytes(path_, {'o', 'l', 'd'});
  expect_error(ErrorCode::output_exists, {"overwrite"},
               [&] { write_file(path_, small_spec(4), {}); });
  EXPECT_EQ(test::read_bytes(path_), (std::vector<std::uint8_t>{'o', 'l', 'd'}));
  {
    const DatasetWriter unfinished(path_, small_spec(4), {.overwrite = true});
    EXPECT_EQ(test::read_bytes(path_).size(), 3U);
  }
  EXPECT_EQ(test::read_bytes(path_), (std::vector<std::uint8_t>{'o', 'l', 'd'}));
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5"});
  write_file(path_, small_spec(4), {.overwrite = true});
  expect_complete(4);
}

TEST_F(DatasetWriterTest, AnOutputThatAppearsMeanwhileIsNotReplaced) {
  const DatasetSpec spec = small_spec(4);
  DatasetWriter writer(path_, spec, {});
  test::write_pattern(writer, spec);
  test::write_bytes(path_, {'n', 'e', 'w'});
  expect_error(ErrorCode::output_exists, {path_}, [&] { writer.close(); });
  EXPECT_EQ(test::read_bytes(path_).size(), 3U);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5"});
  expect_error(ErrorCode::invalid_argument, {"earlier close failed"}, [&] { writer.close(); });
}

TEST_F(DatasetWriterTest, ALeftoverPartialIsNamed) {
  test::write_bytes(path_ + ".partial", {'x'});
  expect_error(ErrorCode::output_exists, {path_ + ".partial is left over"},
               [&] { write_file(path_, small_spec(4), {}); });
  EXPECT_EQ(test::read_bytes(path_ + ".partial").size(), 1U);
  write_file(path_, small_spec(4), {.overwrite = true});
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5"});
}

TEST_F(DatasetWriterTest, APartialInUseIsLeftAloneEvenWithOverwrite) {
  const DatasetSpec spec = small_spec(4);
  DatasetWriter first(path_, spec, {});
  for (const bool overwrite : {false, true}) {
    expect_error(ErrorCode::output_exists, {"in use by another process"},
                 [&] { write_file(path_, spec, {.overwrite = overwrite}); });
  }
  test::write_pattern(first, spec);
  first.close();
  expect_complete(4);
}

TEST_F(DatasetWriterTest, AStolenPartialIsNotPublished) {
  const DatasetSpec spec = small_spec(4);
  DatasetWriter writer(path_, spec, {});
  test::write_pattern(writer, spec);
  std::filesystem::remove(path_ + ".partial");
  test::write_bytes(path_ + ".partial", {'x'});
  EXPECT_THROW(writer.close(), Error);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5.partial"});
  EXPECT_EQ(test::read_bytes(path_ + ".partial").size(), 1U) << "somebody else's file";
}

TEST_F(DatasetWriterTest, OnlyARegularFileIsEverReplaced) {
  const std::string fifo = folder_.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_error(ErrorCode::output_exists, {fifo, "not a regular file"},
               [&] { write_file(fifo, small_spec(4), {.overwrite = true}); });
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"fifo"});
}

TEST_F(DatasetWriterTest, FoldersThatCannotBeWrittenToAreNamed) {
  expect_error(ErrorCode::not_found, {"make the folder " + folder_.file("no")},
               [&] { write_file(folder_.file("no/out.h5"), small_spec(4), {}); });
  expect_error(ErrorCode::output_exists, {"is a folder"},
               [&] { write_file(folder_.path().string(), small_spec(4), {.overwrite = true}); });
  expect_error(ErrorCode::invalid_argument, {"no name"},
               [&] { write_file("", small_spec(4), {}); });

  // As somebody who is not root, since root may write anywhere.
  const int status = in_child([&] {
    ::chmod(folder_.path().c_str(), 0555);
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
    try {
      write_file(path_, small_spec(4), {});
      return 3;
    } catch (const Error& error) {
      return error.code() == ErrorCode::io_failed &&
                     std::string(error.what()).find("may write") != std::string::npos
                 ? 0
                 : 4;
    }
  });
  ::chmod(folder_.path().c_str(), 0755);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(DatasetWriterTest, MoreThanTheDiskHoldsIsAnErrorAtOnce) {
  DatasetSpec spec;
  spec.num_samples = std::int64_t{1} << 22;  // 4 PiB; a writer holds a digest for each
  spec.height = 16384;
  spec.width = 16384;
  spec.channels = 4;
  spec.channel_order = "RGBA";
  expect_error(ErrorCode::no_space, {}, [&] { DatasetWriter(path_, spec, {.chunk_samples = 3}); });
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(DatasetWriterTest, WhatTheEndTakesIsReservedAtTheStart) {
  const std::string other = folder_.file("other");
  const base::FileDescriptor file(::open(other.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, 4096) != 0) {
    GTEST_SKIP() << "this file system reserves nothing";
  }
  const DatasetWriter writer(path_, small_spec(40), {});
  struct stat partial {};
  ASSERT_EQ(::stat((path_ + ".partial").c_str(), &partial), 0);
  EXPECT_GE(partial.st_blocks * 512, partial.st_size + (1 << 20))
      << "digests, statistics and fields of fewer rows go behind the end";
}

TEST_F(DatasetWriterTest, AnUnfinishedWriterLeavesNothing) {
  { const DatasetWriter unused(path_, small_spec(4), {}); }
  EXPECT_TRUE(folder_.names().empty());
  {
    DatasetWriter writer(path_, small_spec(4), {.chunk_samples = 1});
    writer.write_chunk(0, test::pattern_rows(0, 1, 90));
    DatasetWriter moved(std::move(writer));
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5.partial"});
  }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(DatasetWriterTest, PixelsThatTheDiskLostAreNoticed) {
  const DatasetSpec spec = small_spec(40);
  DatasetWriter writer(path_, spec, {.chunk_samples = 16});
  test::write_pattern(writer, spec);
  const std::string partial = path_ + ".partial";
  test::damage_image(partial, 16);
  expect_error(ErrorCode::digest_mismatch, {"chunk 1"}, [&] { writer.close(); });
  EXPECT_TRUE(folder_.names().empty());
}

class DatasetWriterLocking : public testing::TestWithParam<const char*> {};

/// libhdf5 reads the variable once, when it starts: so a new process for each setting.
TEST_P(DatasetWriterLocking, WritesWhateverTheEnvironmentSays) {
  const std::string command =
      std::string("HDF5_USE_FILE_LOCKING=") + GetParam() + " '" +
      std::filesystem::read_symlink("/proc/self/exe").string() +
      "' --gtest_filter='DatasetWriterTest.*Partial*:DatasetWriterResume.*:Shapes/*' > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(Settings, DatasetWriterLocking,
                         testing::Values("TRUE", "FALSE", "BEST_EFFORT"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace chunkio
