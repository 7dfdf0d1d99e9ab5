/// A file of virtual datasets over the files of a dataset.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <chunkio/dataset.hpp>

namespace chunkio::h5 {

/// One file that is linked.
struct LinkedFile {
  std::string path = {};  ///< Relative to the folder of the link.
  std::int64_t num_rows = 0;
};

/// Writes it into the empty file `fd`. Takes Library::lock(). Does not sync.
/// \param dataset  of several files, as a whole.
/// \param files    those, in the order of their rows.
/// \param pattern  what names all of them, relative likewise.
/// \throws Error hdf5_failed, io_failed, no_space.
void write_link(int fd, const std::string& path, const Dataset::Impl& dataset,
                std::span<const LinkedFile> files, const std::string& pattern);

}  // namespace chunkio::h5
