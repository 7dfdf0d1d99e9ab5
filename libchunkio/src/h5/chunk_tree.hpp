/// The version-1 B-tree of a chunked dataset, read without libhdf5.
///
/// Problem. libhdf5 1.10 tells where chunks lie one by one, each time from the root of the tree. A
/// node, however, is 3 or 4 KiB and holds up to 64 chunks (HDF5 File Format Specification,
/// III.A.1), so n chunks are listed with n / 58 reads. Only the place of the root has no public
/// function: it is in the layout message of the dataset's object header (IV.A.2.i).
///
/// This is what h5py and libhdf5 write unless they are asked for a later format. The tree has no
/// checksum and comes from anywhere, so it is believed where it can be true only: the levels of
/// nodes fall by one, keys rise from the first leaf to the last, and each node keeps within the
/// keys of its parent. Of a tree, however crafted, no level has more nodes read than the dataset
/// has chunks.
///
/// Pure functions of the bytes; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <chunkio/byte_source.hpp>
#include <chunkio/tensor.hpp>

#include "h5/handle.hpp"

namespace chunkio::h5 {

/// Where a dataset is described.
struct ObjectHeader {
  std::int64_t base = 0;      ///< Of all addresses in the file: its user block.
  std::uint64_t address = 0;  ///< Of the object header, counted from there.
};

/// The tree of a dataset that has one.
struct ChunkTree {
  std::int64_t base = 0;
  std::optional<std::uint64_t> root = {};  ///< Absent: no chunk has storage.
  /// Entries that a node has at most: twice what H5Pget_istore_k() says.
  std::uint32_t node_entries = 64;
};

/// Finds the tree of a dataset.
/// \param chunk  as libhdf5 says.
/// \returns absent if the dataset has another index, or its header cannot be read here: then
///          libhdf5 is asked.
/// \throws Error io_failed.
[[nodiscard]] std::optional<ChunkTree> find_chunk_tree(const ByteSource& bytes,
                                                       const ObjectHeader& header,
                                                       const Shape& chunk,
                                                       std::uint32_t node_entries);
/// The same of a dataset that libhdf5 has opened. Called while Library::lock() is held.
/// \param bytes  of the file. \param path  of it, for messages.
/// \throws Error io_failed, hdf5_failed.
[[nodiscard]] std::optional<ChunkTree> find_chunk_tree(const ByteSource& bytes, const FileId& file,
                                                       hid_t dataset, const Shape& chunk,
                                                       const std::string& path);

/// A chunk in the tree.
struct TreeEntry {
  std::int64_t number = 0;    ///< In the grid, row-major.
  std::uint64_t address = 0;  ///< Counted from ChunkTree::base; not checked.
  std::uint32_t stored_bytes = 0;
  std::uint32_t filter_mask = 0;
};

/// What becomes of pages of a cold file that nodes were in.
enum class NodePages {
  /// Between pages of chunks they would cut the large folios in which the kernel reads those
  /// (decision 009).
  dropped,
  kept,  ///< Another process will read them next.
};

struct ListedTree {
  std::string damage = {};  ///< As a clause; empty: none was found.
  bool outside = false;     ///< Some of it is no part of the grid: it was not looked at.
};

/// Calls visit(entry) for each chunk of the grid that the tree lists, each at most once, about as
/// nodes lie in the file. Chunks outside of the grid are left out. Of a local file several threads
/// read nodes and call `visit`, for different chunks: it must not take Library::lock().
/// \param shape, chunk  of the dataset; the grid has fewer than 2^63 chunks.
/// \returns what is wrong with the tree, if anything is. Nodes that are damaged are left out, so
///          that chunks in them are missing.
/// \throws Error io_failed, and what `visit` throws.
ListedTree list_chunks(const ByteSource& bytes, const ChunkTree& tree, const Shape& shape,
                       const Shape& chunk, const std::function<void(const TreeEntry&)>& visit,
                       NodePages pages = NodePages::dropped);

}  // namespace chunkio::h5
