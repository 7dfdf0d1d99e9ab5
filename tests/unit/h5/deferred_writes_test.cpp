#include "h5/deferred_writes.hpp"

#include <fcntl.h>

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/positional_io.hpp"
#include "h5/error_stack.hpp"
#include "h5/library.hpp"
#include "harness/scratch_folder.hpp"

namespace chunkio::h5 {
namespace {

// libhdf5 1.10 lets go of the driver before it calls the driver's function that closes the file.
TEST(DeferredWrites, IsThereUntilTheFileIsClosedAndNoLonger) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("a.h5");
  const base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  ASSERT_TRUE(file.valid());
  const auto guard = Library::lock();
  std::optional<DeferredWrites> writes;
  writes.emplace(file.get(), path);
  ListId access(check_id(H5Pcreate(H5P_FILE_ACCESS), "prepare to write", path));
  writes->install(access, path);
  const hid_t driver = H5Pget_driver(access.get());
  FileId written(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  ASSERT_TRUE(written);
  access.reset();

  EXPECT_EQ(written.reset(), 0);
  EXPECT_GT(H5Iis_valid(driver), 0);
  writes->apply();
  writes.reset();
  EXPECT_EQ(H5Iis_valid(driver), 0) << "nothing is left in libhdf5";
  EXPECT_GT(H5Fis_hdf5(path.c_str()), 0);
}

}  // namespace
}  // namespace chunkio::h5
