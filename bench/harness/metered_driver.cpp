#include "harness/metered_driver.hpp"

namespace bench {

void MeteredReads::install(const chunkio::h5::ListId& access, const std::string& path) {
  file_ = std::make_unique<const chunkio::io::LocalFile>(path);
  DriverFile::install(access, path);
}

unsigned long MeteredReads::features() const noexcept {
  // Of what libhdf5's own driver can do, all that concerns reading.
  return H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
         H5FD_FEAT_AGGREGATE_SMALLDATA;
}

bool MeteredReads::read(H5FD_mem_t type, std::int64_t offset, std::span<std::byte> out) noexcept {
  try {
    report_({.file_offset = offset,
             .bytes = static_cast<std::int64_t>(out.size()),
             .raw_data = type == H5FD_MEM_DRAW});
    file_->read_at(offset, out, {});
    return true;
  } catch (...) {
    return false;  // libhdf5 says that a read failed
  }
}

}  // namespace bench
