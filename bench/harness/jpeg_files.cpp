#include "harness/jpeg_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <jpeglib.h>

#include "base/positional_io.hpp"
#include "h5pack/image/jpeg_decoder.hpp"
#include "harness/in_parallel.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr int kQuality = 90;
constexpr std::int64_t kClasses = 10;

struct FreeBytes {
  void operator()(unsigned char* bytes) const noexcept { std::free(bytes); }
};

/// Without memory libjpeg says so and ends the program: its default.
void write_jpeg(const std::string& path, const ImageSize& size, std::span<const std::byte> pixels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  unsigned char* jpeg = nullptr;
  unsigned long bytes = 0;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &jpeg, &bytes);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(reinterpret_cast<const JSAMPLE*>(
        pixels.data() + std::int64_t{info.next_scanline} * size.width * 3));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::unique_ptr<unsigned char, FreeBytes> owned(jpeg);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(jpeg), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// As many names as wanted in class folders, which are made; nothing is there yet.
JpegFolder name_files(const std::string& path, const ImageSize& size, std::int64_t count) {
  JpegFolder folder{.path = path, .size = size, .files = {}};
  const std::int64_t of_class = (count + kClasses - 1) / kClasses;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = path + "/class" + std::to_string(i / of_class);
    if (i % of_class == 0) fs::create_directories(name);
    std::array<char, 32> file{};
    std::snprintf(file.data(), file.size(), "/%08lld.jpg", static_cast<long long>(i));
    folder.files.push_back(name + file.data());
  }
  return folder;
}

}  // namespace

JpegFolder draw_jpeg_folder(const std::string& path, const ImageSize& size, std::int64_t count) {
  JpegFolder folder = name_files(path, size, count);
  in_parallel(count, std::thread::hardware_concurrency(), [&] {
    return [&, pixels = std::vector<std::byte>(static_cast<std::size_t>(size.bytes()))](
               std::int64_t i) mutable {
      draw_images(size, i, pixels);
      write_jpeg(folder.files[static_cast<std::size_t>(i)], size, pixels);
    };
  });
  return folder;
}

JpegFolder link_jpeg_folder(const std::string& path, const JpegFolder& few, std::int64_t count) {
  JpegFolder folder = name_files(path, few.size, count);
  for (std::size_t i = 0; i < folder.files.size(); ++i) {
    fs::create_hard_link(few.files[i % few.files.size()], folder.files[i]);
  }
  return folder;
}

JpegFolder find_jpeg_folder(const std::string& path, const ImageSize& size) {
  JpegFolder folder{.path = path, .size = size, .files = {}};
  for (const fs::directory_entry& class_folder : fs::directory_iterator(path)) {
    if (!class_folder.is_directory()) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(class_folder)) {
      folder.files.push_back(file.path().string());
    }
  }
  if (folder.files.empty()) throw std::runtime_error("no images in class folders of " + path);
  // Class folders one after the other, files within: names hold no byte below '/'.
  std::sort(folder.files.begin(), folder.files.end());
  return folder;
}

JpegReader::JpegReader() : decoder_(std::make_unique<h5pack::JpegDecoder>()) {}
JpegReader::JpegReader(JpegReader&&) noexcept = default;
JpegReader::~JpegReader() = default;

std::span<const std::byte> JpegReader::decode(std::span<const std::byte> jpeg) {
  const h5pack::ImageSize size = decoder_->open(
      {reinterpret_cast<const std::uint8_t*>(jpeg.data()), jpeg.size()}, "a JPEG file");
  height_ = size.height;
  width_ = size.width;
  const auto bytes = static_cast<std::size_t>(3 * height_ * width_);
  if (pixels_.size() < bytes) pixels_.resize(bytes);
  decoder_->decode(h5pack::ColorMode::rgb, reinterpret_cast<std::uint8_t*>(pixels_.data()),
                   "a JPEG file");
  return std::span(pixels_).first(bytes);
}

std::span<const std::byte> FileReader::read(const std::string& path) {
  const auto fail = [&] { throw std::system_error(errno, std::generic_category(), path); };
  const chunkio::base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) fail();
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail();
  const auto size = static_cast<std::size_t>(status.st_size);
  if (bytes_.size() < size) bytes_.resize(2 * size);
  if (::read(file.get(), bytes_.data(), size) != status.st_size) fail();
  return std::span(bytes_).first(size);
}

}  // namespace bench
