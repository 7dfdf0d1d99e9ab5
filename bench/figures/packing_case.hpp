/// What the experiments with packing have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/figure.hpp"
#include "harness/jpeg_files.hpp"
#include "harness/scratch_folder.hpp"

namespace bench {

using chunkio::test::ScratchFolder;

inline constexpr ImageSize kLarge = kImageSizes[0];
inline constexpr ImageSize kSmall = kImageSizes[1];

struct PackingOptions {
  std::string h5pack = {};  ///< The program.
  std::string folder = {};
  std::int64_t threads = 2;
  std::int64_t rounds = 5;
  std::int64_t large_images = 10'000;   ///< 218x178 JPEG files.
  std::int64_t small_images = 50'000;   ///< 32x32 JPEG files.
  std::string small_folder = {};        ///< Real ones, in class folders; empty: drawn.
  std::int64_t cifar_records = 10'000;  ///< Of each batch file.
  std::int64_t repack_bytes = std::int64_t{1} << 30;
  std::int64_t few_files = 10'000;  ///< Memory is to stay the same between these two numbers.
  std::int64_t many_files = 200'000;
  std::string peers = {};         ///< Virtual environment; empty: none.
};

/// A run of h5pack.
struct PackRun {
  double seconds = 0;             ///< Of the whole command.
  double read_back_seconds = 0;   ///< In which it did nothing but read back what it wrote.
  nlohmann::ordered_json report;  ///< Its --json.

  [[nodiscard]] double without_read_back() const noexcept { return seconds - read_back_seconds; }
};

class PackingCase {
 public:
  PackingCase(const PackingOptions& run_options, const ScratchFolder& folder)
      : options(run_options), scratch(folder) {}

  const PackingOptions& options;
  const ScratchFolder& scratch;

  /// JPEG files of that size, in the page cache; drawn when first asked for.
  const JpegFolder& images(const ImageSize& size);

  /// Runs h5pack with `arguments`, --json, --quiet and as many threads as the options say, with
  /// nothing left to be written that was there before.
  /// \throws std::runtime_error with its complaint.
  [[nodiscard]] PackRun run_h5pack(std::vector<std::string> arguments) const;
  /// h5pack folder into a new file `output`.
  [[nodiscard]] PackRun pack_folder(const JpegFolder& images, const std::string& output) const;

 private:
  std::optional<JpegFolder> large_;
  std::optional<JpegFolder> small_;
};

/// Waits until everything written so far in the file system of `folder` is on disk.
void settle(const std::string& folder);

/// cp of `files` into a new folder, and fsync of them and the folder.
/// \returns seconds.
[[nodiscard]] double copy_files(const PackingCase& packing, const std::vector<std::string>& files);

/// Compares every sample of a packed file with its decoded source.
/// \throws std::runtime_error for the first that is wrong, or missing.
void check_packed(const std::string& path, const JpegFolder& images, std::int64_t threads);

// The experiments. Each adds its figures to the report.

/// h5pack folder against loops that only decode, or only open, read and decode.
void measure_decode_only(PackingCase& packing, Report& report);
void measure_open_read_decode(PackingCase& packing, Report& report);
/// h5pack cifar and repack against cp and fsync.
void measure_cifar(PackingCase& packing, Report& report);
void measure_repack(PackingCase& packing, Report& report);
/// h5pack folder against FFCV's writer and an h5py script.
void measure_pack_peers(PackingCase& packing, Report& report);
/// h5pack verify against fio.
void measure_verify(PackingCase& packing, Report& report);
/// What packing allocates for many files beyond what it does for few.
void measure_pack_memory(PackingCase& packing, Report& report);

/// `figures kPeakOf PROGRAM ...`: runs it and prints the most memory it had, in KiB. A process of
/// its own, since what the kernel counts for a program begins with what started it.
inline constexpr const char* kPeakOf = "--peak-of";
int peak_of_main(const std::vector<std::string>& arguments);

}  // namespace bench
