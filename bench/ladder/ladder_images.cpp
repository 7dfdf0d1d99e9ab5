#include "ladder/ladder_images.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include <hdf5.h>

#include <chunkio/dataset_writer.hpp>

#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "harness/in_parallel.hpp"

namespace bench {
namespace {

constexpr const char* kWayOut =
    "; the ladder needs JPEG images of one size, 3 channels, in class folders: leave --folder out "
    "to have some drawn";

void write_contiguous(const std::string& path, const ImageSize& size, std::int64_t count,
                      std::span<const std::byte> pixels) {
  using namespace chunkio::h5;
  const std::array shape{static_cast<hsize_t>(count), static_cast<hsize_t>(size.height),
                         static_cast<hsize_t>(size.width), static_cast<hsize_t>(size.channels)};
  const FileId file(
      check_id(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), "create", path));
  const SpaceId space(H5Screate_simple(4, shape.data(), nullptr));
  const DatasetId images(H5Dcreate2(file.get(), "images", H5T_NATIVE_UINT8, space.get(),
                                    H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  check_status(
      H5Dwrite(images.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, pixels.data()),
      "write", path);
  check_status(H5Fflush(file.get(), H5F_SCOPE_LOCAL), "write", path);
}

void write_encoded(const std::string& path, const JpegFolder& files) {
  FileReader reader;
  chunkio::EncodedWriter writer(path, {});
  for (const std::string& file : files.files) {
    const std::span<const std::byte> bytes = reader.read(file);
    writer.add({.bytes = {bytes.begin(), bytes.end()},
                .height = files.size.height,
                .width = files.size.width});
  }
  writer.close({});
}

}  // namespace

JpegFolder find_images(const std::string& path) {
  JpegFolder folder = find_jpeg_folder(path, {"found", 0, 0, 3});
  try {
    JpegReader reader;
    FileReader file;
    reader.decode(file.read(folder.files.front()));
    folder.size.height = reader.height();
    folder.size.width = reader.width();
  } catch (const std::exception& error) {
    throw std::runtime_error(folder.files.front() + ": " + error.what() + kWayOut);
  }
  return folder;
}

LadderImages prepare_images(JpegFolder files, std::int64_t chunk_bytes,
                            const chunkio::test::ScratchFolder& folder) {
  LadderImages images{.files = std::move(files),
                      .pixels = {},
                      .contiguous = folder.file("contiguous.h5"),
                      .chunked = folder.file("chunked.h5"),
                      .encoded = folder.file("encoded.h5")};
  const ImageSize& size = images.files.size;
  const std::int64_t count = images.count();
  images.pixels.resize(static_cast<std::size_t>(count * size.bytes()));
  in_parallel(count, std::thread::hardware_concurrency(), [&] {
    return [&, reader = JpegReader(), file = FileReader()](std::int64_t i) mutable {
      const std::string& path = images.files.files[static_cast<std::size_t>(i)];
      try {
        const auto image = reader.decode(file.read(path));
        if (reader.height() != size.height || reader.width() != size.width) {
          throw std::runtime_error("is " + std::to_string(reader.width()) + "x" +
                                   std::to_string(reader.height()) + ", others are " +
                                   std::to_string(size.width) + "x" + std::to_string(size.height));
        }
        std::memcpy(images.pixels.data() + i * size.bytes(), image.data(), image.size());
      } catch (const std::exception& error) {
        throw std::runtime_error(path + ": " + error.what() + kWayOut);
      }
    };
  });
  images.chunk_samples = std::clamp<std::int64_t>(chunk_bytes / size.bytes(), 1, count);
  write_contiguous(images.contiguous, size, count, images.pixels);
  write_images_file(images.chunked, size, count, images.pixels,
                    {.chunk_samples = images.chunk_samples});
  write_encoded(images.encoded, images.files);
  return images;
}

}  // namespace bench
