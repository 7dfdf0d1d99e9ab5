#include "h5/source_file.hpp"

#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "h5/error_stack.hpp"
#include "io/local_file.hpp"

namespace chunkio::h5 {
namespace {

/// Limits what libhdf5 keeps of the metadata of a file.
void limit_metadata_cache(const ListId& access, const std::string& path) {
  // In stored bytes, of which nodes of a B-tree take the fivefold in memory.
  constexpr std::size_t kStoredBytes = kMetadataBytes / 8;
  H5AC_cache_config_t cache{};
  cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  check_status(H5Pget_mdc_config(access.get(), &cache), "prepare to open", path);
  cache.set_initial_size = true;
  cache.initial_size = cache.min_size = cache.max_size = kStoredBytes;
  cache.incr_mode = H5C_incr__off;
  cache.flash_incr_mode = H5C_flash_incr__off;
  cache.decr_mode = H5C_decr__off;
  check_status(H5Pset_mdc_config(access.get(), &cache), "prepare to open", path);
}

}  // namespace

SourceFile::SourceFile(std::shared_ptr<const ByteSource> source, External external,
                       ProbedRange* probed) noexcept
    : source_(std::move(source)), external_(external), probed_(probed) {}

SourceFile::~SourceFile() = default;

void SourceFile::open() {
  const std::string& path = source_->name();
  const ListId access(check_id(H5Pcreate(H5P_FILE_ACCESS), "prepare to open", path));
  install(access, path);
  limit_metadata_cache(access, path);
  id_ = FileId(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  if (id_) return;

  const std::string cause = describe_error_stack();
  if (auto failure = take_failure()) throw *std::move(failure);
  if (locked_by_other_) {
    throw Error(ErrorCode::io_failed,
                "cannot open " + path +
                    ": another process has it open for writing; wait until it is done, or set "
                    "HDF5_USE_FILE_LOCKING=FALSE if the file system knows no locks");
  }
  if (cause.find("truncated file") != std::string::npos) {
    throw Error(ErrorCode::corrupt_data,
                path + " is truncated (libhdf5: " + cause + "); copy or download it again");
  }
  if (cause.find("already open for") != std::string::npos) {
    throw Error(ErrorCode::corrupt_data,
                path + " is still being written, or its writer died; write it again");
  }
  throw Error(ErrorCode::corrupt_data,
              path + " is a damaged HDF5 file (libhdf5: " + cause + "); copy or download it again");
}

std::optional<Error> SourceFile::take_failure() noexcept {
  return std::exchange(failure_, std::nullopt);
}

unsigned long SourceFile::features() const noexcept {
  if (probed_ != nullptr) return 0;  // no aggregation: one request a chunk
  // No sieve buffer: rows are asked for in one run, and libhdf5 2.2 would read 64 KiB for a few.
  return H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
         H5FD_FEAT_AGGREGATE_SMALLDATA;
}

bool SourceFile::read(H5FD_mem_t type, std::int64_t offset, std::span<std::byte> out) noexcept {
  if (probed_ != nullptr && type == H5FD_MEM_DRAW) {
    probed_->file_offset = offset;
    probed_->bytes = static_cast<std::int64_t>(out.size());
    ++probed_->requests;
    return true;
  }
  try {
    const ByteSource& source = through_ != nullptr ? *through_ : *source_;
    time_ += source.read_at(offset, out, stop_ != nullptr ? *stop_ : std::stop_token{});
    return true;
  } catch (const Error& error) {
    failure_ = error;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_READERROR, "%s",
             error.what());
  } catch (...) {
    // libhdf5 says that a read failed.
  }
  return false;
}

bool SourceFile::lock(bool exclusive) noexcept {
  const io::LocalFile* file = io::as_local_file(*source_);
  if (file == nullptr || probed_ != nullptr) return true;
  if (::flock(file->fd(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return true;
  // Where the file system knows no locks, nobody can have it locked.
  if (errno == ENOSYS || errno == ENOTSUP) return true;
  locked_by_other_ = true;
  return false;
}

void SourceFile::unlock() noexcept {
  const io::LocalFile* file = io::as_local_file(*source_);
  if (file != nullptr && probed_ == nullptr) ::flock(file->fd(), LOCK_UN);
}

std::unique_ptr<DriverFile> SourceFile::open_other(const char* name) noexcept try {
  if (external_ == External::refused) return nullptr;
  return std::make_unique<SourceFile>(std::make_shared<io::LocalFile>(name), External::allowed);
} catch (...) {
  return nullptr;  // libhdf5 says that it cannot be opened
}

}  // namespace chunkio::h5
