/// What the disk can do, as fio sees it: the ceiling of cold reading.
#pragma once

#include <functional>
#include <string>

namespace bench {

/// Bytes a second, read from the file with nothing of it in the page cache.
struct FioRates {
  double random_direct = 0;        ///< 1 MiB random, io_uring, queue depth 32, O_DIRECT.
  double sequential_buffered = 0;  ///< 1 MiB after 1 MiB through the page cache.

  [[nodiscard]] double higher() const noexcept {
    return random_direct > sequential_buffered ? random_direct : sequential_buffered;
  }
};

/// Empty, or why fio cannot be run.
std::string reason_without_fio();
std::string fio_version();

/// Reads all of `path` twice, once each way.
/// \param before_exec  as run_child().
/// \throws std::runtime_error with fio's complaint.
FioRates measure_fio(const std::string& path, const std::function<bool()>& before_exec = {});

/// Reads all of `path` twice from its start to its end, 1 MiB at a time: through the page cache,
/// and round it (io_uring, queue depth 32). \returns the higher rate. \throws as measure_fio().
double measure_sequential_fio(const std::string& path);

}  // namespace bench
