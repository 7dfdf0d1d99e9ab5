#include "harness/drawn_images.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include <hdf5.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/version.hpp>

#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "harness/in_parallel.hpp"
#include "harness/noise.hpp"

namespace bench {
namespace {

chunkio::DatasetSpec spec_of(const ImageSize& size, std::int64_t num_samples) {
  return {.num_samples = num_samples,
          .height = size.height,
          .width = size.width,
          .channels = size.channels};
}

}  // namespace

chunkio::DatasetInfo info_of(const ImageSize& size) {
  chunkio::DatasetInfo info{.path = "noise"};
  info.num_samples = 1;
  info.layout = chunkio::Layout::nhwc;
  info.height = size.height;
  info.width = size.width;
  info.channels = size.channels;
  info.stored.shape = {1, size.height, size.width, size.channels};
  return info;
}

void draw_images(const ImageSize& size, std::int64_t first, std::span<std::byte> bytes) {
  const auto image_bytes = static_cast<std::size_t>(size.bytes());
  for (std::size_t p = 0; p * image_bytes < bytes.size(); ++p) {
    SplitMix64 next(mix(static_cast<std::uint64_t>(first) + p + 1));
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low));
    };
    std::byte* out = bytes.data() + p * image_bytes;
    std::int64_t from[4], to[4], disc[4];
    for (int c = 0; c < 4; ++c) {
      from[c] = draw(20, 230);
      to[c] = draw(20, 230);
      disc[c] = draw(20, 230);
    }
    const std::int64_t along_x = draw(-100, 100);
    const std::int64_t along_y = draw(-100, 100);
    const std::int64_t length =
        std::max<std::int64_t>(1, std::abs(along_x) * size.width + std::abs(along_y) * size.height);
    const std::int64_t origin =
        (along_x < 0 ? -along_x * size.width : 0) + (along_y < 0 ? -along_y * size.height : 0);
    const std::int64_t centre_x = draw(0, size.width);
    const std::int64_t centre_y = draw(0, size.height);
    const std::int64_t radius = draw(1, std::max<std::int64_t>(2, size.width / 2));
    for (std::int64_t y = 0; y < size.height; ++y) {
      for (std::int64_t x = 0; x < size.width; ++x) {
        const std::int64_t t = 256 * (along_x * x + along_y * y + origin) / length;
        const std::int64_t dx = x - centre_x;
        const std::int64_t dy = y - centre_y;
        const bool inside = dx * dx + dy * dy < radius * radius;
        const std::uint64_t grain = next();
        for (std::int64_t c = 0; c < size.channels; ++c) {
          const std::int64_t value = inside ? disc[c] : (from[c] * (256 - t) + to[c] * t) / 256;
          *out++ =
              static_cast<std::byte>(value + static_cast<std::int64_t>((grain >> (8 * c)) % 8));
        }
      }
    }
  }
}

void write_chunks(chunkio::DatasetWriter& writer, std::int64_t num_samples, const Fill& fill) {
  const auto bytes = static_cast<std::size_t>(writer.chunk_bytes());
  in_parallel(
      writer.num_chunks(), std::max(1u, std::thread::hardware_concurrency()),
      [&] {
        return [&, pixels = std::vector<std::byte>(bytes)](std::int64_t chunk) mutable {
          const std::int64_t first = chunk * writer.chunk_samples();
          const std::int64_t rows = std::min(writer.chunk_samples(), num_samples - first);
          const auto part = std::span(pixels).first(
              static_cast<std::size_t>(rows * (writer.chunk_bytes() / writer.chunk_samples())));
          fill(first, part);
          writer.write_chunk(chunk, part);
        };
      },
      1);
  writer.close();
}

void write_images_file(const std::string& path, const ImageSize& size, std::int64_t num_samples,
                       std::span<const std::byte> pixels, const chunkio::WriterOptions& options) {
  chunkio::DatasetWriter writer(path, spec_of(size, num_samples), options);
  write_chunks(writer, num_samples, [&](std::int64_t first, std::span<std::byte> bytes) {
    std::copy_n(pixels.begin() + first * size.bytes(), bytes.size(), bytes.begin());
  });
}

void write_noise_file(const std::string& path, const ImageSize& size, std::int64_t num_samples) {
  chunkio::DatasetWriter writer(path, spec_of(size, num_samples));
  write_chunks(writer, num_samples, [](std::int64_t first, std::span<std::byte> bytes) {
    fill_with_noise(bytes, static_cast<std::uint64_t>(first));
  });
}

void write_hollow_file(const std::string& path, const ImageSize& size, std::int64_t num_samples) {
  using namespace chunkio::h5;
  const auto rows = [&](std::int64_t count) {
    return std::array{static_cast<hsize_t>(count), static_cast<hsize_t>(size.height),
                      static_cast<hsize_t>(size.width), static_cast<hsize_t>(size.channels)};
  };
  const auto shape = rows(num_samples);
  const auto chunk = rows(chunkio::choose_chunk_samples(size.bytes(), num_samples));
  const FileId file(
      check_id(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), "create", path));
  const SpaceId space(H5Screate_simple(4, shape.data(), nullptr));
  const ListId create(H5Pcreate(H5P_DATASET_CREATE));
  check_status(H5Pset_chunk(create.get(), 4, chunk.data()), "create", path);
  check_status(H5Pset_alloc_time(create.get(), H5D_ALLOC_TIME_EARLY), "create", path);
  check_status(H5Pset_fill_time(create.get(), H5D_FILL_TIME_NEVER), "create", path);
  const DatasetId images(check_id(H5Dcreate2(file.get(), "images", H5T_STD_U8LE, space.get(),
                                             H5P_DEFAULT, create.get(), H5P_DEFAULT),
                                  "create", path));
}

std::string hdf5_version() { return chunkio::library_versions().front().version; }

}  // namespace bench
