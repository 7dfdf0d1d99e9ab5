#include "h5/handle.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "h5/error_stack.hpp"
#include "h5/library.hpp"
#include "support/child.hpp"
#include "support/h5_files.hpp"

namespace chunkio::h5 {
namespace {

SpaceId make_space() {
  const auto guard = Library::lock();
  return SpaceId(H5Screate(H5S_SCALAR));
}

TEST(UniqueId, ClosesOnceAndCountsWhatIsOpen) {
  const std::int64_t before = live_ids();
  hid_t raw = H5I_INVALID_HID;
  {
    SpaceId space = make_space();
    raw = space.get();
    SpaceId moved = std::move(space);
    EXPECT_FALSE(space);  // NOLINT(bugprone-use-after-move): the state after a move is the subject
    EXPECT_EQ(moved.get(), raw);
    EXPECT_EQ(live_ids(), before + 1);
    EXPECT_EQ(H5Iis_valid(raw), 1);
  }
  EXPECT_EQ(live_ids(), before);
  EXPECT_EQ(H5Iis_valid(raw), 0);
}

TEST(UniqueId, AssignmentClosesWhatWasHeld) {
  const std::int64_t before = live_ids();
  SpaceId space = make_space();
  const hid_t first = space.get();
  space = make_space();
  EXPECT_EQ(H5Iis_valid(first), 0);
  EXPECT_EQ(live_ids(), before + 1);
  EXPECT_EQ(space.reset(), 0);
  EXPECT_EQ(space.reset(), 0) << "nothing left to close";
  EXPECT_EQ(live_ids(), before);
}

TEST(CheckId, TurnsTheErrorStackIntoOneLine) {
  test::expect_error(ErrorCode::hdf5_failed, {"cannot open gone.h5: libhdf5: "}, [] {
    const auto guard = Library::lock();
    check_id(H5Fopen("gone.h5", H5F_ACC_RDONLY, H5P_DEFAULT), "open", "gone.h5");
  });
  test::expect_error(ErrorCode::hdf5_failed, {"(handle_test.cpp:"}, [] {
    const auto guard = Library::lock();
    check_status(H5Sclose(-1), "close", "a file");
  });
}

TEST(CheckId, PassesGoodValuesOn) {
  EXPECT_EQ(check_id(7, "open", "f"), 7);
  EXPECT_EQ(check_status(0, "close", "f"), 0);
}

TEST(Printable, EscapesWhatCouldBreakALine) {
  EXPECT_EQ(printable("a\nb\\c\x7f"), "a\\x0ab\\x5cc\\x7f");
  EXPECT_EQ(printable("schn\xc3\xbcrle"), "schn\xc3\xbcrle");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 203U);
}

herr_t custom_handler(hid_t /*stack*/, void* /*data*/) { return 0; }

TEST(LibraryGuard, IsSilentInEveryThreadAndPutsTheProgramsHandlerBack) {
  testing::internal::CaptureStderr();
  const auto probe = [] {
    H5E_auto2_t handler = nullptr;
    void* data = nullptr;
    int marker = 0;
    H5Eset_auto2(H5E_DEFAULT, &custom_handler, &marker);
    {
      const auto outer = Library::lock();
      const auto inner = Library::lock();
      H5Eget_auto2(H5E_DEFAULT, &handler, &data);
      EXPECT_EQ(handler, nullptr);
      H5Fopen("gone.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    H5Eget_auto2(H5E_DEFAULT, &handler, &data);
    EXPECT_EQ(handler, &custom_handler);
    EXPECT_EQ(data, &marker);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  };
  probe();
  std::thread(probe).join();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(LibraryGuard, LoadsNoPluginsWhileHeld) {
  unsigned int before = 0;
  unsigned int during = 1;
  unsigned int after = 0;
  H5PLget_loading_state(&before);
  {
    const auto guard = Library::lock();
    H5PLget_loading_state(&during);
  }
  H5PLget_loading_state(&after);
  EXPECT_EQ(during, 0U);
  EXPECT_EQ(after, before);
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow a process with threads through fork
TEST(LibraryGuard, ALockLostByForkingIsAnErrorNotAHang) {
  std::atomic<bool> held{false};
  std::atomic<bool> release{false};
  std::thread holder([&] {
    const auto guard = Library::lock();
    held = true;
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!held) std::this_thread::yield();
  const int status = test::in_child([] {
    try {
      const auto guard = Library::lock();
    } catch (const Error& error) {
      return error.code() == ErrorCode::unsupported ? 0 : 1;
    }
    return 2;
  });
  release = true;
  holder.join();
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace chunkio::h5
