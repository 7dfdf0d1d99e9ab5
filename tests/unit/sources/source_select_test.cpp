#include "sources/source_select.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio::sources {
namespace {

using test::expect_error;

class SourceSelectTest : public testing::Test {
 protected:
  SourceSelectTest() { test::write_packed(path_, {.num_samples = 30, .chunk_samples = 8}); }

  [[nodiscard]] static SourceChoice choose(const Dataset& dataset, std::int64_t cacheable,
                                           bool direct_io = false) {
    return choose_source(*internal::Access::impl(dataset),
                         *internal::Access::impl(dataset)->leading, direct_io, cacheable);
  }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("pictures.h5");
};

TEST_F(SourceSelectTest, WhatFitsThePageCacheIsMappedAndWhatDoesNotGoesRoundIt) {
  const Dataset dataset = Dataset::open(path_);
  const std::int64_t bytes = internal::Access::impl(dataset)->leading->stored_bytes;

  const SourceChoice fits = choose(dataset, 2 * bytes);
  EXPECT_EQ(fits.kind, SourceKind::mapped);
  EXPECT_FALSE(fits.direct_io);

  const SourceChoice tight = choose(dataset, 2 * bytes - 2);
  EXPECT_EQ(tight.kind, SourceKind::scatter);
  EXPECT_FALSE(tight.direct_io);
  EXPECT_NE(tight.reason.find("larger than half of the memory"), std::string::npos);
  EXPECT_EQ(choose(dataset, bytes).kind, SourceKind::scatter);

  const SourceChoice beyond = choose(dataset, bytes - 1);
  EXPECT_EQ(beyond.kind, SourceKind::direct);
  EXPECT_TRUE(beyond.direct_io);
  EXPECT_NE(beyond.reason.find("larger than the memory"), std::string::npos);
}

TEST_F(SourceSelectTest, DirectIoAskedForIsHadWhereASourceCan) {
  const SourceChoice own = choose(Dataset::open(path_), INT64_MAX, true);
  EXPECT_EQ(own.kind, SourceKind::direct);
  EXPECT_TRUE(own.direct_io);

  const Dataset deflate = Dataset::open(test::h5py_file(scratch_, "deflate"));
  EXPECT_EQ(choose(deflate, INT64_MAX).kind, SourceKind::direct);
  EXPECT_FALSE(choose(deflate, INT64_MAX).direct_io);
  EXPECT_TRUE(choose(deflate, INT64_MAX, true).direct_io);
  EXPECT_TRUE(choose(deflate, 1).direct_io);

  const Dataset foreign = Dataset::open(test::h5py_file(scratch_, "scaleoffset"));
  const auto depth =
      h5::open_array(*internal::Access::impl(foreign), "depth", Shape{20, 6}, DType::int32);
  const SourceChoice by_libhdf5 = choose_source(*internal::Access::impl(foreign), *depth, true, 1);
  EXPECT_EQ(by_libhdf5.kind, SourceKind::hdf5);
  EXPECT_FALSE(by_libhdf5.direct_io);
  EXPECT_NE(by_libhdf5.reason.find("direct_io has no effect"), std::string::npos);
}

TEST_F(SourceSelectTest, OnlyFileSystemsKnownToBeLocalAreMapped) {
  for (const std::int64_t local : {0xEF53, 0x58465342, 0x01021994, 0x794C7630}) {
    EXPECT_TRUE(io::is_local_file_system(local)) << std::hex << local;
  }
  EXPECT_TRUE(io::is_local_file_system(0x9123683E));
  EXPECT_TRUE(io::is_local_file_system(static_cast<std::int32_t>(0x9123683E))) << "a signed f_type";
  const struct {
    const char* name;
    std::int64_t type;
  } shared[] = {{"NFS", 0x6969},       {"CIFS", 0xFF534D42},   {"SMB2", 0xFE534D42},
                {"FUSE", 0x65735546},  {"9P", 0x01021997},     {"Lustre", 0x0BD00BD0},
                {"GPFS", 0x47504653},  {"CephFS", 0x00C36400}, {"BeeGFS", 0x19830326},
                {"AFS", 0x5346414F},   {"kAFS", 0x6B414653},   {"Coda", 0x73757245},
                {"OCFS2", 0x7461636F}, {"GFS2", 0x01161970},   {"unknown", 0x12345678}};
  for (const auto& [name, type] : shared) EXPECT_FALSE(io::is_local_file_system(type)) << name;
}

TEST_F(SourceSelectTest, SourcesThatCannotGoRoundThePageCacheRefuseTo) {
  const Dataset dataset = Dataset::open(path_);
  for (const SourceKind kind : {SourceKind::mapped, SourceKind::hdf5}) {
    expect_error(ErrorCode::invalid_argument,
                 {std::string(to_string(kind)), "direct_io", "let it be chosen"}, [&] {
                   (void)select_source(internal::Access::impl(dataset),
                                       internal::Access::impl(dataset)->leading,
                                       {.kind = kind, .group_samples = 8, .direct_io = true});
                 });
  }
}

TEST_F(SourceSelectTest, TheReasonSaysWhetherThePageCacheIsReallyAvoided) {
  const Dataset dataset = Dataset::open(path_);
  // The same array in a file whose file system has no O_DIRECT.
  const auto refusing = std::make_shared<Dataset::Impl>();
  refusing->bytes = std::make_shared<io::LocalFile>("/proc/version");
  for (const SourceKind kind : {SourceKind::automatic, SourceKind::scatter, SourceKind::direct}) {
    const SourceRequest request{.kind = kind, .group_samples = 8, .direct_io = true};
    const SelectedSource refused =
        select_source(refusing, internal::Access::impl(dataset)->leading, request);
    EXPECT_FALSE(refused.direct_io);
    EXPECT_NE(refused.reason.find("; the file system refuses O_DIRECT"), std::string::npos)
        << refused.reason;
    const SelectedSource allowed = select_source(internal::Access::impl(dataset),
                                                 internal::Access::impl(dataset)->leading, request);
    EXPECT_EQ(allowed.direct_io,
              io::open_direct(internal::Access::impl(dataset)->bytes) != nullptr);
    EXPECT_NE(allowed.reason.find(allowed.direct_io ? "; read with O_DIRECT" : "refuses O_DIRECT"),
              std::string::npos)
        << allowed.reason;
    const SelectedSource usual =
        select_source(internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
                      {.kind = kind, .group_samples = 8});
    EXPECT_EQ(usual.reason.find("O_DIRECT"), std::string::npos) << usual.reason;
  }
}

}  // namespace
}  // namespace chunkio::sources
