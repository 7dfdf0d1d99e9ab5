// What a program sees that includes the umbrella header and nothing else.

#include <chunkio/chunkio.hpp>

// Include guards of HDF5 (1.10, 1.14), OpenCV, TBB, CUDA, xxHash and the libraries of the tools.
#if defined(_H5public_H) || defined(H5public_H) || defined(_HDF5_H) || defined(HDF5_H)
#error "a public header includes HDF5"
#endif
#if defined(OPENCV_CORE_HPP) || defined(OPENCV_CORE_CVDEF_H) || defined(CV_VERSION)
#error "a public header includes OpenCV"
#endif
#if defined(TBB_VERSION_MAJOR) || defined(__TBB_version_H) || defined(__TBB_detail__config_H)
#error "a public header includes TBB"
#endif
#if defined(__CUDA_RUNTIME_H__) || defined(__CUDA_RUNTIME_API_H__) || defined(__cuda_cuda_h__) || \
    defined(CUDART_VERSION)
#error "a public header includes CUDA"
#endif
#if defined(XXHASH_H_5627135585666179) || defined(XXH_VERSION_NUMBER) || defined(XXH_INLINE_ALL)
#error "a public header includes xxHash"
#endif
#if defined(INCLUDE_NLOHMANN_JSON_HPP_) || defined(CLI11_VERSION) || defined(JPEGLIB_H)
#error "a public header includes a library of the tools"
#endif
#if defined(TORCH_VERSION) || defined(TORCH_VERSION_MAJOR) || defined(DLPACK_DLPACK_H_)
#error "the umbrella header includes LibTorch or DLPack"
#endif

#include <filesystem>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

namespace chunkio {
namespace {

static_assert(std::is_copy_constructible_v<Dataset> &&
              std::is_nothrow_move_constructible_v<Dataset>);
static_assert(!std::is_copy_constructible_v<Loader> &&
              std::is_nothrow_move_constructible_v<Loader>);
static_assert(std::is_copy_constructible_v<Batch> && std::is_nothrow_move_constructible_v<Batch>);
static_assert(!std::is_copy_constructible_v<DatasetWriter> &&
              std::is_nothrow_move_constructible_v<DatasetWriter>);
static_assert(std::is_nothrow_move_constructible_v<EpochOrder>);
static_assert(std::is_base_of_v<std::runtime_error, Error>);

// This program links the library as a consumer does, so a function without CHUNKIO_EXPORT fails to
// link where symbols are hidden.
TEST(PublicApi, IsExportedFromTheLibrary) {
  EXPECT_EQ(size_of(DType::int64), 8U);
  EXPECT_EQ(to_string(Layout::nhwc), "nhwc");
  EXPECT_EQ(Shape({2, 3}).to_string(), "[2,3]");
  EXPECT_EQ(choose_chunk_samples(32 * 32 * 3, 50000), kDefaultChunkBytes / (32 * 32 * 3));
  EXPECT_GE(recommend_cache(100, kDefaultChunkBytes).rdcc_nslots, 101U);
  EXPECT_EQ(EpochOrder(RowGroups(4, 10), {.batch_size = 10, .window_groups = 3}, 0).num_steps(), 1);
  EXPECT_EQ(to_string(SourceKind::hdf5), "hdf5");
}

TEST(PublicApi, ErrorsThrownInsideTheLibraryAreCaughtOutside) {
  const std::filesystem::path missing =
      std::filesystem::temp_directory_path() / "chunkio-no-such-folder" / "train.h5";
  try {
    (void)Dataset::open(missing.string());
    FAIL() << "opened a file that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find(missing.string()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace chunkio
