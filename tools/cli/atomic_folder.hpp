/// A folder that appears whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace cli {

/// A descriptor that is closed at the end.
class FileHandle {
 public:
  FileHandle() = default;
  FileHandle(const std::string& path, int flags) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle(FileHandle&& other) noexcept { *this = std::move(other); }
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  /// Negative: not open.
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// \returns 0, or an error number.
  int close() noexcept;

 private:
  int fd_ = -1;
};

/// Files are written to PATH.partial, which publish() renames to PATH. Destroyed before that, it
/// removes what it wrote; what a killed process left, the next one removes. Until just before it is
/// renamed, the folder holds a locked file that tells it from a folder of somebody else; in that
/// moment a killed process leaves a folder that the next one refuses to remove. A folder that is
/// replaced gets such a file before it becomes PATH.partial.
class AtomicFolder {
 public:
  /// The file that marks a folder as unfinished, or on its way out.
  static constexpr const char* kMark = ".h5pack-unfinished";

  /// Makes PATH.partial, after removing one that a killed process left.
  /// \param replace  PATH may exist: publish() exchanges both and removes the old one.
  /// \throws chunkio::Error output_exists (PATH exists, and is not to be replaced; or PATH.partial
  /// does, and is in use or was
  ///         not left by a killed process), not_found (no folder to put it in), io_failed,
  ///         no_space.
  explicit AtomicFolder(const std::string& path, bool replace = false);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();

  /// Makes the folder `name` in it.
  /// \throws chunkio::Error io_failed, no_space.
  void make_folder(const std::string& name) const;
  /// A file in it that is written piece by piece.
  class File {
   public:
    /// \throws chunkio::Error io_failed, no_space.
    void write(std::span<const unsigned char> bytes);
    /// Overwrites what was written there before. \throws as write().
    void write_at(std::int64_t offset, std::span<const unsigned char> bytes);
    [[nodiscard]] std::int64_t size() const noexcept { return size_; }
    /// \throws as write().
    void close();

   private:
    friend class AtomicFolder;
    explicit File(std::string path);
    std::string path_;
    FileHandle handle_;
    std::int64_t size_ = 0;
  };
  /// Creates a file that does not exist yet. \param name, \throws as write().
  [[nodiscard]] File create(const std::string& name) const;
  /// Writes a file that does not exist yet. Thread-safe for distinct names.
  /// \param name  within the folder, maybe "folder/file".
  /// \throws chunkio::Error io_failed, no_space.
  void write(const std::string& name, std::span<const unsigned char> bytes) const;
  /// Brings everything to disk and gives the folder its name. Blocks on I/O.
  /// \throws chunkio::Error output_exists (PATH appeared meanwhile), io_failed, no_space.
  void publish();

 private:
  void remove_leftover() const;
  /// \returns 0, or an error number.
  [[nodiscard]] int take_place() const;

  std::string path_;
  std::string partial_;
  FileHandle mark_;       ///< Locked as long as this process writes.
  bool replace_ = false;  ///< PATH was there, and goes.
  bool published_ = false;
};

}  // namespace cli
