#include "h5/file_driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>

#include "h5/error_stack.hpp"

namespace chunkio::h5 {
namespace {

constexpr auto kHighestAddress = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());

DriverFile::Opened& as_ours(H5FD_t* file) { return *reinterpret_cast<DriverFile::Opened*>(file); }
const DriverFile::Opened& as_ours(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile::Opened*>(file);
}

/// Whether offsets of the file system reach to the end of this range.
bool in_file_range(haddr_t address, std::size_t size) {
  return address <= kHighestAddress && size <= kHighestAddress - address;
}

// How libhdf5 carries a file from a list of access properties to open_file(), and to the lists of
// files that it leads to: as a DriverFile* of its own.

void* copy_installed(const void* installed) {
  // As libhdf5 itself takes memory, which it does not tell from other failures.
  void* copy = std::malloc(sizeof(DriverFile*));
  if (copy != nullptr) std::memcpy(copy, installed, sizeof(DriverFile*));
  return copy;
}

void* get_installed(H5FD_t* file) { return copy_installed(&as_ours(file).file); }

herr_t free_installed(void* installed) {
  std::free(installed);
  return 0;
}

H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t /*end*/) {
  const auto* installed = static_cast<DriverFile* const*>(H5Pget_driver_info(access));
  if (installed == nullptr) return nullptr;
  DriverFile* file = *installed;
  std::unique_ptr<DriverFile> other;
  if (file->opened().in_use) {
    // What a file links to is opened in the way that it was opened itself.
    other = file->open_other(name);
    file = other.get();
    if (file == nullptr) return nullptr;
  }
  const bool writes = (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0;
  if (writes && !file->writable()) return nullptr;
  const bool anew = (flags & H5F_ACC_TRUNC) != 0;
  const std::optional<std::int64_t> bytes = anew ? 0 : file->bytes();
  if (!bytes) return nullptr;
  file->opened() = {.file = file,
                    .end_of_file = static_cast<haddr_t>(*bytes),
                    .in_use = true,
                    .owned = other != nullptr};
  other.release();  // NOLINT(bugprone-unused-return-value): close_file() deletes it
  return &file->opened().base;
}

herr_t close_file(H5FD_t* file) {
  DriverFile::Opened& ours = as_ours(file);
  ours.file->closed(static_cast<std::int64_t>(ours.end_of_allocation));
  if (ours.owned) {
    const std::unique_ptr<DriverFile> other(ours.file);
  } else {
    ours.in_use = false;
  }
  return 0;
}

herr_t query(const H5FD_t* file, unsigned long* flags) {
  // Without a file, libhdf5 asks what the driver can do at all.
  if (flags != nullptr) *flags = file != nullptr ? as_ours(file).file->features() : 0;
  return 0;
}

haddr_t get_end_of_allocation(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return as_ours(file).end_of_allocation;
}

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t address) {
  as_ours(file).end_of_allocation = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return as_ours(file).end_of_file;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t address, std::size_t size,
            void* buffer) {
  if (!in_file_range(address, size)) return -1;
  const std::span out(static_cast<std::byte*>(buffer), size);
  return as_ours(file).file->read(type, static_cast<std::int64_t>(address), out) ? 0 : -1;
}

herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t address, std::size_t size,
             const void* buffer) {
  if (!in_file_range(address, size)) return -1;
  DriverFile::Opened& ours = as_ours(file);
  const std::span bytes(static_cast<const std::byte*>(buffer), size);
  if (!ours.file->write(type, static_cast<std::int64_t>(address), bytes)) return -1;
  ours.end_of_file = std::max(ours.end_of_file, address + size);
  return 0;
}

herr_t truncate(H5FD_t* file, hid_t /*transfer*/, hbool_t /*closing*/) {
  as_ours(file).end_of_file = as_ours(file).end_of_allocation;
  return 0;
}

herr_t lock(H5FD_t* file, hbool_t exclusive) {
  return as_ours(file).file->lock(exclusive != 0) ? 0 : -1;
}

herr_t unlock(H5FD_t* file) {
  as_ours(file).file->unlock();
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(500);  // 256 to 511 are for everybody
#endif
  driver.name = "chunkio";
  driver.maxaddr = kHighestAddress;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(DriverFile*);
  driver.fapl_get = get_installed;
  driver.fapl_copy = copy_installed;
  driver.fapl_free = free_installed;
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = get_end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = get_end_of_file;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  driver.lock = lock;
  driver.unlock = unlock;
  const H5FD_mem_t dichotomy[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(dichotomy), std::end(dichotomy), std::begin(driver.fl_map));
  return driver;
}

}  // namespace

void DriverFile::install(const ListId& access, const std::string& path) {
  static const H5FD_class_t kClass = driver_class();
  // Registered for each file and forgotten with it, so that nothing is left in libhdf5, which may
  // be closed and opened again by the program around us. We keep it longer than the file: the last
  // to let go frees it, and libhdf5 1.10 looks for `close` in it after that.
  driver_ = UniqueId<&H5FDunregister>(check_id(H5FDregister(&kClass), "prepare to open", path));
  const DriverFile* const self = this;
  check_status(H5Pset_driver(access.get(), driver_.get(), &self), "prepare to open", path);
}

}  // namespace chunkio::h5
