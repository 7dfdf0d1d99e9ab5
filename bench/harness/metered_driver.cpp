#include "harness/metered_driver.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <new>
#include <string>

#include "base/positional_io.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_driver.hpp"

namespace bench {
namespace {

using chunkio::base::FileDescriptor;
using chunkio::h5::as_driver_file;
using chunkio::h5::check_id;
using chunkio::h5::check_status;
using chunkio::h5::DriverFile;
using chunkio::h5::ListId;

struct MeteredFile {
  DriverFile driver = {};
  MeteredReads* reads = nullptr;
  std::string path = {};
  FileDescriptor descriptor = {};
};

// Called by libhdf5: no exception may leave these.

H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t /*end*/) {
  const auto* reads = static_cast<MeteredReads* const*>(H5Pget_driver_info(access));
  if (reads == nullptr || (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0) {
    return nullptr;
  }
  auto* file = new (std::nothrow) MeteredFile;
  if (file == nullptr) return nullptr;
  try {
    file->reads = *reads;
    file->path = name;
    file->descriptor = FileDescriptor::open_for_reading(file->path);
    struct stat status {};
    if (::fstat(file->descriptor.get(), &status) != 0) {
      throw chunkio::base::system_error(errno, "inspect", file->path);
    }
    file->driver.end_of_file = static_cast<haddr_t>(status.st_size);
    return &file->driver.base;
  } catch (...) {
    delete file;
    return nullptr;
  }
}

herr_t close_file(H5FD_t* file) {
  delete &as_driver_file<MeteredFile>(file);
  return 0;
}

herr_t query(const H5FD_t* /*file*/, unsigned long* flags) {
  // Of what libhdf5's own driver can do, all that concerns reading.
  if (flags != nullptr) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
  }
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t address, std::size_t size,
            void* buffer) {
  if (!chunkio::h5::in_file_range(address, size)) return -1;
  const auto& ours = as_driver_file<MeteredFile>(file);
  const MeteredRead request{.file_offset = static_cast<std::int64_t>(address),
                            .bytes = static_cast<std::int64_t>(size),
                            .raw_data = type == H5FD_MEM_DRAW};
  try {
    ours.reads->report(request);
    chunkio::base::read_at(ours.descriptor.get(), request.file_offset,
                           {static_cast<std::byte*>(buffer), size}, ours.path);
    return 0;
  } catch (...) {
    return -1;
  }
}

H5FD_class_t driver_class() {
  H5FD_class_t driver =
      chunkio::h5::make_driver_class("chunkio_metered", 501, sizeof(MeteredReads*));
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.read = read;
  driver.write = chunkio::h5::refuse_to_write;
  return driver;
}

}  // namespace

void MeteredReads::install(const ListId& access) {
  static const H5FD_class_t kClass = driver_class();
  if (!driver_) {
    driver_ = chunkio::h5::UniqueId<&H5FDunregister>(
        check_id(H5FDregister(&kClass), "prepare to count the reads of", "a file"));
  }
  MeteredReads* const self = this;
  check_status(H5Pset_driver(access.get(), driver_.get(), &self), "prepare to count the reads of",
               "a file");
}

}  // namespace bench
