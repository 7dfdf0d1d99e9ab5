#include "fio.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/host_memory.hpp"
#include "base/positional_io.hpp"
#include "child_process.hpp"

namespace bench {
namespace {

using chunkio::base::FileDescriptor;
using chunkio::base::HostBuffer;

[[noreturn]] void fail(int error, const std::string& path) {
  throw std::system_error(error, std::generic_category(), path);
}

/// Takes the file's pages out of the mappings that this process has of it, which would keep them.
void page_out_mappings(const std::string& path) {
  const std::string canonical = std::filesystem::canonical(path);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(" " + canonical)) continue;
    char dash = 0;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the kernel names them
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT) != 0) {
      fail(errno, path);
    }
  }
}

/// How much of the file is in the page cache.
double cached_share(int file, const std::string& path) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = std::filesystem::file_size(path);
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) fail(errno, path);
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  const int error = ::mincore(map, bytes, pages.data()) == 0 ? 0 : errno;
  ::munmap(map, bytes);
  if (error != 0) fail(error, path);
  const auto cached =
      std::count_if(pages.begin(), pages.end(), [](unsigned char flags) { return flags % 2 == 1; });
  return static_cast<double>(cached) / static_cast<double>(pages.size());
}

/// Writes to free memory, as much of it as the file will take in the page cache. A virtual machine
/// hands free memory back to its host, and fetching it again can take longer than the disk: half a
/// gigabyte a second was seen.
void touch_free_memory(const std::string& path) {
  constexpr std::uintmax_t kEnough = std::uintmax_t{1} << 30;
  constexpr std::size_t kPage = 4096;
  const HostBuffer memory(
      static_cast<std::size_t>(std::min(kEnough, std::filesystem::file_size(path))));
  for (std::size_t i = 0; i < memory.size(); i += kPage) memory.data()[i] = std::byte{1};
}

double run_fio(const std::string& path, const std::vector<std::string>& how,
               const std::function<bool()>& before_exec) {
  drop_from_page_cache(path);
  std::vector<std::string> arguments = {"fio",        "--name=read", "--filename=" + path,
                                        "--readonly", "--bs=1M",     "--output-format=json"};
  arguments.insert(arguments.end(), how.begin(), how.end());
  const ChildResult result = run_child(arguments, before_exec);
  if (result.exit_code != 0) throw std::runtime_error("fio: " + result.complaint());
  // Notes may precede the report.
  const std::size_t begin = result.out.find("\n{");
  const std::string report = begin == std::string::npos ? result.out : result.out.substr(begin);
  return nlohmann::json::parse(report).at("jobs").at(0).at("read").at("bw_bytes").get<double>();
}

}  // namespace

std::string reason_without_fio() {
  const ChildResult result = run_child({"fio", "--version"});
  if (result.exit_code == 0) return {};
  return result.exit_code == 127 ? "fio is not installed" : "fio: " + result.complaint();
}

std::string fio_version() {
  std::string version = run_child({"fio", "--version"}).out;
  while (version.ends_with('\n')) version.pop_back();
  return version;
}

FioRates measure_fio(const std::string& path, const std::function<bool()>& before_exec) {
  FioRates rates;
  rates.random_direct = run_fio(
      path, {"--ioengine=io_uring", "--iodepth=32", "--direct=1", "--rw=randread"}, before_exec);
  rates.sequential_buffered =
      run_fio(path, {"--ioengine=psync", "--direct=0", "--rw=read"}, before_exec);
  return rates;
}

double measure_sequential_fio(const std::string& path) {
  return std::max(
      run_fio(path, {"--ioengine=psync", "--direct=0", "--rw=read"}, {}),
      run_fio(path, {"--ioengine=io_uring", "--iodepth=32", "--direct=1", "--rw=read"}, {}));
}

void drop_from_page_cache(const std::string& path) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  if (::fdatasync(file.get()) != 0) fail(errno, path);
  page_out_mappings(path);
  const int error = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) fail(error, path);
  if (const double cached = cached_share(file.get(), path); cached > 0.01) {
    throw std::runtime_error(path + ": " + std::to_string(static_cast<int>(100 * cached)) +
                             " % of it stay in the page cache");
  }
  touch_free_memory(path);
}

}  // namespace bench
