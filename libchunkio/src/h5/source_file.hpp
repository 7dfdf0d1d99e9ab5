/// A file that libhdf5 reads through a byte source.
///
/// libhdf5 reads metadata, and data that it alone can decode. Used while Library::lock() is held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <hdf5.h>

#include <chunkio/byte_source.hpp>
#include <chunkio/error.hpp>

#include "h5/file_driver.hpp"
#include "h5/handle.hpp"

namespace chunkio::h5 {

/// Whether what a file borrows from elsewhere may be read: a file from a stranger could name any
/// file that its reader may open.
enum class External { refused, allowed };

/// What libhdf5 keeps of a file's metadata takes at most this much, whatever the number of chunks;
/// of its own accord it would keep 32 MiB as they are stored.
inline constexpr std::int64_t kMetadataBytes = std::int64_t{512} << 10;

/// The raw data that libhdf5 asked for last.
struct ProbedRange {
  std::int64_t file_offset = -1;  ///< User block included.
  std::int64_t bytes = 0;
  int requests = 0;
};

class SourceFile final : public DriverFile {
 public:
  /// Opens nothing yet. \param probed  if given, raw data is not read: its place is noted there.
  /// Outlives this.
  SourceFile(std::shared_ptr<const ByteSource> source, External external,
             ProbedRange* probed = nullptr) noexcept;
  ~SourceFile() override;

  /// Opens the file read-only, whatever the environment says of drivers.
  /// \throws Error corrupt_data (damaged, truncated, not closed by its writer), io_failed (locked
  /// by
  ///         a writer, or what the source says).
  void open();
  [[nodiscard]] const FileId& id() const noexcept { return id_; }
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }
  /// What the source said when a read failed last; then it is forgotten.
  [[nodiscard]] std::optional<Error> take_failure() noexcept;

  /// Until it goes, raw data and metadata are read through another source of the same bytes.
  class Through {
   public:
    /// All three outlive this.
    Through(SourceFile& file, const ByteSource& source, const std::stop_token& stop) noexcept
        : file_(file) {
      file_.failure_.reset();
      file_.through_ = &source;
      file_.stop_ = &stop;
      file_.time_ = {};
    }
    ~Through() {
      file_.through_ = nullptr;
      file_.stop_ = nullptr;
    }
    Through(const Through&) = delete;
    Through& operator=(const Through&) = delete;
    /// What its reads took so far.
    [[nodiscard]] const ReadTime& time() const noexcept { return file_.time_; }

   private:
    SourceFile& file_;
  };

  [[nodiscard]] unsigned long features() const noexcept override;
  [[nodiscard]] std::optional<std::int64_t> bytes() noexcept override { return source_->size(); }
  [[nodiscard]] bool read(H5FD_mem_t type, std::int64_t offset,
                          std::span<std::byte> out) noexcept override;
  [[nodiscard]] bool lock(bool exclusive) noexcept override;
  void unlock() noexcept override;
  [[nodiscard]] std::unique_ptr<DriverFile> open_other(const char* name) noexcept override;

 private:
  std::shared_ptr<const ByteSource> source_;
  External external_;
  ProbedRange* probed_;
  bool locked_by_other_ = false;
  std::optional<Error> failure_;
  const ByteSource* through_ = nullptr;
  const std::stop_token* stop_ = nullptr;
  ReadTime time_ = {};
  FileId id_;
};

}  // namespace chunkio::h5
