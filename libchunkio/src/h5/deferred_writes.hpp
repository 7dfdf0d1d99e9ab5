/// A file to which libhdf5 writes without failing, and hardly at all.
///
/// After an error of the disk libhdf5 may report success, or crash when the process ends; killed
/// while it writes, it leaves a file that it cannot open. So metadata stays in memory until libhdf5
/// has closed the file, and is then written by us, in one go and with every error noticed. Raw data
/// (fields) goes to the file at once; libhdf5 is told that this succeeded, and the error is thrown
/// when it is done. Takes no lock of the file. All functions are called while Library::lock() is
/// held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

#include "h5/file_driver.hpp"
#include "h5/placed_bytes.hpp"

namespace chunkio::h5 {

/// Bytes [begin, end) of a file that stay as they are.
struct KeptBytes {
  std::int64_t begin = 0, end = 0;
};

/// Bytes of a file, and their digest.
struct DigestedBytes {
  PlacedBytes place;
  std::uint64_t digest = 0;
};

/// The writes of one session with a file.
class DeferredWrites final : public DriverFile {
 public:
  /// \param fd  open for reading and writing; must outlive this, as `path` must.
  /// \param kept  a write to these fails, as one does that the disk refuses.
  DeferredWrites(int fd, const std::string& path, KeptBytes kept = {})
      : fd_(fd), path_(path), kept_(kept) {}

  /// \throws Error what happened to raw data so far: io_failed, no_space.
  void check() const;
  /// Writes what was held back, and sets the length of the file. To be called once, when libhdf5
  /// has closed the file. Does not sync.
  /// \throws Error io_failed, no_space: also what happened to raw data; std::bad_alloc.
  void apply();
  /// What apply() wrote: where, and the digest of what must be there from then on, for who reads
  /// the file back. \throws Error io_failed.
  [[nodiscard]] std::vector<DigestedBytes> applied();

  [[nodiscard]] unsigned long features() const noexcept override;
  [[nodiscard]] std::optional<std::int64_t> bytes() noexcept override;
  [[nodiscard]] bool read(H5FD_mem_t type, std::int64_t offset,
                          std::span<std::byte> out) noexcept override;
  [[nodiscard]] bool writable() const noexcept override { return true; }
  [[nodiscard]] bool write(H5FD_mem_t type, std::int64_t offset,
                           std::span<const std::byte> bytes) noexcept override;
  void closed(std::int64_t file_bytes) noexcept override { file_bytes_ = file_bytes; }

 private:
  struct Piece {
    std::int64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  [[nodiscard]] std::int64_t size() const;
  void check_kept(std::int64_t offset, std::size_t size) const;

  int fd_;
  const std::string& path_;
  KeptBytes kept_;
  std::int64_t file_bytes_ = 0;
  std::vector<Piece> metadata_;  ///< In the order of writing; later ones cover earlier ones.
  std::exception_ptr failure_;   ///< The first.
};

}  // namespace chunkio::h5
