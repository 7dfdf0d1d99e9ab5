#include "h5/chunk_tree.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include <hdf5.h>

#include "base/checked_math.hpp"
#include "base/cpus.hpp"
#include "base/file_number.hpp"
#include "base/run_on_threads.hpp"
#include "h5/error_stack.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"

namespace chunkio::h5 {
namespace {

constexpr std::uint64_t kUndefined = ~std::uint64_t{0};

/// Bytes of the file, by addresses that count from its base.
class AddressedBytes {
 public:
  AddressedBytes(const ByteSource& bytes, std::int64_t base) : bytes_(bytes), base_(base) {}

  /// Where `count` bytes at `address` lie in the file; absent if they do not lie in it.
  [[nodiscard]] std::optional<std::int64_t> offset(std::uint64_t address,
                                                   std::size_t count) const noexcept {
    const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_.size(), 0));
    const auto base = static_cast<std::uint64_t>(base_);
    if (base > size || count > size - base || address > size - base - count) return std::nullopt;
    return static_cast<std::int64_t>(base + address);
  }
  /// \returns false if they do not lie in the file. \throws Error io_failed.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> out) const {
    const auto at = offset(address, out.size());
    if (at && !out.empty()) bytes_.read_at(*at, out, {});
    return at.has_value();
  }

 private:
  const ByteSource& bytes_;
  std::int64_t base_;
};

// ---- The object header ----

constexpr std::uint16_t kLayoutMessage = 8;
constexpr std::uint16_t kContinuationMessage = 16;
/// What libhdf5 writes for a dataset is far less; what is more is left to it.
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHeaderBlocks = 64;

/// A run of messages.
struct HeaderBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// How messages are written.
struct MessageStyle {
  bool version_2 = false;
  bool creation_order = false;  // of version 2

  [[nodiscard]] std::size_t head_bytes() const noexcept {
    return version_2 ? (creation_order ? 6 : 4) : 8;
  }
};

/// The data of the layout message, looked for through all blocks of the header; empty if there is
/// none that can be read.
std::vector<std::byte> find_layout(const AddressedBytes& file, HeaderBlock first,
                                   const MessageStyle& style) {
  std::vector<HeaderBlock> blocks{first};
  for (std::size_t i = 0; i < blocks.size() && blocks.size() <= kMaxHeaderBlocks; ++i) {
    if (blocks[i].bytes > kMaxHeaderBytes) return {};
    std::vector<std::byte> block(static_cast<std::size_t>(blocks[i].bytes));
    if (!file.read(blocks[i].address, block)) return {};
    std::span<const std::byte> messages = block;
    if (style.version_2 && i > 0) {  // a continuation block has a signature and a checksum
      if (block.size() < 8 || std::memcmp(block.data(), "OCHK", 4) != 0) return {};
      messages = messages.subspan(4, messages.size() - 8);
    }
    const std::size_t head = style.head_bytes();
    for (std::size_t at = 0; at + head <= messages.size();) {
      const auto type = style.version_2 ? base::number_at<std::uint8_t>(messages, at)
                                        : base::number_at<std::uint16_t>(messages, at);
      const std::size_t size =
          base::number_at<std::uint16_t>(messages, at + (style.version_2 ? 1 : 2));
      at += head;
      if (size > messages.size() - at) return {};
      const auto data = messages.subspan(at, size);
      at += size;
      if (type == kLayoutMessage) return {data.begin(), data.end()};
      if (type == kContinuationMessage) {
        if (size < 16) return {};
        blocks.push_back(
            {base::number_at<std::uint64_t>(data, 0), base::number_at<std::uint64_t>(data, 8)});
      }
    }
  }
  return {};
}

/// The layout message of the object header at `address`; empty if it cannot be read here.
std::vector<std::byte> layout_of(const AddressedBytes& file, std::uint64_t address) {
  std::array<std::byte, 34> head{};  // the longest one: that of version 2 with times and phases
  if (!file.read(address, head)) return {};
  if (base::number_at<std::uint8_t>(head, 0) == 1) {
    return find_layout(file, {address + 16, base::number_at<std::uint32_t>(head, 8)}, {});
  }
  if (std::memcmp(head.data(), "OHDR\2", 5) != 0) return {};
  const auto flags = base::number_at<std::uint8_t>(head, 5);
  std::size_t at = 6;
  if ((flags & 0x20U) != 0) at += 16;  // times
  if ((flags & 0x10U) != 0) at += 4;   // phases of attribute storage
  std::uint64_t bytes = 0;
  const std::size_t width = std::size_t{1} << (flags & 3U);
  for (std::size_t i = 0; i < width; ++i) {
    bytes |= std::uint64_t{base::number_at<std::uint8_t>(head, at + i)} << (8 * i);
  }
  return find_layout(file, {address + at + width, bytes},
                     {.version_2 = true, .creation_order = (flags & 4U) != 0});
}

// ---- The tree ----

constexpr std::size_t kNodeHeadBytes = 24;
/// Where pages are larger, nodes may seem to lie among chunks in memory; then theirs are kept.
constexpr std::int64_t kPageBytes = 4096;
/// Of a root. A tree of 2^63 chunks, in nodes that are half full, has 12 levels.
constexpr std::size_t kMaxLevel = 32;

/// A source that asks for so many bytes at a time waits long for each request.
constexpr std::int64_t kDearRequest = std::int64_t{2} << 20;
/// Of two requests each: 16 MiB of a file on a server. A parent is written when the one before is
/// full, a little behind the leaves that it takes over.
constexpr std::int64_t kHeldSteps = 4;

/// A local file with more in a level has them read by several threads. Fewer take no time.
constexpr std::size_t kManyNodes = 256;
/// A thread asks for so many at a time. Twice as many keep a disk no busier.
constexpr std::size_t kNodesAtOnce = 64;

/// A node to be read, and the numbers of chunks that may be in it: [begin, end).
struct Node {
  std::uint64_t address = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// What some nodes of a level say.
struct Found {
  std::vector<Node> children = {};
  std::string damage = {};       ///< Of the first damaged node; empty: there is none.
  std::uint64_t damaged_at = 0;  ///< Its address.
  bool outside = false;          ///< Some of the tree is no part of the grid.

  void note(std::uint64_t address, const std::string& wrong) {
    if (wrong.empty() || (!damage.empty() && address >= damaged_at)) return;
    damage = wrong;
    damaged_at = address;
  }
  void add(const Found& other) {
    children.insert(children.end(), other.children.begin(), other.children.end());
    note(other.damaged_at, other.damage);
    outside = outside || other.outside;
  }
};

using Visit = std::function<void(const TreeEntry&)>;

/// Reads nodes one after the other, gives the chunks of leaves to a visitor and keeps what it
/// found. Not thread-safe: each thread has a copy.
class NodeReader {
 public:
  NodeReader(const ChunkTree& tree, const Shape& shape, const Shape& chunk, const Visit& visit)
      : node_entries_(tree.node_entries),
        rank_(shape.rank()),
        key_bytes_(8 + 8 * (rank_ + 1)),
        node_(kNodeHeadBytes + (tree.node_entries + std::size_t{1}) * key_bytes_ +
              tree.node_entries * std::size_t{8}),
        visit_(&visit) {
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      chunk_[axis] = static_cast<std::uint64_t>(chunk[axis]);
      grid_[axis] = static_cast<std::uint64_t>(base::ceil_divide(shape[axis], chunk[axis]));
      num_chunks_ *= static_cast<std::int64_t>(grid_[axis]);
    }
  }

  /// Of the grid.
  [[nodiscard]] std::int64_t num_chunks() const noexcept { return num_chunks_; }

  /// The size of a node in the file.
  [[nodiscard]] std::size_t node_bytes() const noexcept { return node_.size(); }

  /// \param level  of the node; absent: it is the root, and says so.
  void read(const AddressedBytes& file, const Node& node, std::optional<std::size_t>& level) {
    if (file.read(node.address, node_)) {
      found_.note(node.address, parse(node, level));
    } else {
      found_.note(node.address, "lies outside of the file");
    }
  }
  /// The same of a node that is in memory.
  void read(std::span<const std::byte> bytes, const Node& node, std::optional<std::size_t>& level) {
    std::memcpy(node_.data(), bytes.data(), node_.size());
    found_.note(node.address, parse(node, level));
  }

  /// What was found since this was called last.
  [[nodiscard]] Found take_found() { return std::exchange(found_, {}); }

 private:
  /// Gives the chunks of a leaf to the visitor, or keeps the children of another node.
  /// \param level  of the node; absent: it is the root.
  /// \returns what is wrong with the node, as a clause.
  [[nodiscard]] std::string parse(const Node& node, std::optional<std::size_t>& level) {
    if (std::memcmp(node_.data(), "TREE\1", 5) != 0) return "is no node of an index of chunks";
    const std::size_t own_level = base::number_at<std::uint8_t>(node_, 5);
    if (level.value_or(own_level) != own_level || own_level > kMaxLevel) {
      return "is of level " + std::to_string(own_level);
    }
    level = own_level;
    const std::size_t entries = base::number_at<std::uint16_t>(node_, 6);
    if (entries > node_entries_) {
      return "has " + std::to_string(entries) + " entries of at most " +
             std::to_string(node_entries_);
    }
    return own_level == 0 ? read_leaf(node, entries) : read_inner(node, entries);
  }

  [[nodiscard]] std::string read_leaf(const Node& node, std::size_t entries) {
    leaf_.clear();
    std::int64_t least = node.begin;
    for (std::size_t i = 0; i < entries; ++i) {
      const auto bytes = key_at(i);
      const Key key = parse_key(bytes);
      if (!key.begins_chunk || key.number < least) return kWrongKeys;
      if (!key.inside) {
        found_.outside = true;
        continue;
      }
      if (key.number >= node.end) return kWrongKeys;
      least = key.number + 1;
      leaf_.push_back({.number = key.number,
                       .address = child_at(i),
                       .stored_bytes = base::number_at<std::uint32_t>(bytes, 0),
                       .filter_mask = base::number_at<std::uint32_t>(bytes, 4)});
    }
    for (const TreeEntry& entry : leaf_) (*visit_)(entry);
    return {};
  }

  [[nodiscard]] std::string read_inner(const Node& node, std::size_t entries) {
    std::vector<Node>& children = found_.children;
    const std::size_t before = children.size();
    std::int64_t begin = end_before(key_at(0));
    if (entries > 0 && begin < node.begin) return kWrongKeys;
    for (std::size_t i = 0; i < entries; ++i) {
      const std::int64_t end = end_before(key_at(i + 1));
      // The last key of the last child lies beyond the grid, or beyond that of its parent.
      if (end < begin || (i + 1 < entries && end > node.end)) {
        children.resize(before);
        return kWrongKeys;
      }
      const Node child{child_at(i), begin, std::min(end, node.end)};
      if (child.begin < child.end) {
        children.push_back(child);
      } else {
        found_.outside = true;
      }
      begin = end;
    }
    return {};
  }

  [[nodiscard]] std::span<const std::byte> key_at(std::size_t i) const {
    return std::span(node_).subspan(kNodeHeadBytes + i * (key_bytes_ + 8), key_bytes_);
  }
  [[nodiscard]] std::uint64_t child_at(std::size_t i) const {
    return base::number_at<std::uint64_t>(node_,
                                          kNodeHeadBytes + i * (key_bytes_ + 8) + key_bytes_);
  }

  /// What a key says.
  struct Key {
    /// Of the chunk that it names; if that lies outside of the grid, of the next one that does not,
    /// so that numbers rise as keys do.
    std::int64_t number = 0;
    bool inside = true;        ///< The grid.
    bool begins_chunk = true;  ///< It is the place of the first element of a chunk.
    std::uint64_t in_element = 0;
  };
  [[nodiscard]] Key parse_key(std::span<const std::byte> bytes) const {
    Key key{.in_element = base::number_at<std::uint64_t>(bytes, 8 + 8 * rank_)};
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      const auto place = base::number_at<std::uint64_t>(bytes, 8 + 8 * axis);
      // Mostly chunks are whole rows: a division costs more than all else here.
      std::uint64_t coord = place == 0 ? 0 : place / chunk_[axis];
      key.begins_chunk = key.begins_chunk && coord * chunk_[axis] == place;
      if (key.inside) {
        key.inside = coord < grid_[axis];
        coord = std::min(coord, grid_[axis]);
      } else {
        coord = 0;
      }
      key.number =
          key.number * static_cast<std::int64_t>(grid_[axis]) + static_cast<std::int64_t>(coord);
    }
    key.begins_chunk = key.begins_chunk && key.in_element == 0;
    return key;
  }

  /// The number of the first chunk that does not lie before a key. The last key of a tree may be
  /// that of its last chunk, with a place behind the first byte of an element.
  [[nodiscard]] std::int64_t end_before(std::span<const std::byte> bytes) const {
    const Key key = parse_key(bytes);
    return key.number + (key.inside && key.in_element != 0 ? 1 : 0);
  }

  static constexpr const char* kWrongKeys = "has keys that do not rise from one chunk to the next";

  std::uint32_t node_entries_;
  std::size_t rank_;
  std::size_t key_bytes_;
  std::array<std::uint64_t, Shape::kMaxRank> chunk_{};
  std::array<std::uint64_t, Shape::kMaxRank> grid_{};
  std::int64_t num_chunks_ = 1;
  std::vector<std::byte> node_;  // the one that is being read
  std::vector<TreeEntry> leaf_;
  const Visit* visit_;
  Found found_;
};

class Walk {
 public:
  Walk(const ByteSource& bytes, const ChunkTree& tree, const Shape& shape, const Shape& chunk,
       const Visit& visit, NodePages pages)
      : bytes_(bytes),
        file_(bytes, tree.base),
        tree_(tree),
        reader_(tree, shape, chunk, visit),
        node_bytes_(reader_.node_bytes()),
        local_(io::as_local_file(bytes)),
        pages_(pages) {}

  ListedTree run() {
    ListedTree listed;
    if (!tree_.root) return listed;
    std::vector<Node> nodes{{*tree_.root, 0, reader_.num_chunks()}};
    std::optional<std::size_t> level;
    // Level by level, as they lie in the file, so that storage that is far away merges requests.
    while (!nodes.empty()) {
      std::sort(nodes.begin(), nodes.end(), lies_before);
      const bool swept = level == 1 && are_among_leaves(nodes) && !are_kept(nodes);
      Found found = swept ? sweep(nodes) : read_level(nodes, level);
      if (listed.damage.empty() && !found.damage.empty()) {
        listed.damage = "its node at byte " +
                        std::to_string(static_cast<std::uint64_t>(tree_.base) + found.damaged_at) +
                        " " + found.damage;
      }
      listed.outside = listed.outside || found.outside;
      if (!level || *level == 0) break;
      level = *level - 1;
      nodes = std::move(found.children);
    }
    return listed;
  }

 private:
  static bool lies_before(const Node& a, const Node& b) noexcept { return a.address < b.address; }

  /// \param level  of the nodes; absent: there is one, the root, and it says so.
  [[nodiscard]] Found read_level(const std::vector<Node>& nodes,
                                 std::optional<std::size_t>& level) {
    const bool forgotten = pages_ == NodePages::dropped && lie_in_cold_file(nodes);
    if (level && local_ != nullptr && nodes.size() > kManyNodes) {
      return read_on_threads(nodes, *level, forgotten);
    }
    const auto through = prefetch(nodes);
    const AddressedBytes file(through != nullptr ? *through : bytes_, tree_.base);
    for (const Node& node : nodes) reader_.read(file, node, level);
    if (forgotten) forget(nodes);
    return reader_.take_found();
  }

  /// Each thread asks for some nodes, reads those that it asked for before, and goes on with the
  /// next: one alone is slower than a disk in asking for so little at a time, and in reading.
  [[nodiscard]] Found read_on_threads(std::span<const Node> nodes, std::size_t level,
                                      bool forgotten) const {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;  // guards `all`
    Found all;
    base::run_on_threads(base::default_threads(), [&](std::int64_t, const std::stop_token& stop) {
      NodeReader reader = reader_;
      std::optional<std::size_t> own_level = level;
      std::span<const Node> asked;
      while (!stop.stop_requested()) {
        const std::size_t begin = std::min(next.fetch_add(kNodesAtOnce), nodes.size());
        const auto ahead = nodes.subspan(begin, std::min(kNodesAtOnce, nodes.size() - begin));
        static_cast<void>(prefetch(ahead));
        for (const Node& node : asked) reader.read(file_, node, own_level);
        if (forgotten) forget(asked);
        if (ahead.empty()) break;
        asked = ahead;
      }
      const std::lock_guard lock(mutex);
      all.add(reader.take_found());
    });
    return all;
  }

  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(std::span<const Node> nodes) const {
    if (nodes.size() < 2) return nullptr;
    std::vector<ByteRange> ranges;
    ranges.reserve(nodes.size());
    for (const Node& node : nodes) {
      if (const auto at = file_.offset(node.address, node_bytes_)) {
        ranges.push_back({*at, *at + static_cast<std::int64_t>(node_bytes_)});
      }
    }
    return bytes_.prefetch(ranges);
  }

  /// Whether what lies behind these nodes of a local file has to be read from its disk. They
  /// themselves may have been read before, by a process that looked at the file first.
  [[nodiscard]] bool lie_in_cold_file(const std::vector<Node>& nodes) const {
    if (local_ == nullptr || nodes.size() < 2) return false;
    // Not the first and the last one: that process read chunks there, too.
    for (const std::size_t quarter : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      const auto at = file_.offset(nodes[nodes.size() * quarter / 4].address, node_bytes_);
      const auto behind = static_cast<std::int64_t>(node_bytes_) + kPageBytes;
      if (!at || io::has_page(local_->fd(), *at + behind)) return false;
    }
    return true;
  }

  /// Drops their pages from the page cache: see NodePages. \pre lie_in_cold_file(nodes), before
  /// they were read.
  void forget(std::span<const Node> nodes) const {
    for (const Node& node : nodes) {
      const auto at = file_.offset(node.address, node_bytes_);
      if (at) io::drop_pages(local_->fd(), *at, *at + static_cast<std::int64_t>(node_bytes_));
    }
  }

  /// Whether no request is needed for any of these. A process that looked at the file before may
  /// have asked for some.
  [[nodiscard]] bool are_kept(const std::vector<Node>& nodes) const {
    return std::ranges::all_of(nodes, [this](const Node& node) {
      const auto at = file_.offset(node.address, node_bytes_);
      if (!at) return false;
      const ByteRange range{*at, *at + static_cast<std::int64_t>(node_bytes_)};
      return bytes_.prefetch({&range, 1}) == nullptr;
    });
  }

  /// Whether parents of leaves lie too far from each other to share requests, and leaves do not:
  /// then requests for leaves bring the parents, too. Only where requests are large, and so dear.
  /// \param parents  as they lie in the file.
  [[nodiscard]] bool are_among_leaves(const std::vector<Node>& parents) const {
    if (bytes_.request_bytes() < kDearRequest || parents.size() < 2) return false;
    if (!file_.offset(parents.back().address, node_bytes_)) return false;
    const std::uint64_t near = static_cast<std::uint64_t>(bytes_.request_bytes()) / 2;
    const std::uint64_t gap =
        (parents.back().address - parents.front().address) / (parents.size() - 1);
    return gap > near && gap / tree_.node_entries < near;
  }

  /// Reads the file once, from the first of these parents on, and their leaves as they come.
  /// \pre are_among_leaves(parents).
  /// \returns as children the leaves that were not in what was held when their parents came.
  [[nodiscard]] Found sweep(const std::vector<Node>& parents) {
    const auto later = [](const Node& a, const Node& b) { return lies_before(b, a); };
    std::priority_queue<Node, std::vector<Node>, decltype(later)> ahead(later);  // leaves
    const std::int64_t step = 2 * bytes_.request_bytes();
    ByteRange held{*file_.offset(parents.front().address, 0), 0};
    held.end = held.begin;
    const ByteRange all{held.begin, bytes_.size()};
    const auto prefetched = bytes_.prefetch({&all, 1});
    const ByteSource& source = prefetched != nullptr ? *prefetched : bytes_;
    std::vector<std::byte> window;
    const auto read_more = [&] {
      if (held.end - held.begin >= kHeldSteps * step) {
        window.erase(window.begin(), window.begin() + step);
        held.begin += step;
      }
      const std::size_t before = window.size();
      const std::int64_t end = std::min(held.end + step, all.end);
      window.resize(before + static_cast<std::size_t>(end - held.end));
      source.read_at(held.end, std::span(window).subspan(before), {});
      held.end = end;
    };
    /// Whether the node is held now, and was read.
    const auto take = [&](const Node& node, std::optional<std::size_t>& level) {
      const auto at = file_.offset(node.address, node_bytes_);
      if (!at || *at < held.begin || *at + static_cast<std::int64_t>(node_bytes_) > held.end) {
        return false;
      }
      reader_.read(std::span(window).subspan(static_cast<std::size_t>(*at - held.begin)), node,
                   level);
      return true;
    };
    Found found;
    std::optional<std::size_t> leaf_level = 0;
    std::optional<std::size_t> parent_level = 1;
    auto parent = parents.begin();
    while (parent != parents.end() || !ahead.empty()) {
      if (!ahead.empty() && take(ahead.top(), leaf_level)) {
        ahead.pop();
      } else if (parent != parents.end() && take(*parent, parent_level)) {
        Found leaves = reader_.take_found();
        for (const Node& leaf : std::exchange(leaves.children, {})) {
          const auto at = file_.offset(leaf.address, node_bytes_);
          if (at && *at >= held.begin) {
            ahead.push(leaf);
          } else {
            found.children.push_back(leaf);
          }
        }
        found.add(leaves);
        ++parent;
      } else {
        read_more();
      }
    }
    found.add(reader_.take_found());
    return found;
  }

  const ByteSource& bytes_;
  AddressedBytes file_;
  const ChunkTree& tree_;
  NodeReader reader_;
  std::size_t node_bytes_;
  const io::LocalFile* local_;  // null: the file lies elsewhere
  NodePages pages_;
};

}  // namespace

std::optional<ChunkTree> find_chunk_tree(const ByteSource& bytes, const ObjectHeader& header,
                                         const Shape& chunk, std::uint32_t node_entries) {
  constexpr std::uint8_t kChunked = 2;
  const std::vector<std::byte> layout =
      layout_of(AddressedBytes(bytes, header.base), header.address);
  const std::size_t rank = chunk.rank();
  // Version 3, class, rank with one axis more for the bytes of an element, address, chunk shape.
  if (layout.size() < 3 + 8 + 4 * (rank + 1)) return std::nullopt;
  if (base::number_at<std::uint8_t>(layout, 0) != 3 ||
      base::number_at<std::uint8_t>(layout, 1) != kChunked ||
      base::number_at<std::uint8_t>(layout, 2) != rank + 1) {
    return std::nullopt;
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (std::cmp_not_equal(base::number_at<std::uint32_t>(layout, 11 + 4 * axis), chunk[axis])) {
      return std::nullopt;
    }
  }
  ChunkTree tree{.base = header.base, .node_entries = node_entries};
  const auto root = base::number_at<std::uint64_t>(layout, 3);
  if (root != kUndefined) tree.root = root;
  return tree;
}

std::optional<ChunkTree> find_chunk_tree(const ByteSource& bytes, const FileId& file, hid_t dataset,
                                         const Shape& chunk, const std::string& path) {
  const char* const action = "inspect the storage of";
  const ListId creation(check_id(H5Fget_create_plist(file.get()), action, path));
  std::size_t address_bytes = 0;
  std::size_t size_bytes = 0;
  unsigned int half_entries = 0;
  hsize_t user_block = 0;
  check_status(H5Pget_sizes(creation.get(), &address_bytes, &size_bytes), action, path);
  check_status(H5Pget_istore_k(creation.get(), &half_entries), action, path);
  check_status(H5Pget_userblock(creation.get(), &user_block), action, path);
  if (address_bytes != 8 || size_bytes != 8 || half_entries < 1 || half_entries > 4096) return {};
  ObjectHeader header{.base = static_cast<std::int64_t>(user_block)};
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  check_status(H5Oget_info3(dataset, &info, H5O_INFO_BASIC), action, path);
  header.address = base::number_at<std::uint64_t>(std::as_bytes(std::span(info.token.__data)), 0);
#else
  H5O_info_t info;
  check_status(H5Oget_info2(dataset, &info, H5O_INFO_BASIC), action, path);
  header.address = info.addr;
#endif
  return find_chunk_tree(bytes, header, chunk, 2 * half_entries);
}

ListedTree list_chunks(const ByteSource& bytes, const ChunkTree& tree, const Shape& shape,
                       const Shape& chunk, const Visit& visit, NodePages pages) {
  return Walk(bytes, tree, shape, chunk, visit, pages).run();
}

}  // namespace chunkio::h5
