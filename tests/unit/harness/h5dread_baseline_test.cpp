#include "harness/h5dread_baseline.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "h5/handle.hpp"
#include "support/scratch.hpp"

namespace {

using chunkio::h5::FileId;
using chunkio::h5::GroupId;

TEST(H5DreadBaseline, WhatCannotBeOpenedLeavesNothingOpen) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const chunkio::test::ScratchFolder scratch;
  const std::string path = scratch.file("a.h5");
  {
    const FileId file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const GroupId group(H5Gcreate2(file.get(), "images", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_TRUE(group);
  }
  const std::int64_t ids = chunkio::h5::live_ids();
  EXPECT_THROW(bench::H5DreadBaseline(path, {}), std::runtime_error);  // a group, no dataset
  EXPECT_THROW(bench::H5DreadBaseline(scratch.file("absent"), {}), std::runtime_error);
  EXPECT_EQ(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL), 0);
  EXPECT_EQ(chunkio::h5::live_ids(), ids);
}

}  // namespace
