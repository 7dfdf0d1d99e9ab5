/// Finding out which datasets a file of unknown origin holds.
///
/// Unless External::allowed, only hard links are followed: soft links can loop, external links and
/// user-defined links lead to other files; and datasets whose data lies elsewhere (external
/// storage, virtual datasets) are named but never read. All functions are called while
/// Library::lock() is held.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

#include "h5/handle.hpp"
#include "h5/source_file.hpp"

namespace chunkio::h5 {

/// What is known about a dataset without reading it.
struct DatasetSummary {
  std::string name;            ///< Path without the leading slash.
  std::string type;            ///< For people: "uint8", "compound", ...
  std::optional<DType> dtype;  ///< Absent if it is not one of the ten.
  std::optional<Shape> shape;  ///< Absent if it is not an array of at most eight axes.
  std::string refusal;  ///< Why its data must not or cannot be read, as a clause; usually empty.

  /// "labels int64 [50000]".
  [[nodiscard]] std::string describe() const;
};

/// \param name  for the summary.
[[nodiscard]] DatasetSummary summarize(const DatasetId& dataset, const std::string& name,
                                       const std::string& path, External external);

struct FileContents {
  std::vector<DatasetSummary> datasets;  ///< Ascending by name.
  std::vector<DamagedObject> damaged;    ///< What libhdf5 cannot open, ascending by name.
  bool complete = true;  ///< False: the walk stopped at its limit of objects or depth.

  /// "a uint8 [..], b float32 [..]", cut after a few; "no datasets".
  [[nodiscard]] std::string describe() const;
};

/// Calls visit(object, name, type) for the root group, whose name is empty, and for each object
/// reachable by hard links, each once. An object that cannot be opened goes to `damaged`, and so
/// does one for which `visit` throws Error hdf5_failed; the walk goes on.
/// \returns false if it stopped at its limit of objects or depth.
/// \throws Error hdf5_failed: the root group cannot be opened or listed; whatever else `visit`
///         throws.
bool visit_objects(const FileId& file, const std::string& path,
                   const std::function<void(hid_t, const std::string&, H5I_type_t)>& visit,
                   std::vector<DamagedObject>& damaged);

/// All datasets reachable by hard links, each once.
[[nodiscard]] FileContents list_datasets(const FileId& file, const std::string& path,
                                         External external);

/// What a path inside a file leads to.
enum class LinkState { absent, present, refused };

/// Follows `name` link by link. `refusal` is set for LinkState::refused: "images is a soft link".
[[nodiscard]] LinkState follow_links(const FileId& file, const std::string& name,
                                     const std::string& path, External external,
                                     std::string& refusal);

/// What is thrown for what must not be followed or read: refused_by_policy. \param what  a clause.
[[nodiscard]] Error refused(const std::string& path, const std::string& what);

[[nodiscard]] std::string without_leading_slash(const std::string& name);

/// The path of the dataset that an option names.
/// \throws Error not_found, refused_by_policy, unsupported.
[[nodiscard]] std::string find_named(const FileId& file, const std::string& wanted,
                                     const FileContents& contents, const std::string& path,
                                     External external);

/// Whether `name`, of which follow_links said `present`, is a dataset.
[[nodiscard]] bool is_dataset(const FileId& file, const std::string& name, const std::string& path);

/// \param access  dataset access property list, H5P_DEFAULT for none.
[[nodiscard]] DatasetId open_dataset(const FileId& file, const std::string& name,
                                     const std::string& path, hid_t access = H5P_DEFAULT);

}  // namespace chunkio::h5
