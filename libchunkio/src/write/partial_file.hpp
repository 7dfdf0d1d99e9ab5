/// A file that one writer owns: created or taken up, locked against other writers, and removed
/// when its owner goes, unless it is to be kept.
///
/// One owner at a time. File systems without locks do without.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <chunkio/dataset_writer.hpp>

#include "base/positional_io.hpp"

namespace chunkio::write {

/// What others may do meanwhile. Writers want an exclusive lock of what they find, so both kinds
/// keep them off; `shared` lets libhdf5 in, which locks what it reads.
enum class OwnerLock { shared, exclusive };

class PartialFile {
 public:
  /// Creates the file, empty, for reading and writing; it will be removed in the end.
  /// \throws Error output_exists (it is there: left over, or in use by another writer), not_found
  /// (no such folder), io_failed.
  static PartialFile create(const std::string& path, OwnerLock lock);
  /// Creates what becomes `target`, which check_target() has seen; shared, so that libhdf5 can look
  /// at it before it is published. Options say whether what an earlier owner left is discarded.
  /// \throws Error as create() and discard().
  static PartialFile begin(const std::string& target, const PublishOptions& options);
  /// Creates what becomes `target`, for a writer with a journal. A journal that nothing is left of
  /// goes, so that it is not taken for that of the new file.
  /// \param discard_leftover  also of what an earlier owner left. \throws Error as create().
  static PartialFile begin_afresh(const std::string& target, bool discard_leftover);
  /// Opens what an earlier owner left, if there is anything; it will be kept.
  /// \throws Error output_exists (in use by another writer, or no regular file), io_failed.
  static std::optional<PartialFile> take_up(const std::string& path, OwnerLock lock);
  /// Removes what an earlier owner left, if there is anything.
  /// \throws Error output_exists (in use by another writer), io_failed.
  static void discard(const std::string& path);

  PartialFile(PartialFile&&) noexcept = default;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Size in bytes. \throws Error io_failed.
  [[nodiscard]] std::int64_t size() const;

  void keep() noexcept { kept_ = true; }
  void remove_at_end() noexcept { kept_ = false; }

  /// Reserves disk space up to `bytes`, so that a full disk is an error now. The length stays.
  /// \throws Error no_space, io_failed.
  void reserve(std::int64_t bytes) const;
  /// Content and all that is known of it, to disk. Never to be tried again after a failure: the
  /// kernel may have dropped the pages. \throws Error io_failed, no_space.
  void sync() const;
  /// The same for the content and its length alone.
  void sync_content() const;

  /// Gives the file its final name, and keeps it.
  /// \throws Error output_exists (`target` is there and not to be replaced, or our file was taken
  /// over), io_failed.
  void publish(const std::string& target, bool replace);

 private:
  PartialFile(std::string path, base::FileDescriptor file, OwnerLock lock, bool kept);
  void lock() const;
  [[nodiscard]] bool is_ours() const noexcept;

  std::string path_;
  base::FileDescriptor file_;  ///< Invalid: moved from.
  OwnerLock lock_;
  bool kept_;
};

/// "PATH exists": the same wherever it is noticed.
[[nodiscard]] Error output_exists(const std::string& path);

/// Whether a file may be published under that name, before anything is done for it.
/// \throws Error output_exists, invalid_argument.
void check_target(const std::string& path, bool overwrite);

/// The file that becomes `target` when it is complete, and its journal.
[[nodiscard]] std::string partial_of(const std::string& target);
[[nodiscard]] std::string journal_of(const std::string& target);

/// What helps where a file that was left cannot be gone on with.
inline constexpr const char* kStartAgain = "set overwrite and not resume to start again";

/// The folder that `path` lies in.
[[nodiscard]] std::string folder_of(const std::string& path);

/// Whether a file of that name is there, of any kind. \throws Error io_failed.
[[nodiscard]] bool exists(const std::string& path);

/// Brings names made, changed or removed in `folder` to disk. \throws Error io_failed.
void sync_folder(const std::string& folder);
/// The same for what was published as `target`. \throws Error io_failed: it is complete, but may be
/// gone after a power cut.
void sync_published(const std::string& target);

}  // namespace chunkio::write
