/// Walks a file as far as any of its readers may go, so that what libhdf5 cannot bear shows.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>

#include <chunkio/byte_source.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "h5/chunk_tree.hpp"
#include "h5/dataset_file.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/probe.hpp"
#include "h5/probe_wire.hpp"
#include "h5/source_file.hpp"
#include "io/local_file.hpp"

namespace chunkio::h5 {
namespace {

/// Of one attribute, or of the elements read of one dataset.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
/// Larger chunks take too long to decode.
constexpr hsize_t kMostChunkBytes = hsize_t{64} << 20;
/// Of variable length: they lie in heaps that a reader goes through as a whole.
constexpr hsize_t kMostElements = 4096;

/// libhdf5 may walk the index of so many: that takes no time.
constexpr hsize_t kFewChunks = 1024;
/// Those of Reach::near.
constexpr hsize_t kMostNearChunkBytes = hsize_t{1} << 20;

using AttributeId = UniqueId<&H5Aclose>;

/// Bytes that the process which started this one reads: see probe_wire.hpp.
class AskingSource final : public ByteSource {
 public:
  AskingSource() {
    static_cast<void>(receive_message(STDIN_FILENO, std::as_writable_bytes(std::span(&size_, 1))));
  }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  [[nodiscard]] std::uint64_t version() const override { return 0; }
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token&) const override {
    std::vector<std::byte> reply(1 + static_cast<std::size_t>(kMostAsked));
    while (!out.empty()) {
      const std::size_t bytes = std::min(out.size(), static_cast<std::size_t>(kMostAsked));
      const ProbeRequest request{offset, static_cast<std::int64_t>(bytes)};
      if (!send_message(STDOUT_FILENO, std::as_bytes(std::span(&request, 1))) ||
          receive_message(STDIN_FILENO, reply) != 1 + bytes || reply[0] != std::byte{1}) {
        throw Error(ErrorCode::io_failed, "there are no bytes at " + std::to_string(offset));
      }
      std::memcpy(out.data(), reply.data() + 1, bytes);
      out = out.subspan(bytes);
      offset += static_cast<std::int64_t>(bytes);
    }
    return {};
  }

 private:
  std::string name_ = "-";
  std::int64_t size_ = 0;
};

/// Memory for elements, and what libhdf5 allocated for those of variable length.
class Elements {
 public:
  Elements(hid_t type, hid_t space, std::size_t bytes)
      : type_(type), space_(space), bytes_(bytes, std::byte{0}) {}
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  ~Elements() { H5Dvlen_reclaim(type_, space_, H5P_DEFAULT, bytes_.data()); }

  [[nodiscard]] void* data() noexcept { return bytes_.data(); }

 private:
  hid_t type_;
  hid_t space_;
  std::vector<std::byte> bytes_;
};

/// H5A_operator2_t. What fails is passed over: looking is all that is wanted.
herr_t look_at_attribute(hid_t object, const char* name, const H5A_info_t* /*info*/,
                         void* /*data*/) noexcept {
  try {
    const AttributeId attribute(H5Aopen(object, name, H5P_DEFAULT));
    if (!attribute) return 0;
    const TypeId type(H5Aget_type(attribute.get()));
    const SpaceId space(H5Aget_space(attribute.get()));
    if (!type || !space) return 0;
    const TypeId memory(H5Tget_native_type(type.get(), H5T_DIR_DEFAULT));
    const hssize_t count = H5Sget_simple_extent_npoints(space.get());
    const std::size_t bytes = memory ? H5Tget_size(memory.get()) : 0;
    if (bytes == 0 || count <= 0 || static_cast<std::size_t>(count) > kMostBytes / bytes) return 0;
    Elements elements(memory.get(), space.get(), bytes * static_cast<std::size_t>(count));
    H5Aread(attribute.get(), memory.get(), elements.data());
  } catch (...) {
    return -1;  // memory; no exception may pass through libhdf5's frames
  }
  return 0;
}

/// Reads elements from `first` on along the first axis.
void look_at_elements(hid_t dataset, hid_t type, hid_t space, std::vector<hsize_t> first,
                      hsize_t count) {
  const std::size_t bytes = H5Tget_size(type);
  if (bytes == 0 || bytes > kMostBytes) return;
  std::vector<hsize_t> counts(first.size(), 1);
  if (!counts.empty()) counts[0] = std::min<hsize_t>(count, kMostBytes / bytes);
  if (!counts.empty() && H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr,
                                             counts.data(), nullptr) < 0) {
    return;
  }
  const hsize_t wanted = counts.empty() ? 1 : counts[0];
  const SpaceId memory(H5Screate_simple(1, &wanted, nullptr));
  Elements elements(type, memory.get(), bytes * static_cast<std::size_t>(wanted));
  H5Dread(dataset, type, memory.get(), space, H5P_DEFAULT, elements.data());
}

/// The chunks of a dataset, as its shape says.
struct Chunks {
  hsize_t count = 1;
  hsize_t bytes = 1;                               ///< Of the elements of one.
  std::vector<std::int64_t> dims = {}, part = {};  ///< The shapes of the dataset and of one.
};

hsize_t product(hsize_t a, hsize_t b) noexcept {
  constexpr hsize_t kMost = std::numeric_limits<hsize_t>::max();
  return b != 0 && a > kMost / b ? kMost : a * b;
}

/// Absent if libhdf5 cannot tell.
std::optional<Chunks> chunks_of(hid_t creation, hid_t type, hid_t space, int rank) {
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  if (H5Pget_chunk(creation, rank, chunk.data()) != rank ||
      H5Sget_simple_extent_dims(space, dims.data(), nullptr) != rank) {
    return std::nullopt;
  }
  Chunks chunks{.bytes = H5Tget_size(type)};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis) {
    if (chunk[axis] == 0) return std::nullopt;
    chunks.bytes = product(chunks.bytes, chunk[axis]);
    chunks.count = product(chunks.count, dims[axis] / chunk[axis] + 1);
    chunks.dims.push_back(static_cast<std::int64_t>(dims[axis]));  // negative: beyond 63 bits
    chunks.part.push_back(static_cast<std::int64_t>(chunk[axis]));
  }
  return chunks;
}

/// The file that is walked, as what looks at datasets needs it.
struct WalkedFile {
  const ByteSource& bytes;
  const FileId& id;
  const std::string& path;
  Reach reach;
};

/// Whether the index of many chunks need not be walked by libhdf5, node after node: it is read
/// here, all of it, and sound. Its pages stay for whoever opens the file next.
bool has_sound_tree(const WalkedFile& file, hid_t dataset, const Chunks& chunks) {
  constexpr hsize_t kMostCounted = hsize_t{1} << 62;
  if (chunks.count > kMostCounted || chunks.dims.size() > Shape::kMaxRank) return false;
  if (std::ranges::any_of(chunks.dims, [](std::int64_t dim) { return dim < 0; })) return false;
  const Shape chunk(chunks.part);
  const auto tree = find_chunk_tree(file.bytes, file.id, dataset, chunk, file.path);
  if (!tree) return false;
  const ListedTree listed = list_chunks(
      file.bytes, *tree, Shape(chunks.dims), chunk, [](const TreeEntry&) {}, NodePages::kept);
  return listed.damage.empty() && !listed.outside;
}

void look_at_dataset(const WalkedFile& file, hid_t dataset) {
  const ListId creation(H5Dget_create_plist(dataset));
  if (!creation || H5Pget_layout(creation.get()) == H5D_VIRTUAL) return;
  if (H5Pget_external_count(creation.get()) != 0) return;
  const TypeId type(H5Dget_type(dataset));
  const SpaceId space(H5Dget_space(dataset));
  if (!type || !space) return;
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) return;
  const bool all = file.reach == Reach::all;
  const bool any_length =
      H5Tis_variable_str(type.get()) > 0 || H5Tdetect_class(type.get(), H5T_VLEN) > 0;
  if (H5Pget_layout(creation.get()) == H5D_CHUNKED) {
    const auto chunks = chunks_of(creation.get(), type.get(), space.get(), rank);
    if (!chunks) return;
    const bool few = chunks->count <= kFewChunks;
    if (few || (all && !has_sound_tree(file, dataset, *chunks))) H5Dget_storage_size(dataset);
    if (chunks->bytes > (all ? kMostChunkBytes : kMostNearChunkBytes)) return;
  } else if (all) {
    H5Dget_storage_size(dataset);
  } else if (!any_length) {
    return;
  }
  const TypeId native(H5Tget_native_type(type.get(), H5T_DIR_DEFAULT));
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  if (!native || H5Sget_simple_extent_npoints(space.get()) <= 0 ||
      H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) < 0) {
    return;
  }
  std::vector<hsize_t> place(static_cast<std::size_t>(rank), 0);
  look_at_elements(dataset, native.get(), space.get(), place,
                   any_length ? std::min(dims[0], kMostElements) : 1);
  for (std::size_t axis = 0; axis < place.size(); ++axis) place[axis] = dims[axis] - 1;
  look_at_elements(dataset, native.get(), space.get(), place, 1);
}

}  // namespace
}  // namespace chunkio::h5

void chunkio::walk_file(const std::string& path) {
  if (path == "-") {
    h5::walk_source(std::make_shared<h5::AskingSource>(), h5::Reach::near);
  } else {
    h5::walk_source(std::make_shared<io::LocalFile>(path), h5::Reach::all);
  }
}

void chunkio::h5::walk_source(std::shared_ptr<const ByteSource> source, Reach reach) {
  const auto guard = Library::lock();
  const ByteSource& bytes = *source;
  const std::string& path = bytes.name();
  SourceFile file(std::move(source), External::refused);
  file.open();
  refuse_link(file.id(), path);
  std::vector<DamagedObject> damaged;
  const auto look = [&](hid_t object, const std::string&, H5I_type_t type) {
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, &look_at_attribute, nullptr);
    if (type == H5I_DATASET) look_at_dataset({bytes, file.id(), path, reach}, object);
  };
  visit_objects(file.id(), path, look, damaged);
}
