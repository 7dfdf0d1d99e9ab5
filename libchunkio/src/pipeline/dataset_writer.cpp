#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include <chunkio/dataset_writer.hpp>

#include "base/checked_math.hpp"
#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/skeleton_writer.hpp"

namespace chunkio {
namespace {

/// "OUT exists": the same wherever it is noticed.
Error output_exists(const std::string& path) {
  return Error(ErrorCode::output_exists,
               path + " exists; choose another name, or overwrite it (--force)");
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string random_uuid() {
  std::array<unsigned char, 16> bytes{};
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) throw base::system_error(errno, "read", "the system's random numbers");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x40U);  // version 4: random
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);  // the variant of RFC 4122
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// PATH.partial: made by us, locked against other writers, removed unless published.
class PartialFile {
 public:
  /// \throws Error output_exists, io_failed, not_found (no such folder).
  PartialFile(std::string path, bool overwrite) : path_(std::move(path)) {
    if (overwrite) discard_leftover();
    file_ = base::FileDescriptor(
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file_.valid()) {
      const int error_number = errno;
      if (error_number == EEXIST) {
        static_cast<void>(lock_existing());
        throw Error(ErrorCode::output_exists,
                    path_ +
                        " is left over from a run that did not finish; remove it, or overwrite it "
                        "(--force)");
      }
      const std::string folder = folder_of(path_);
      throw base::system_error(error_number, "create", path_,
                               error_number == ENOENT || error_number == ENOTDIR
                                   ? "make the folder " + folder + " first"
                                   : "write to a folder that you may write to");
    }
    lock();
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (!published_ && is_ours()) ::unlink(path_.c_str());
  }

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Runs `call`, which lets libhdf5 write the file, without our lock if libhdf5 insists on its
  /// own.
  template <class Call>
  void while_library_writes(Call call) {
    if (!h5::library_locks_files()) return call();
    ::flock(file_.get(), LOCK_UN);
    call();
    lock();
  }

  /// \throws Error io_failed, no_space. Never to be tried again: the kernel may have dropped the
  /// pages.
  void sync() const {
    if (::fsync(file_.get()) != 0) throw base::system_error(errno, "write to disk", path_);
  }

  /// Gives the file its final name. \throws Error output_exists, io_failed.
  void publish(const std::string& target, bool overwrite) {
    if (!is_ours()) throw in_use();
    if (overwrite) {
      if (::rename(path_.c_str(), target.c_str()) != 0) {
        throw base::system_error(errno, "rename " + path_ + " to", target);
      }
    } else if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) !=
               0) {
      if (errno == EEXIST) throw output_exists(target);
      if (errno != EINVAL && errno != ENOSYS) {
        throw base::system_error(errno, "rename " + path_ + " to", target);
      }
      // The file system cannot rename without replacing, but a link never replaces.
      if (::link(path_.c_str(), target.c_str()) != 0) {
        if (errno == EEXIST) throw output_exists(target);
        throw base::system_error(errno, "rename " + path_ + " to", target);
      }
      ::unlink(path_.c_str());
    }
    published_ = true;
  }

 private:
  /// A shared lock: it keeps off other writers, which want an exclusive one, but not readers, among
  /// which is libhdf5 when we look at the file. Creation was exclusive already. File systems
  /// without locks do without. \throws Error output_exists if another process took the file over.
  void lock() {
    const bool refused = ::flock(file_.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (refused || !is_ours()) throw in_use();
  }

  [[nodiscard]] Error in_use() const {
    return Error(ErrorCode::output_exists,
                 path_ + " is in use by another process; wait for it, or choose another name");
  }

  /// Whether the name still stands for the file we made.
  [[nodiscard]] bool is_ours() const noexcept {
    struct stat ours {};
    struct stat named {};
    return ::fstat(file_.get(), &ours) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
           same_file(ours, named);
  }

  /// The existing file of that name, locked; invalid if there is none that can be opened.
  /// \throws Error output_exists if a living writer holds it.
  [[nodiscard]] base::FileDescriptor lock_existing() const {
    base::FileDescriptor existing(
        ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (existing.valid() && ::flock(existing.get(), LOCK_EX | LOCK_NB) != 0 &&
        errno == EWOULDBLOCK) {
      throw in_use();
    }
    return existing;
  }

  /// Removed under its lock, so that no file of a writer that starts just now goes with it.
  void discard_leftover() const {
    const base::FileDescriptor existing = lock_existing();
    if (::unlink(path_.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
      throw base::system_error(errno, "remove", path_, "remove it by hand");
    }
  }

  std::string path_;
  base::FileDescriptor file_;
  bool published_ = false;
};

/// \throws Error output_exists, invalid_argument.
void check_target(const std::string& path, bool overwrite) {
  if (path.empty()) throw Error(ErrorCode::invalid_argument, "the output has no name");
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "the output's name holds a zero byte");
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::output_exists, path + " is a folder; give the name of a file");
  }
  // A symbolic link would be replaced, too, and not what it points to.
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::output_exists,
                path + " is not a regular file; give another name, or remove it first");
  }
  if (!overwrite) throw output_exists(path);
}

/// Reserves `bytes` of disk space, so that a full disk is an error now.
/// \param mode  of fallocate(): FALLOC_FL_KEEP_SIZE, or 0 to set the length too.
/// \throws Error no_space, io_failed.
void reserve(const PartialFile& file, std::int64_t bytes, int mode) {
  const std::string action = "reserve " + std::to_string(bytes) + " bytes for";
  const std::string hint = "free some space, or write to another disk";
  // Asked for rather than met: beyond this limit the kernel kills a process that does not expect
  // it.
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::cmp_greater(bytes, limit.rlim_cur)) {
    throw base::system_error(EFBIG, action, file.path(), "raise the file size limit (ulimit -f)");
  }
  int status = 0;
  do {
    status = ::fallocate(file.fd(), mode, 0, bytes);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    throw base::system_error(errno, action, file.path(), hint);
  }
  struct statvfs volume {};
  struct stat current {};
  if (::fstatvfs(file.fd(), &volume) != 0 || ::fstat(file.fd(), &current) != 0) {
    throw base::system_error(errno, "inspect the file system of", file.path());
  }
  const std::int64_t used = current.st_blocks * 512;
  if (std::cmp_less(volume.f_bavail,
                    base::ceil_divide(std::max<std::int64_t>(bytes - used, 0),
                                      static_cast<std::int64_t>(volume.f_frsize)))) {
    throw base::system_error(ENOSPC, action, file.path(), hint);
  }
}

void sync_folder(const std::string& folder) {
  const base::FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system has nothing to sync for a folder.
  if (!descriptor.valid() || (::fsync(descriptor.get()) != 0 && errno != EINVAL)) {
    throw base::system_error(errno, "write to disk the folder", folder);
  }
}

std::int64_t checked_chunk_samples(const DatasetSpec& spec, const WriterOptions& options) {
  const std::int64_t sample_bytes = spec.height * spec.width * spec.channels;
  if (options.chunk_samples < 0) {
    throw Error(ErrorCode::invalid_argument,
                "chunk_samples must be 0 or more, got " + std::to_string(options.chunk_samples));
  }
  if (options.chunk_samples == 0) {
    return choose_chunk_samples(sample_bytes, spec.num_samples, options.chunk_bytes);
  }
  const std::int64_t samples = std::min(options.chunk_samples, spec.num_samples);
  // The same limit as for the choice: HDF5 counts the bytes of a chunk in 32 bits.
  const auto bytes = base::checked_multiply(samples, sample_bytes);
  if (!bytes || *bytes > std::int64_t{0xffffffff}) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(samples) + " samples of " + std::to_string(sample_bytes) +
                    " bytes are too much for one chunk (4 GiB); lower chunk_samples (--chunk)");
  }
  return samples;
}

void check_statistics(const DatasetSpec& spec, const DatasetStatistics& statistics) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "dataset statistics: " + what);
  };
  const auto& [mean, std] = statistics.channels;
  if (mean.size() != std.size() || (!mean.empty() && !std::cmp_equal(mean.size(), spec.channels))) {
    fail("mean and std need one number for each of the " + std::to_string(spec.channels) +
         " channels");
  }
  const auto is_number = [](double value) { return std::isfinite(value); };
  if (!std::all_of(mean.begin(), mean.end(), is_number) ||
      !std::all_of(std.begin(), std.end(), is_number)) {
    fail("mean and std must be finite");
  }
  const auto& counts = statistics.class_counts;
  if (!counts.empty() && !spec.class_names.empty() && counts.size() != spec.class_names.size()) {
    fail(std::to_string(counts.size()) + " class counts for " +
         std::to_string(spec.class_names.size()) + " classes");
  }
  if (std::any_of(counts.begin(), counts.end(),
                  [&](std::int64_t n) { return n < 0 || n > spec.num_samples; })) {
    fail("class counts must lie between 0 and the number of samples");
  }
}

enum ChunkState : std::uint8_t { kMissing = 0, kWriting = 1, kWritten = 2 };

}  // namespace

struct DatasetWriter::Impl {
  Impl(std::string target_path, const DatasetSpec& dataset, const WriterOptions& options)
      : target(std::move(target_path)),
        overwrite(options.overwrite),
        num_samples(dataset.num_samples),
        sample_bytes(dataset.height * dataset.width * dataset.channels),
        chunk_samples(checked_chunk_samples(dataset, options)),
        num_chunks(base::ceil_divide(num_samples, chunk_samples)),
        states(static_cast<std::size_t>(num_chunks)),
        digests(static_cast<std::size_t>(num_chunks)) {
    // All that statistics are checked against; the field values are not kept.
    spec.num_samples = dataset.num_samples;
    spec.channels = dataset.channels;
    spec.class_names = dataset.class_names;
    check_target(target, overwrite);
    partial.emplace(target + ".partial", overwrite);
    write_structure(dataset);
  }

  [[nodiscard]] std::int64_t chunk_bytes() const noexcept { return chunk_samples * sample_bytes; }
  [[nodiscard]] std::int64_t offset_of(std::int64_t chunk) const noexcept {
    return base_offset + chunk * chunk_bytes();
  }
  [[nodiscard]] std::int64_t rows_of(std::int64_t chunk) const noexcept {
    return std::min(chunk_samples, num_samples - chunk * chunk_samples);
  }

  void write_structure(const DatasetSpec& dataset);
  void write_chunk(std::int64_t chunk, std::span<const std::byte> rows);
  void finish();
  void verify() const;
  [[nodiscard]] Dataset open_partial() const;

  std::string target;
  bool overwrite;
  std::int64_t num_samples;
  std::int64_t sample_bytes;
  std::int64_t chunk_samples;
  std::int64_t num_chunks;
  DatasetSpec spec;
  std::optional<PartialFile> partial;  ///< Absent once closed, well or badly.
  bool published = false;
  std::int64_t base_offset = 0;  ///< Of chunk 0 in the file.
  std::int64_t file_bytes = 0;
  std::vector<std::atomic<std::uint8_t>> states;  ///< ChunkState of each chunk.
  std::vector<std::uint64_t> digests;             ///< Each written by whoever writes its chunk.
  std::optional<DatasetStatistics> statistics;
};

void DatasetWriter::Impl::write_structure(const DatasetSpec& dataset) {
  const auto pixels = base::checked_multiply(num_chunks, chunk_bytes());
  const auto bytes = base::checked_add(pixels.value_or(0), h5::skeleton_bytes(dataset, num_chunks));
  if (!pixels || !bytes) {
    throw Error(ErrorCode::invalid_argument, target + " would be larger than a file can be");
  }
  // libhdf5 reports a full disk unreliably, so it is asked for before libhdf5 writes anything.
  // Creating the file anew gives the space back; what is needed exactly is reserved below.
  reserve(*partial, *bytes, FALLOC_FL_KEEP_SIZE);

  h5::SkeletonOptions options;
  options.chunk_samples = chunk_samples;
  options.creator = "chunkio " CHUNKIO_VERSION;
  options.uuid = random_uuid();
  options.cache = recommend_cache(num_chunks, chunk_bytes());
  partial->while_library_writes([&] { h5::write_skeleton(partial->path(), dataset, options); });

  // The pixels' place comes from the file, by the way every reader takes.
  base_offset = *open_partial().impl()->images->linear_offset;
  struct stat status {};
  if (::fstat(partial->fd(), &status) != 0) {
    throw base::system_error(errno, "inspect", partial->path());
  }
  file_bytes = std::max<std::int64_t>(status.st_size, offset_of(num_chunks));
  reserve(*partial, file_bytes, 0);
  partial->sync();
}

/// \throws Error hdf5_failed if the pixels do not lie in one run.
Dataset DatasetWriter::Impl::open_partial() const {
  Dataset dataset = Dataset::open(partial->path());
  if (!dataset.impl()->images->linear_offset) {
    throw Error(ErrorCode::hdf5_failed,
                "this libhdf5 does not keep the chunks of " + partial->path() + " in one run");
  }
  return dataset;
}

void DatasetWriter::Impl::write_chunk(std::int64_t chunk, std::span<const std::byte> rows) {
  if (!partial) {
    throw Error(ErrorCode::invalid_argument, target + ": write_chunk after close");
  }
  const std::string shown = "chunk " + std::to_string(chunk) + " of " + target;
  if (chunk < 0 || chunk >= num_chunks) {
    throw Error(ErrorCode::invalid_argument,
                shown + ": there are " + std::to_string(num_chunks) + " chunks");
  }
  const std::int64_t bytes = rows_of(chunk) * sample_bytes;
  if (!std::cmp_equal(rows.size(), bytes)) {
    throw Error(ErrorCode::invalid_argument, shown + " takes " + std::to_string(bytes) +
                                                 " bytes, got " + std::to_string(rows.size()));
  }
  auto& state = states[static_cast<std::size_t>(chunk)];
  std::uint8_t expected = kMissing;
  if (!state.compare_exchange_strong(expected, kWriting)) {
    throw Error(ErrorCode::invalid_argument, shown + " was written twice");
  }
  try {
    const std::vector<std::byte> padding(static_cast<std::size_t>(chunk_bytes() - bytes));
    base::RunningDigest digest;
    digest.add(rows);
    digest.add(padding);
    digests[static_cast<std::size_t>(chunk)] = digest.value();
    base::write_at(partial->fd(), offset_of(chunk), rows, partial->path());
    base::write_at(partial->fd(), offset_of(chunk) + bytes, padding, partial->path());
  } catch (...) {
    state = kMissing;
    throw;
  }
  state = kWritten;
}

void DatasetWriter::Impl::finish() {
  partial->sync();
  partial->while_library_writes(
      [&] { h5::write_final_attributes(partial->path(), statistics, digests); });
  partial->sync();
  verify();
  partial->publish(target, overwrite);
  sync_folder(folder_of(target));
  published = true;
}

/// Reads everything back: a disk can lose what it said it wrote.
void DatasetWriter::Impl::verify() const {
  {
    const Dataset dataset = open_partial();
    if (*dataset.impl()->images->linear_offset != base_offset ||
        dataset.info().chunk_digests != digests) {
      throw Error(ErrorCode::digest_mismatch,
                  target + ": the file does not say what was written to it; check the disk");
    }
  }
  // From the disk rather than from memory, as far as the kernel follows.
  ::posix_fadvise(partial->fd(), 0, 0, POSIX_FADV_DONTNEED);
  std::vector<std::byte> bytes(static_cast<std::size_t>(chunk_bytes()));
  for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    base::read_at(partial->fd(), offset_of(chunk), bytes, partial->path());
    if (base::digest(bytes) != digests[static_cast<std::size_t>(chunk)]) {
      throw Error(ErrorCode::digest_mismatch,
                  target + ": chunk " + std::to_string(chunk) +
                      " reads back otherwise than it was written; check the disk");
    }
  }
}

DatasetWriter::DatasetWriter(const std::string& path, const DatasetSpec& spec,
                             const WriterOptions& options) {
  h5::validate(spec);
  impl_ = std::make_unique<Impl>(path, spec, options);
}

DatasetWriter::DatasetWriter(DatasetWriter&&) noexcept = default;
DatasetWriter& DatasetWriter::operator=(DatasetWriter&&) noexcept = default;
DatasetWriter::~DatasetWriter() = default;

std::int64_t DatasetWriter::num_chunks() const noexcept { return impl_->num_chunks; }
std::int64_t DatasetWriter::chunk_samples() const noexcept { return impl_->chunk_samples; }
std::int64_t DatasetWriter::chunk_bytes() const noexcept { return impl_->chunk_bytes(); }

void DatasetWriter::write_chunk(std::int64_t chunk, std::span<const std::byte> rows) {
  impl_->write_chunk(chunk, rows);
}

void DatasetWriter::set_statistics(DatasetStatistics statistics) {
  check_statistics(impl_->spec, statistics);
  impl_->statistics = std::move(statistics);
}

void DatasetWriter::close() {
  if (impl_->published) return;
  if (!impl_->partial) {
    throw Error(ErrorCode::invalid_argument, impl_->target + ": an earlier close failed");
  }
  const auto missing = std::find_if(impl_->states.begin(), impl_->states.end(),
                                    [](const auto& state) { return state != kWritten; });
  if (missing != impl_->states.end()) {
    throw Error(ErrorCode::invalid_argument, impl_->target + ": chunk " +
                                                 std::to_string(missing - impl_->states.begin()) +
                                                 " was not written");
  }
  try {
    impl_->finish();
  } catch (...) {
    // Whatever failed, what is on disk can no longer be trusted.
    impl_->partial.reset();
    throw;
  }
  impl_->partial.reset();
}

}  // namespace chunkio
