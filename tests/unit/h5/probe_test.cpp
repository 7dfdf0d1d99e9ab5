#include "h5/probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "io/local_file.hpp"
#include "support/byte_sources.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/scratch.hpp"

namespace chunkio::h5 {
namespace {

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(local_path_) << "bytes";
    local_.emplace(local_path_);
  }

  /// A program that does what the lines of a shell say.
  [[nodiscard]] std::string program(const std::string& lines) const {
    const std::string path = scratch_.file("probe");
    std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  /// The message of the error.
  static std::string refusal(const std::string& program, const ByteSource& source, ErrorCode code,
                             std::chrono::milliseconds most = std::chrono::seconds(10)) {
    try {
      probe_file(program, source, most);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    ADD_FAILURE() << "the file was not refused";
    return {};
  }

  /// \param lines  of Python, which has the socket as `asks`.
  [[nodiscard]] std::string python(const std::string& lines) const {
    const std::string path = scratch_.file("probe.py");
    std::ofstream(path) << "#!/usr/bin/env python3\nimport socket, struct, sys, time\n"
                           "asks = socket.socket(fileno=0)\n"
                        << lines << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  test::ScratchFolder scratch_;
  std::string local_path_ = scratch_.file("train.h5");
  std::optional<io::LocalFile> local_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1 << 20, std::byte{7});
  test::MemorySource memory_{bytes_};
};

TEST_F(ProbeTest, AFileThatCouldBeLookedAtMayBeOpened) {
  EXPECT_NO_THROW(probe_file(program("test \"$1\" = " + local_path_ + " && printf 1"), *local_));
}

TEST_F(ProbeTest, ACrashIsDamage) {
  const std::string said = refusal(program("kill -SEGV $$"), *local_, ErrorCode::corrupt_data);
  EXPECT_NE(said.find("train.h5 is damaged or hostile"), std::string::npos) << said;
  EXPECT_NE(said.find("crashed in libhdf5"), std::string::npos) << said;
}

TEST_F(ProbeTest, WithoutMemoryItIsDamage) {
  const std::string said = refusal(program("exit 1"), *local_, ErrorCode::corrupt_data);
  EXPECT_NE(said.find("ran out of memory"), std::string::npos) << said;
}

TEST_F(ProbeTest, AProgramThatCannotRunSaysNothingOfTheFile) {
  const std::string said = refusal(program("exit 127"), *local_, ErrorCode::io_failed);
  EXPECT_NE(said.find("ended with 127"), std::string::npos) << said;
}

TEST_F(ProbeTest, WhatDoesNotEndIsKilled) {
  const std::string said = refusal(program("exec sleep 1000"), *local_, ErrorCode::corrupt_data,
                                   std::chrono::milliseconds(200));
  EXPECT_NE(said.find("did not end within 0.2 s"), std::string::npos) << said;
}

TEST_F(ProbeTest, ASignalForAllIsNoDamage) {
  refusal(program("kill -INT $$"), *local_, ErrorCode::cancelled);
}

TEST_F(ProbeTest, AProgramThatIsMissingIsNamed) {
  const std::string said = refusal(scratch_.file("none"), *local_, ErrorCode::not_found);
  EXPECT_NE(said.find(scratch_.file("none")), std::string::npos) << said;
}

TEST_F(ProbeTest, ASourceIsReadForTheProgram) {
  const std::string asks_well = python(R"(
assert sys.argv[1] == '-'
size, = struct.unpack('q', asks.recv(8))
for at in (0, 4096, size - 65536):
    asks.send(struct.pack('qq', at, 65536))
    assert asks.recv(1 << 20) == bytes([1]) + bytes([7]) * 65536
for at, count in ((size, 1), (-1, 1), (0, 0), (0, -1), (0, 65537), (1 << 62, 65536)):
    asks.send(struct.pack('qq', at, count))
    assert asks.recv(1 << 20) == bytes([0]), (at, count)
asks.send(b'1'))");
  EXPECT_NO_THROW(probe_file(asks_well, memory_));
}

TEST_F(ProbeTest, TheTimeThatAReadTakesIsNotTheProgramsOwn) {
  struct Slow final : test::MemorySource {
    using MemorySource::MemorySource;
    ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                     const std::stop_token& stop) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return MemorySource::read_at(offset, out, stop);
    }
  };
  const auto most = std::chrono::milliseconds(800);
  EXPECT_NO_THROW(probe_file(python(R"(
asks.recv(8)
for _ in range(4):
    asks.send(struct.pack('qq', 0, 1))
    asks.recv(2)
asks.send(b'1'))"),
                             Slow(bytes_), most));
}

TEST_F(ProbeTest, WhatReadsOnWithoutEndIsDamage) {
  const std::string said = refusal(python(R"(
asks.recv(8)
while True:
    asks.send(struct.pack('qq', 0, 65536))
    asks.recv(1 << 20))"),
                                   memory_, ErrorCode::corrupt_data, std::chrono::minutes(1));
  EXPECT_NE(said.find("memory is damaged or hostile"), std::string::npos) << said;
  EXPECT_NE(said.find("read more than 256 MiB"), std::string::npos) << said;
}

TEST_F(ProbeTest, WhatAsksAndDoesNotListenIsDamage) {
  const std::string said = refusal(python(R"(
for _ in range(1000):
    asks.send(struct.pack('qq', 0, 65536))
time.sleep(1000))"),
                                   memory_, ErrorCode::corrupt_data, std::chrono::minutes(1));
  EXPECT_NE(said.find("memory is damaged or hostile"), std::string::npos) << said;
}

TEST_F(ProbeTest, WhatTheSourceSaysComesThrough) {
  const test::FailingSource failing(std::make_shared<io::LocalFile>(local_path_), {0, 5});
  const std::string said = refusal(python("asks.send(struct.pack('qq', 0, 1))\ntime.sleep(1000)"),
                                   failing, ErrorCode::io_failed);
  EXPECT_NE(said.find("the disk has failed"), std::string::npos) << said;
}

TEST_F(ProbeTest, FilesOfEverySourceAreLookedAtBeforeTheyAreOpened) {
  for (const std::string name :
       {"contiguous", "user_block", "attribute_table", "many_masks", "many_chunks"}) {
    const auto source = std::make_shared<test::CountingSource>(test::h5py_file(scratch_, name));
    EXPECT_NO_THROW(probe_file(CHUNKIO_PROBE, *source)) << name;
    EXPECT_GT(source->requests, 0) << name;
    const Dataset dataset = Dataset::open(source, {.probe = CHUNKIO_PROBE});
    EXPECT_GT(dataset.info().num_samples, 0) << name;
    test::expect_error(ErrorCode::corrupt_data, {"damaged or hostile", "crashed"}, [&] {
      static_cast<void>(Dataset::open(source, {.probe = program("kill -SEGV $$")}));
    });
  }
}

/// libhdf5 would read each of some 1,800 nodes once more, as it does where one is damaged.
TEST_F(ProbeTest, AnIndexOfManyChunksThatIsSoundIsReadOnce) {
  const std::string path = test::h5py_file(scratch_, "many_chunks");
  const auto requests = [&] {
    const auto source = std::make_shared<test::CountingSource>(path);
    walk_source(source, Reach::all);
    return source->requests.load();
  };
  const std::int64_t sound = requests();
  EXPECT_GT(sound, 1'700);
  EXPECT_LT(sound, 2'200);

  std::vector<std::uint8_t> bytes = test::read_bytes(path);
  const std::array<std::uint8_t, 6> leaf{'T', 'R', 'E', 'E', 1, 0};
  const auto last = std::find_end(bytes.begin(), bytes.end(), leaf.begin(), leaf.end());
  ASSERT_NE(last, bytes.end());
  *last = '?';
  test::write_bytes(path, bytes);
  EXPECT_GT(requests(), sound + 1'000);
}

}  // namespace
}  // namespace chunkio::h5
