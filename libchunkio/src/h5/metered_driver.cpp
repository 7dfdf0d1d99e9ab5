#include "h5/metered_driver.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <utility>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // H5FD_class_t, in newer versions
#endif

#include "base/positional_io.hpp"
#include "h5/error_stack.hpp"

namespace chunkio::h5 {
namespace {

/// libhdf5 knows the first member only.
struct MeteredFile {
  H5FD_t base = {};
  MeteredReads* reads = nullptr;
  std::string path = {};
  base::FileDescriptor descriptor = {};
  haddr_t end_of_allocation = 0;
  haddr_t end_of_file = 0;
};

MeteredFile& as_ours(H5FD_t* file) { return *reinterpret_cast<MeteredFile*>(file); }
const MeteredFile& as_ours(const H5FD_t* file) {
  return *reinterpret_cast<const MeteredFile*>(file);
}

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
    file->descriptor = base::FileDescriptor::open_for_reading(file->path);
    struct stat status {};
    if (::fstat(file->descriptor.get(), &status) != 0) {
      throw base::system_error(errno, "inspect", file->path);
    }
    file->end_of_file = static_cast<haddr_t>(status.st_size);
    return &file->base;
  } catch (...) {
    (*reads)->fail(std::current_exception());
    delete file;
    return nullptr;
  }
}

herr_t close_file(H5FD_t* file) {
  delete &as_ours(file);
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
  if (!std::in_range<std::int64_t>(address) || !std::in_range<std::int64_t>(size)) return -1;
  const MeteredFile& ours = as_ours(file);
  const MeteredRead request{.file_offset = static_cast<std::int64_t>(address),
                            .bytes = static_cast<std::int64_t>(size),
                            .raw_data = type == H5FD_MEM_DRAW};
  try {
    ours.reads->report(request);
    base::read_at(ours.descriptor.get(), request.file_offset,
                  {static_cast<std::byte*>(buffer), size}, ours.path);
    return 0;
  } catch (...) {
    ours.reads->fail(std::current_exception());
    return -1;
  }
}

herr_t write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*address*/,
             std::size_t /*size*/, const void* /*buffer*/) {
  return -1;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(501);  // 256 to 511 are for anybody
#endif
  driver.name = "chunkio_metered";
  driver.maxaddr = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(MeteredReads*);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = get_end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = get_end_of_file;
  driver.read = read;
  driver.write = write;
  const H5FD_mem_t dichotomy[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(dichotomy), std::end(dichotomy), std::begin(driver.fl_map));
  return driver;
}

}  // namespace

void MeteredReads::install(const ListId& access) {
  static const H5FD_class_t kClass = driver_class();
  if (!driver_) {
    driver_ = UniqueId<&H5FDunregister>(
        check_id(H5FDregister(&kClass), "prepare to count the reads of", "a file"));
  }
  MeteredReads* const self = this;
  check_status(H5Pset_driver(access.get(), driver_.get(), &self), "prepare to count the reads of",
               "a file");
}

void MeteredReads::check() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void MeteredReads::fail(std::exception_ptr error) noexcept {
  if (!failure_) failure_ = std::move(error);
}

}  // namespace chunkio::h5
