/// Datasets of strings [N], of a fixed length or of any: the names of rows and columns.
///
/// Strings of any length lie in global heaps, which nothing checksums. libhdf5 1.10 copies as many
/// bytes as the heap says to memory for as many as the string says, so damage there could end the
/// process; these heaps are read here instead (HDF5 File Format Specification, III.E).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/dataset.hpp>

#include "h5/file_contents.hpp"

namespace chunkio::h5 {

/// Whether it may be read as texts [count].
[[nodiscard]] bool is_text_array(const DatasetSummary& dataset, std::int64_t count);

/// All texts of a dataset, or of a group that says which of them are missing; absent: `name` is
/// neither. Takes Library::lock(). \throws Error as read_texts().
[[nodiscard]] std::optional<std::vector<std::string>> find_texts(const Dataset::Impl& file,
                                                                 const std::string& name);

/// Gives all texts in order, without padding. Takes Library::lock(), and calls `take` with it.
/// \throws Error corrupt_data; unsupported: filters or storage that are not read here, texts beyond
///         kMaxNameBytes; io_failed, hdf5_failed.
void read_texts(const Dataset::Impl& file, const std::string& name, std::int64_t count,
                const std::function<void(std::string_view)>& take);

}  // namespace chunkio::h5
