#include "chunkbench/confined.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using bench::Confinement;
using bench::run_confined;

TEST(RunConfined, EntersEveryGroupInOrderAndThenWorks) {
  std::string done;  // of the child
  const std::vector<Confinement> groups = {{"a",
                                            [&] {
                                              done += "a";
                                              return true;
                                            }},
                                           {"b", [&] {
                                              done += "b";
                                              return true;
                                            }}};
  const pid_t parent = ::getpid();
  EXPECT_EQ(run_confined(groups, [&] { return ::getpid() != parent && done == "ab" ? 7 : 8; }), 7);
  EXPECT_EQ(done, "");
}

TEST(RunConfined, SaysWhatCannotBeEnteredAndWhy) {
  const std::vector<Confinement> groups = {
      {"control group /no/such/group", [] { return ::open("/no/such/group", O_WRONLY) >= 0; }},
      {"one more", [] { return true; }}};
  testing::internal::CaptureStderr();
  const int code = run_confined(groups, [] { return 7; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "chunkbench: cannot enter control group /no/such/group: No such file or directory\n");
  EXPECT_EQ(code, 1);
}

TEST(RunConfined, SignalsAreHandedOn) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t parent = ::getpid();
  EXPECT_EQ(run_confined({},
                         [&] {
                           ::kill(parent, SIGTERM);
                           char byte = 0;
                           static_cast<void>(!::read(ready[0], &byte, 1));
                           return 0;
                         }),
            128 + SIGTERM);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
