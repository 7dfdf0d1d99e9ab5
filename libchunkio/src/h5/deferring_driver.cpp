#include "h5/deferring_driver.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/positional_io.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_driver.hpp"

namespace chunkio::h5 {
namespace {

struct DeferringFile {
  DriverFile driver = {};
  DeferredWrites* writes = nullptr;
};

DeferringFile& as_ours(H5FD_t* file) { return as_driver_file<DeferringFile>(file); }

// Called by libhdf5: no exception may leave these.

H5FD_t* open_file(const char* /*name*/, unsigned flags, hid_t access, haddr_t /*end*/) {
  const auto* writes = static_cast<DeferredWrites* const*>(H5Pget_driver_info(access));
  struct stat status {};
  if (writes == nullptr || ::fstat((*writes)->fd(), &status) != 0) return nullptr;
  auto* file = new (std::nothrow) DeferringFile;
  if (file == nullptr) return nullptr;
  file->writes = *writes;
  const bool anew = (flags & H5F_ACC_TRUNC) != 0;
  file->driver.end_of_file = anew ? 0 : static_cast<haddr_t>(status.st_size);
  return &file->driver.base;
}

herr_t close_file(H5FD_t* file) {
  const DeferringFile& ours = as_ours(file);
  ours.writes->closed(static_cast<std::int64_t>(ours.driver.end_of_allocation));
  delete &ours;  // the descriptor belongs to somebody else
  return 0;
}

herr_t query(const H5FD_t* /*file*/, unsigned long* flags) {
  // As libhdf5's own driver, so that the file is laid out alike; but no sieve buffer, which would
  // read back raw data whose writing may have failed.
  if (flags != nullptr) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
  }
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address,
            std::size_t size, void* buffer) {
  if (!in_file_range(address, size)) return -1;
  const std::span out(static_cast<std::byte*>(buffer), size);
  return as_ours(file).writes->read(static_cast<std::int64_t>(address), out) ? 0 : -1;
}

herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t address, std::size_t size,
             const void* buffer) {
  if (!in_file_range(address, size)) return -1;
  DeferringFile& ours = as_ours(file);
  const std::span bytes(static_cast<const std::byte*>(buffer), size);
  const auto offset = static_cast<std::int64_t>(address);
  if (type == H5FD_MEM_DRAW) {
    ours.writes->write_raw(offset, bytes);
  } else {
    ours.writes->write_metadata(offset, bytes);
  }
  ours.driver.end_of_file = std::max(ours.driver.end_of_file, address + size);
  return 0;
}

herr_t truncate(H5FD_t* file, hid_t /*transfer*/, hbool_t /*closing*/) {
  DriverFile& driver = as_ours(file).driver;
  driver.end_of_file = driver.end_of_allocation;
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = make_driver_class("chunkio_deferring", 500, sizeof(DeferredWrites*));
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  return driver;
}

}  // namespace

void DeferredWrites::install(const ListId& access) {
  static const H5FD_class_t kClass = driver_class();
  // Registered for each file and forgotten with it, so that nothing is left in libhdf5, which may
  // be closed and opened again by the program around us. We keep it longer than the file: the last
  // to let go frees it, and libhdf5 1.10 looks for `close` in it after that.
  driver_ = UniqueId<&H5FDunregister>(check_id(H5FDregister(&kClass), "prepare to write", path_));
  const DeferredWrites* const self = this;
  check_status(H5Pset_driver(access.get(), driver_.get(), &self), "prepare to write", path_);
}

void DeferredWrites::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

void DeferredWrites::apply() {
  check();
  for (const Piece& piece : metadata_) base::write_at(fd_, piece.offset, piece.bytes, path_);
  base::resize_file(fd_, file_bytes_, path_);
}

bool DeferredWrites::read(std::int64_t offset, std::span<std::byte> out) noexcept {
  try {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) throw base::system_error(errno, "inspect", path_);
    const std::int64_t there =
        std::clamp<std::int64_t>(status.st_size - offset, 0, static_cast<std::int64_t>(out.size()));
    base::read_at(fd_, offset, out.first(static_cast<std::size_t>(there)), path_);
    std::fill(out.begin() + there, out.end(), std::byte{});
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
    return false;
  }
  const std::int64_t end = offset + static_cast<std::int64_t>(out.size());
  for (const Piece& piece : metadata_) {
    const std::int64_t piece_end = piece.offset + static_cast<std::int64_t>(piece.bytes.size());
    const std::int64_t first = std::max(offset, piece.offset);
    const std::int64_t last = std::min(end, piece_end);
    if (first >= last) continue;
    std::memcpy(out.data() + (first - offset), piece.bytes.data() + (first - piece.offset),
                static_cast<std::size_t>(last - first));
  }
  return true;
}

void DeferredWrites::check_kept(std::int64_t offset, std::size_t size) const {
  if (offset >= kept_.end || offset + static_cast<std::int64_t>(size) <= kept_.begin) return;
  throw Error(ErrorCode::hdf5_failed, "libhdf5 would overwrite images of " + path_ +
                                          " while it adds attributes; use another version of it");
}

void DeferredWrites::write_raw(std::int64_t offset, std::span<const std::byte> bytes) noexcept {
  if (failure_) return;
  try {
    check_kept(offset, bytes.size());
    base::write_at(fd_, offset, bytes, path_);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void DeferredWrites::write_metadata(std::int64_t offset,
                                    std::span<const std::byte> bytes) noexcept {
  try {
    check_kept(offset, bytes.size());
    metadata_.push_back({offset, {bytes.begin(), bytes.end()}});
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}

}  // namespace chunkio::h5
