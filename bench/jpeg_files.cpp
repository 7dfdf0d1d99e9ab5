#include "jpeg_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <jpeglib.h>

#include "base/positional_io.hpp"
#include "in_parallel.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr int kQuality = 90;
constexpr std::int64_t kClasses = 10;

struct ErrorManager {
  jpeg_error_mgr base{};  // First: libjpeg hands back a pointer to it.
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);
}

/// Warnings, too: h5pack refuses damaged files.
void on_message(j_common_ptr info, int level) {
  if (level < 0) leave(info);
}

void set_up(ErrorManager& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = on_message;
}

struct FreeBytes {
  void operator()(unsigned char* bytes) const noexcept { std::free(bytes); }
};

/// Holds nothing that would need a destructor: libjpeg leaves it by a jump.
bool compress(jpeg_compress_struct& info, ErrorManager& errors, const PictureSize& size,
              const std::byte* pixels, unsigned char*& jpeg, unsigned long& bytes) {
  if (setjmp(errors.jump) != 0) return false;
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
        pixels + std::int64_t{info.next_scanline} * size.width * 3));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

void write_jpeg(const std::string& path, const PictureSize& size,
                std::span<const std::byte> pixels) {
  jpeg_compress_struct info{};
  ErrorManager errors;
  set_up(errors);
  info.err = &errors.base;
  unsigned char* jpeg = nullptr;
  unsigned long bytes = 0;
  const bool done = compress(info, errors, size, pixels.data(), jpeg, bytes);
  jpeg_destroy_compress(&info);
  const std::unique_ptr<unsigned char, FreeBytes> owned(jpeg);
  if (!done) throw std::runtime_error(errors.message.data());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(jpeg), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// As many names as wanted in class folders, which are made; nothing is there yet.
JpegFolder name_files(const std::string& path, const PictureSize& size, std::int64_t count) {
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

JpegFolder draw_jpeg_folder(const std::string& path, const PictureSize& size, std::int64_t count) {
  JpegFolder folder = name_files(path, size, count);
  in_parallel(count, std::thread::hardware_concurrency(), [&] {
    return [&, pixels = std::vector<std::byte>(static_cast<std::size_t>(size.bytes()))](
               std::int64_t i) mutable {
      draw_pictures(size, i, pixels);
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

JpegFolder find_jpeg_folder(const std::string& path, const PictureSize& size) {
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

struct JpegReader::Impl {
  jpeg_decompress_struct info{};
  ErrorManager errors;
  std::vector<std::byte> pixels;

  bool create() noexcept {
    set_up(errors);
    info.err = &errors.base;
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&info);
    return true;
  }

  bool read_header(std::span<const std::byte> jpeg) noexcept {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info, TRUE);
    return true;
  }

  [[nodiscard]] std::size_t picture_bytes() const noexcept {
    return std::size_t{info.image_height} * info.image_width * 3;
  }

  bool read_rows() noexcept {
    if (setjmp(errors.jump) != 0) return false;
    info.out_color_space = JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info);
    std::array<JSAMPROW, 16> rows{};
    auto* const begin = reinterpret_cast<JSAMPROW>(pixels.data());
    while (info.output_scanline < info.output_height) {
      const JDIMENSION count =
          std::min<JDIMENSION>(rows.size(), info.output_height - info.output_scanline);
      for (JDIMENSION i = 0; i < count; ++i) {
        rows[i] = begin + (std::size_t{info.output_scanline} + i) * info.output_width * 3;
      }
      jpeg_read_scanlines(&info, rows.data(), count);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
};

JpegReader::JpegReader() : impl_(std::make_unique<Impl>()) {
  if (!impl_->create()) throw std::runtime_error(impl_->errors.message.data());
}
JpegReader::JpegReader(JpegReader&&) noexcept = default;
JpegReader::~JpegReader() {
  if (impl_) jpeg_destroy_decompress(&impl_->info);
}

std::span<const std::byte> JpegReader::decode(std::span<const std::byte> jpeg) {
  bool done = impl_->read_header(jpeg);
  if (done) {
    if (impl_->pixels.size() < impl_->picture_bytes()) impl_->pixels.resize(impl_->picture_bytes());
    done = impl_->read_rows();
  }
  if (!done) throw std::runtime_error(impl_->errors.message.data());
  return std::span(impl_->pixels).first(impl_->picture_bytes());
}

std::int64_t JpegReader::height() const noexcept { return impl_->info.image_height; }
std::int64_t JpegReader::width() const noexcept { return impl_->info.image_width; }

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
