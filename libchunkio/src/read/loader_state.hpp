/// Where a loader stands, as text: what Loader::state() writes and Loader::restore() reads.
///
/// A state names the order it belongs to by everything that the order is a function of
/// (libchunkio/doc/order.md), and the contents of the file by a fingerprint. It holds no path, time
/// or thread count, so a copy of the file on another machine continues it.
///
/// Pure functions, but for contents_fingerprint(), which may read images; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

namespace chunkio::read {

/// For those who come with another number of ranks.
inline constexpr const char* kLanesHint =
    "A run that is to go on with other numbers of ranks is begun with lanes = N, a multiple of all "
    "of them";

/// The last epoch there is. Leaves room for the epochs that are planned ahead.
inline constexpr std::int64_t kMaxEpoch = std::int64_t{1} << 62;

struct LoaderState {
  /// Of the order (libchunkio/doc/order.md): the first version that has the same one.
  std::int64_t order_version = 1;
  std::int64_t epoch = 0;
  /// Global batches handed out in the epoch.
  std::int64_t step = 0;

  std::uint64_t seed = 0;
  std::int64_t samples = 0;        ///< N, of the selection if there is one.
  std::int64_t group_samples = 0;  ///< k.
  std::int64_t window_groups = 0;  ///< W.
  std::int64_t lanes = 0;          ///< V.
  std::int64_t global_batch = 0;   ///< G.
  OrderMode order = OrderMode::chunk_shuffled;
  Uneven uneven = Uneven::pad;
  bool drop_last = false;
  /// Of the rows that are delivered at all: "all", or a digest of which.
  std::string selection = "all";
  std::string fingerprint = {};  ///< Of the contents, see contents_fingerprint().
};

/// One line of JSON, less than 512 bytes.
[[nodiscard]] std::string to_json(const LoaderState& state);

/// \throws Error invalid_argument: `text` is not exactly what to_json() writes for some state, up
///         to white space and the order of its members.
[[nodiscard]] LoaderState parse_state(std::string_view text);

/// \param fingerprint  of the loader's file.
/// \throws Error invalid_argument, naming both fingerprints, if they differ.
void require_same_contents(const LoaderState& state, const std::string& fingerprint,
                           const std::string& path);

/// \param own   the loader's, its place not counting.
/// \param path  of the loader's file, for messages.
/// \throws Error invalid_argument: the order or the contents differ; the message names each
///         difference with both values.
void require_same_order(const LoaderState& state, const LoaderState& own, const std::string& path);

/// The same for files of equal images: XXH3-64 over shape, axis order, element type and chunk
/// shape, with the uuid and chunk digests of a file of our format. Of a third-party one, instead:
/// the stored bytes, the path of the images in the file, and the first and last KiB of the first,
/// the middle and the last image. Of several files: over those of each. That tells files and
/// datasets apart, but not a file from a copy in which only other images were changed in place.
/// Sixteen hexadecimal digits. Costs O(chunks) where there are digests, else reading three images
/// through libhdf5. \throws Error io_failed, hdf5_failed, corrupt_data, if an image of a
/// third-party file cannot be read.
[[nodiscard]] std::string contents_fingerprint(const Dataset& dataset);

/// \param selection  may be null: all rows.
/// \param num_rows   of the file.
/// \return for LoaderState::selection.
[[nodiscard]] std::string selection_digest(const RowSelection* selection, std::int64_t num_rows);

}  // namespace chunkio::read
