#include "h5/probe_driver.hpp"

#if !CHUNKIO_HAVE_CHUNK_ITER

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "base/positional_io.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/file_driver.hpp"

namespace chunkio::h5 {
namespace {

/// Its address is handed through the file access property list.
struct ProbeFile {
  DriverFile driver = {};
  int fd = -1;
  ProbedRange* range = nullptr;
};

// Called by libhdf5: no exception may leave these.

H5FD_t* open_file(const char* /*name*/, unsigned /*flags*/, hid_t access, haddr_t /*end*/) {
  const auto* probe = static_cast<ProbeFile* const*>(H5Pget_driver_info(access));
  struct stat status {};
  if (probe == nullptr || ::fstat((*probe)->fd, &status) != 0) return nullptr;
  (*probe)->driver = {.end_of_file = static_cast<haddr_t>(status.st_size)};
  return &(*probe)->driver.base;
}

// Memory and descriptor belong to the caller that opened the probe.
herr_t close_file(H5FD_t* /*file*/) { return 0; }

herr_t query(const H5FD_t* /*file*/, unsigned long* flags) {
  if (flags != nullptr) *flags = 0;  // no sieve buffer and no aggregation: one request a chunk
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t address, std::size_t size,
            void* buffer) {
  const ProbeFile& probe = as_driver_file<ProbeFile>(file);
  if (!in_file_range(address, size)) return -1;
  if (type == H5FD_MEM_DRAW) {
    probe.range->file_offset = static_cast<std::int64_t>(address);
    probe.range->bytes = static_cast<std::int64_t>(size);
    ++probe.range->requests;
    return 0;
  }
  try {
    base::read_at(probe.fd, static_cast<std::int64_t>(address),
                  std::span(static_cast<std::byte*>(buffer), size), "the file");
    return 0;
  } catch (const Error& error) {
    probe.range->failure = error;
    return -1;
  } catch (...) {
    return -1;
  }
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = make_driver_class("chunkio_probe", 502, sizeof(ProbeFile*));
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.read = read;
  driver.write = refuse_to_write;
  return driver;
}

}  // namespace

Probe open_probe(int fd, ProbedRange& range, const std::string& path) {
  static const H5FD_class_t kClass = driver_class();
  // Registered for each file and forgotten with it, so that nothing is left in libhdf5, which may
  // be closed and opened again by the program around us.
  Probe probe;
  probe.driver =
      UniqueId<&H5FDunregister>(check_id(H5FDregister(&kClass), "look up chunks of", path));
  const ListId access(check_id(H5Pcreate(H5P_FILE_ACCESS), "look up chunks of", path));
  const auto file = std::make_shared<ProbeFile>(ProbeFile{.fd = fd, .range = &range});
  probe.memory = file;
  const ProbeFile* const address = file.get();
  check_status(H5Pset_driver(access.get(), probe.driver.get(), &address), "look up chunks of",
               path);
  limit_metadata_cache(access, path);
  probe.file = FileId(
      check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "look up chunks of", path));
  return probe;
}

}  // namespace chunkio::h5

#endif
