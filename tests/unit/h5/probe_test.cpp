#include "h5/probe.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/error.hpp>

#include "support/scratch.hpp"

namespace chunkio::h5 {
namespace {

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    H5get_libversion(&major, &minor, &release);
    if (major >= 2) GTEST_SKIP() << "libhdf5 " << major << " needs no probe";
  }

  /// A program that does what the lines of a shell say.
  [[nodiscard]] std::string program(const std::string& lines) const {
    const std::string path = scratch_.file("probe");
    std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  /// The message of the error.
  static std::string refusal(const std::string& program, ErrorCode code,
                             std::chrono::milliseconds most = std::chrono::seconds(10)) {
    try {
      probe_file(program, "train.h5", most);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    ADD_FAILURE() << "the file was not refused";
    return {};
  }

  test::ScratchFolder scratch_;
};

TEST_F(ProbeTest, AFileThatCouldBeLookedAtMayBeOpened) {
  EXPECT_NO_THROW(probe_file(program("test \"$1\" = train.h5 && printf 1"), "train.h5"));
}

TEST_F(ProbeTest, ACrashIsDamage) {
  const std::string said = refusal(program("kill -SEGV $$"), ErrorCode::corrupt_data);
  EXPECT_NE(said.find("train.h5 is damaged or hostile"), std::string::npos) << said;
  EXPECT_NE(said.find("crashed in libhdf5"), std::string::npos) << said;
}

TEST_F(ProbeTest, WithoutMemoryItIsDamage) {
  const std::string said = refusal(program("exit 1"), ErrorCode::corrupt_data);
  EXPECT_NE(said.find("ran out of memory"), std::string::npos) << said;
}

TEST_F(ProbeTest, AProgramThatCannotRunSaysNothingOfTheFile) {
  const std::string said = refusal(program("exit 127"), ErrorCode::io_failed);
  EXPECT_NE(said.find("ended with 127"), std::string::npos) << said;
}

TEST_F(ProbeTest, WhatDoesNotEndIsKilled) {
  const std::string said =
      refusal(program("exec sleep 1000"), ErrorCode::corrupt_data, std::chrono::milliseconds(200));
  EXPECT_NE(said.find("did not end within 0.2 s"), std::string::npos) << said;
}

TEST_F(ProbeTest, ASignalForAllIsNoDamage) {
  refusal(program("kill -INT $$"), ErrorCode::cancelled);
}

TEST_F(ProbeTest, AProgramThatIsMissingIsNamed) {
  const std::string said = refusal(scratch_.file("none"), ErrorCode::not_found);
  EXPECT_NE(said.find(scratch_.file("none")), std::string::npos) << said;
}

}  // namespace
}  // namespace chunkio::h5
