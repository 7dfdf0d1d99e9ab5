#include "harness/drawn_images.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include <hdf5.h>
#include <libdeflate.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>

#include "harness/hdf5_check.hpp"
#include "harness/noise.hpp"

namespace bench {
namespace {

constexpr int kDeflateLevel = 4;  // h5py's default

chunkio::DatasetSpec spec_of(const ImageSize& size, std::int64_t num_samples) {
  return {.num_samples = num_samples,
          .height = size.height,
          .width = size.width,
          .channels = size.channels};
}

/// A dataset `images` of chunks of about 4 MiB; `deflate` < 0: unfiltered.
class ImagesFile {
 public:
  ImagesFile(const std::string& path, const ImageSize& size, std::int64_t num_samples, int deflate)
      : file_(check_hdf5(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT),
                         "H5Fcreate")) {
    const auto length = [](std::int64_t value) { return static_cast<hsize_t>(value); };
    const hsize_t shape[4] = {length(num_samples), length(size.height), length(size.width),
                              length(size.channels)};
    chunk_samples_ = chunkio::choose_chunk_samples(size.bytes(), num_samples);
    const hsize_t chunk[4] = {length(chunk_samples_), shape[1], shape[2], shape[3]};
    const hid_t space = check_hdf5(H5Screate_simple(4, shape, nullptr), "H5Screate_simple");
    const hid_t create = check_hdf5(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    check_hdf5(H5Pset_chunk(create, 4, chunk), "H5Pset_chunk");
    if (deflate >= 0) {
      check_hdf5(H5Pset_deflate(create, static_cast<unsigned>(deflate)), "H5Pset_deflate");
    } else {
      check_hdf5(H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
      check_hdf5(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
    }
    images_ = check_hdf5(
        H5Dcreate2(file_, "images", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
        "H5Dcreate2");
    H5Pclose(create);
    H5Sclose(space);
  }
  ImagesFile(const ImagesFile&) = delete;
  ImagesFile& operator=(const ImagesFile&) = delete;
  ~ImagesFile() {
    H5Dclose(images_);
    H5Fclose(file_);
  }
  [[nodiscard]] hid_t images() const noexcept { return images_; }
  [[nodiscard]] std::int64_t chunk_samples() const noexcept { return chunk_samples_; }

 private:
  hid_t file_;
  hid_t images_ = -1;
  std::int64_t chunk_samples_ = 0;
};

/// A zlib stream, as HDF5's filter writes it.
std::vector<std::byte> deflate(std::span<const std::byte> bytes) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(kDeflateLevel);
  if (compressor == nullptr) throw std::bad_alloc();
  std::vector<std::byte> stream(libdeflate_zlib_compress_bound(compressor, bytes.size()));
  stream.resize(libdeflate_zlib_compress(compressor, bytes.data(), bytes.size(), stream.data(),
                                         stream.size()));
  libdeflate_free_compressor(compressor);
  return stream;
}

}  // namespace

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

void write_plain_file(const std::string& path, const ImageSize& size, std::int64_t num_samples,
                      std::span<const std::byte> pixels, std::int64_t chunk_samples) {
  chunkio::DatasetWriter writer(path, spec_of(size, num_samples), {.chunk_samples = chunk_samples});
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    const auto first = static_cast<std::size_t>(chunk * writer.chunk_bytes());
    writer.write_chunk(
        chunk, pixels.subspan(first, std::min(static_cast<std::size_t>(writer.chunk_bytes()),
                                              pixels.size() - first)));
  }
  writer.close();
}

void write_noise_file(const std::string& path, const ImageSize& size, std::int64_t num_samples) {
  chunkio::DatasetWriter writer(path, spec_of(size, num_samples));
  std::vector<std::byte> pixels(static_cast<std::size_t>(writer.chunk_bytes()));
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    const std::int64_t rows =
        std::min(writer.chunk_samples(), num_samples - chunk * writer.chunk_samples());
    const std::span<std::byte> part =
        std::span(pixels).first(static_cast<std::size_t>(rows * size.bytes()));
    fill_with_noise(part, static_cast<std::uint64_t>(chunk));
    writer.write_chunk(chunk, part);
  }
  writer.close();
}

void write_deflate_file(const std::string& path, const ImageSize& size, std::int64_t num_samples,
                        std::span<const std::byte> pixels) {
  const ImagesFile file(path, size, num_samples, kDeflateLevel);
  const auto chunk_bytes = static_cast<std::size_t>(file.chunk_samples() * size.bytes());
  const std::size_t num_chunks = (pixels.size() + chunk_bytes - 1) / chunk_bytes;
  const std::size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t first = 0; first < num_chunks; first += at_once) {
    std::vector<std::vector<std::byte>> streams(std::min(at_once, num_chunks - first));
    {
      std::vector<std::jthread> workers;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        workers.emplace_back([&, i] {
          // A short last chunk is stored at full length.
          std::vector<std::byte> whole(chunk_bytes);
          const std::size_t begin = (first + i) * chunk_bytes;
          const auto part = pixels.subspan(begin, std::min(chunk_bytes, pixels.size() - begin));
          std::copy(part.begin(), part.end(), whole.begin());
          streams[i] = deflate(whole);
        });
      }
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const hsize_t at[4] = {(first + i) * static_cast<hsize_t>(file.chunk_samples()), 0, 0, 0};
      check_hdf5(
          H5Dwrite_chunk(file.images(), H5P_DEFAULT, 0, at, streams[i].size(), streams[i].data()),
          "H5Dwrite_chunk");
    }
  }
}

void write_hollow_file(const std::string& path, const ImageSize& size, std::int64_t num_samples) {
  const ImagesFile file(path, size, num_samples, -1);
}

std::vector<std::vector<std::byte>> read_stored_chunks(const std::string& path) {
  const hid_t file = check_hdf5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
  const hid_t images = check_hdf5(H5Dopen2(file, "images", H5P_DEFAULT), "H5Dopen2");
  const hid_t space = check_hdf5(H5Dget_space(images), "H5Dget_space");
  const hid_t create = check_hdf5(H5Dget_create_plist(images), "H5Dget_create_plist");
  hsize_t shape[4] = {};
  hsize_t chunk[4] = {};
  check_hdf5(H5Sget_simple_extent_dims(space, shape, nullptr), "H5Sget_simple_extent_dims");
  check_hdf5(H5Pget_chunk(create, 4, chunk), "H5Pget_chunk");
  std::vector<std::vector<std::byte>> chunks;
  for (hsize_t first = 0; first < shape[0]; first += chunk[0]) {
    const hsize_t at[4] = {first, 0, 0, 0};
    hsize_t stored = 0;
    check_hdf5(H5Dget_chunk_storage_size(images, at, &stored), "H5Dget_chunk_storage_size");
    std::uint32_t filter_mask = 0;
    chunks.emplace_back(stored);
    check_hdf5(H5Dread_chunk(images, H5P_DEFAULT, at, &filter_mask, chunks.back().data()),
               "H5Dread_chunk");
  }
  H5Pclose(create);
  H5Sclose(space);
  H5Dclose(images);
  H5Fclose(file);
  return chunks;
}

std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  check_hdf5(H5get_libversion(&major, &minor, &release), "H5get_libversion");
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace bench
