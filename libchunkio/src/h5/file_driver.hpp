/// The file driver through which libhdf5 reaches every file of this library: a table of functions
/// that lead to an object of ours.
///
/// libhdf5 calls them while Library::lock() is held, and no exception may leave them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // H5FD_t, in newer versions
#endif

#include "h5/handle.hpp"

namespace chunkio::h5 {

/// A file as libhdf5 sees it.
class DriverFile {
 public:
  DriverFile(const DriverFile&) = delete;
  DriverFile& operator=(const DriverFile&) = delete;
  virtual ~DriverFile() = default;

  /// Makes `access` open this file, whatever the name. To be called once; this outlives the file,
  /// and all that is open in it.
  /// \param path  for messages.
  /// \throws Error hdf5_failed.
  void install(const ListId& access, const std::string& path);

  // For the driver.

  /// What libhdf5 may do to save requests: H5FD_FEAT_....
  [[nodiscard]] virtual unsigned long features() const noexcept = 0;
  /// Bytes of the file as it is opened; absent if they cannot be told.
  [[nodiscard]] virtual std::optional<std::int64_t> bytes() noexcept = 0;
  /// \returns false if it cannot be read.
  [[nodiscard]] virtual bool read(H5FD_mem_t type, std::int64_t offset,
                                  std::span<std::byte> out) noexcept = 0;
  /// Whether it may be opened for writing.
  [[nodiscard]] virtual bool writable() const noexcept { return false; }
  [[nodiscard]] virtual bool write(H5FD_mem_t type, std::int64_t offset,
                                   std::span<const std::byte> bytes) noexcept {
    static_cast<void>(type), static_cast<void>(offset), static_cast<void>(bytes);
    return false;
  }
  /// Locks the file for reading, or against others. \returns false if somebody else did.
  [[nodiscard]] virtual bool lock(bool exclusive) noexcept {
    static_cast<void>(exclusive);
    return true;
  }
  virtual void unlock() noexcept {}
  /// libhdf5 closed the file, which had so many bytes.
  virtual void closed(std::int64_t file_bytes) noexcept { static_cast<void>(file_bytes); }
  /// Another file that this one leads to, by the name that libhdf5 found; null if it must not.
  [[nodiscard]] virtual std::unique_ptr<DriverFile> open_other(const char* name) noexcept {
    static_cast<void>(name);
    return nullptr;
  }

  /// What libhdf5 calls the file: it knows the first member only.
  struct Opened {
    H5FD_t base = {};
    DriverFile* file = nullptr;
    haddr_t end_of_allocation = 0;
    haddr_t end_of_file = 0;
    bool in_use = false;
    /// The file belongs to libhdf5: that of open_other().
    bool owned = false;
  };
  [[nodiscard]] Opened& opened() noexcept { return opened_; }

 protected:
  DriverFile() = default;

 private:
  Opened opened_;
  UniqueId<&H5FDunregister> driver_;
};

}  // namespace chunkio::h5
