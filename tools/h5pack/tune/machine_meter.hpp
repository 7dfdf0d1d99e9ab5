/// Measures the disk and the processors of this machine in a few seconds.
#pragma once

#include <cstdint>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/tuning.hpp>

namespace h5pack {

/// A disk as it answered.
struct MeasuredDisk {
  chunkio::DiskLimit limit = {};
  std::string method = {};  ///< How it was measured, in a clause.
};

/// A file that disks are measured with: an existing one, or one without a name, so that nothing
/// is left of it however the program ends.
class MeteredFile {
 public:
  /// \throws chunkio::Error not_found, io_failed, invalid_argument (too small to measure).
  static MeteredFile existing(const std::string& path);
  /// Writes 256 MiB into `folder` and brings them to disk. Blocks on I/O.
  /// \throws chunkio::Error io_failed, no_space, cancelled.
  static MeteredFile scratch(const std::string& folder);

  MeteredFile(MeteredFile&& other) noexcept;
  MeteredFile& operator=(MeteredFile&&) = delete;
  ~MeteredFile();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Whether reads bypass the page cache (O_DIRECT).
  [[nodiscard]] bool direct() const noexcept { return direct_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  MeteredFile(int descriptor, std::int64_t size, bool direct, std::string name);

  int descriptor_ = -1;
  std::int64_t size_ = 0;
  bool direct_ = false;
  std::string name_;
};

/// Reads for `seconds`, half of them requests of 4 KiB, by one thread and by 16, which give latency
/// and queue depth; half of up to 4 MiB, by 1, 4 and 16, the fastest of which give the bandwidth.
/// By fewer threads where memory or processes are short.
/// Where the file system takes no O_DIRECT, what the page cache holds of the file is dropped first,
/// if the kernel does that. Blocks. \throws chunkio::Error io_failed, cancelled (StopSignal).
[[nodiscard]] MeasuredDisk measure_disk(const MeteredFile& file, double seconds);

/// Copying, and undoing filters if the file has them, as the Loader does both: the first 128 MiB of
/// images, once so that they are in memory and once more for the time; of encoded images decoding
/// alone. The disk of the result, and rates that cannot be told, are those of `defaults`.
/// \throws chunkio::Error as Loader does.
[[nodiscard]] chunkio::MachineRates measure_rates(const chunkio::Dataset& dataset,
                                                  const chunkio::MachineRates& defaults);

}  // namespace h5pack
