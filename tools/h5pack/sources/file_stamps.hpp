/// Sizes, times and digests of the files of a source, which show that one changed or is another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// Fills the stamps of all splits, several files at a time. Blocks on I/O: one stat() a file.
/// \throws Error not_found or io_failed if a file is not there and `on_error` is fail; cancelled.
void stamp_files(Listing& listing, OnError on_error);

/// "photos/cat/1.jpg, changed 2026-01-02 03:04:05 UTC": the split's file that changed last; "none"
/// without files. \pre stamp_files() was called.
[[nodiscard]] std::string newest_file(const SourceFiles& files);
/// Of all the split's files. \pre stamp_files() was called.
[[nodiscard]] std::int64_t files_bytes(const SourceFiles& files);
/// XXH3-128 of names, sizes and times of the split's files, in order, as 32 hexadecimal digits.
/// \pre stamp_files() was called.
[[nodiscard]] std::string files_digest(const SourceFiles& files);
/// The same of the names alone, from the folder on that all of them have in common.
[[nodiscard]] std::string names_digest(const std::vector<std::string>& paths);
/// The same of any text.
[[nodiscard]] std::string text_digest(std::string_view text);
/// The same of labels and whatever else the source says of each image.
[[nodiscard]] std::string fields_digest(const Listing& listing, const Split& split);

/// Tells one HDF5 file from another: "uuid ..." of a file of this format, which is new for each
/// file written; of another file its size and time of change. Blocks on I/O.
[[nodiscard]] std::string file_identity(const chunkio::DatasetInfo& info);

}  // namespace h5pack
