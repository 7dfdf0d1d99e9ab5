#include "cli/stop_signal.hpp"

#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(StopSignal, IsForgottenWithItsListener) {
  {
    const StopSignal stop("");
    ::raise(SIGTERM);
    EXPECT_EQ(StopSignal::received(), SIGTERM);
  }
  EXPECT_EQ(StopSignal::received(), 0);
  EXPECT_NO_THROW(StopSignal::check());
}

TEST(StopSignal, AHandlerThatRunsLateEndsNothing) {
  struct sigaction action {};
  {
    const StopSignal stop("");
    ASSERT_EQ(::sigaction(SIGTERM, nullptr, &action), 0);
  }
  action.sa_handler(SIGTERM);  // as in another thread that the signal met before
  EXPECT_EQ(::alarm(0), 0U) << "an alarm is set that nobody listens to";
  const StopSignal next("");
  EXPECT_EQ(StopSignal::received(), 0);
}

}  // namespace
}  // namespace cli
