#include "read/loader_state.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>
#include <chunkio/tensor.hpp>

#include "base/access.hpp"
#include "base/digest.hpp"
#include "h5/read_rows.hpp"
#include "h5/shard_set.hpp"
#include "plan/group_samples.hpp"
#include "read/state_members.hpp"

namespace chunkio::read {
namespace {

// Of the order, so that a library that does not know it refuses the state, and those of version 1
// are what they always were.
constexpr const char* kVersionKey = "chunkio_state";
// Far above what to_json() writes; what is longer is something else.
constexpr StateKind kKind{.what = "a loader state", .from = "a loader", .max_bytes = 4096};
// Of the start and of the end of a row.
constexpr std::size_t kFingerprintBytes = 1024;

bool is_digest(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Collects what differs, as "NAME is A in the state and B here".
class Differences {
 public:
  void compare(const char* name, const std::string& in_state, const std::string& here) {
    if (in_state == here) return;
    text_ += (text_.empty() ? "" : ", ");
    text_ += name;
    text_ += " is " + in_state + " in the state and " + here + " here";
  }
  void compare(const char* name, std::int64_t in_state, std::int64_t here) {
    compare(name, std::to_string(in_state), std::to_string(here));
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

void add_number(base::RunningDigest& digest, std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
  }
  digest.add(bytes);
}

void add_text(base::RunningDigest& digest, std::string_view text) {
  add_number(digest, text.size());
  digest.add(std::as_bytes(std::span(text.data(), text.size())));
}

void add_shape(base::RunningDigest& digest, const Shape& shape) {
  add_number(digest, shape.rank());
  for (const std::int64_t dim : shape.dims()) add_number(digest, static_cast<std::uint64_t>(dim));
}

/// The first and the last KiB.
void add_ends(base::RunningDigest& digest, std::span<const std::byte> bytes) {
  const std::size_t part = std::min(bytes.size(), kFingerprintBytes);
  digest.add(bytes.first(part));
  digest.add(bytes.last(part));
}

/// The first, the middle and the last row of a file.
std::array<std::int64_t, 3> some_rows(const Dataset::Impl& file) {
  const std::int64_t num_rows = file.info.num_samples;
  return {0, num_rows / 2, num_rows - 1};
}

/// Where the first, the middle and the last row of a sparse matrix lie, and what they hold.
void add_some_sparse_rows(base::RunningDigest& digest, const Dataset::Impl& file) {
  for (const std::int64_t row : some_rows(file)) {
    const h5::SparsePart part{file.sparse.get(), row, 1, file.info.path};
    const SparseRows rows =
        h5::read_sparse(std::span(&part, 1), *file.info.sparse, file.info.leading.dtype);
    file.check_unchanged();
    for (const Tensor& tensor : {rows.tensor.indptr, rows.tensor.indices, rows.tensor.values}) {
      add_ends(digest, {tensor.data(), tensor.size_bytes()});
    }
  }
}

/// The first and the last KiB of the first, the middle and the last row.
void add_some_rows(base::RunningDigest& digest, const Dataset::Impl& file) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.info.sample_bytes()));
  for (const std::int64_t row : some_rows(file)) {
    h5::read_rows(*file.leading, row, 1, bytes, file.info.path);
    file.check_unchanged();
    add_ends(digest, bytes);
  }
}

void add_some_encoded_rows(base::RunningDigest& digest, const Dataset::Impl& file) {
  for (const std::int64_t row : some_rows(file)) {
    const EncodedImage image = h5::read_encoded(*file.encoded, row, file.info.path);
    file.check_unchanged();
    add_ends(digest, image.bytes);
  }
}

std::string file_fingerprint(const Dataset::Impl& file) {
  const DatasetInfo& info = file.info;
  base::RunningDigest digest;
  add_shape(digest, info.stored.shape);
  add_text(digest, to_string(info.layout));
  add_text(digest, to_string(info.stored.dtype));
  add_shape(digest, info.stored.chunked ? info.stored.chunk_shape : Shape{});
  if (info.format_version) {
    add_text(digest, info.uuid);
    // In files of version 1; the uuid is that of one writing, so the state needs no digest a
    // sample.
    for (const std::uint64_t chunk : info.chunk_digests) add_number(digest, chunk);
    if (!info.has_images() || info.encoded) add_text(digest, info.leading.name);
  } else {
    add_number(digest, static_cast<std::uint64_t>(info.stored_bytes));
    add_text(digest, info.leading.name);
    file.sparse    ? add_some_sparse_rows(digest, file)
    : file.encoded ? add_some_encoded_rows(digest, file)
                   : add_some_rows(digest, file);
  }
  return base::digest_text(digest.value());
}

}  // namespace

std::string to_json(const LoaderState& state) {
  // Ordered, so that the text reads from the place to the order it belongs to.
  const nlohmann::ordered_json object = {{kVersionKey, state.order_version},
                                         {"epoch", state.epoch},
                                         {"step", state.step},
                                         {"seed", state.seed},
                                         {"samples", state.samples},
                                         {"group_samples", state.group_samples},
                                         {"window_groups", state.window_groups},
                                         {"lanes", state.lanes},
                                         {"global_batch", state.global_batch},
                                         {"order", to_string(state.order)},
                                         {"uneven", to_string(state.uneven)},
                                         {"drop_last", state.drop_last},
                                         {"selection", state.selection},
                                         {"fingerprint", state.fingerprint}};
  return object.dump();
}

LoaderState parse_state(std::string_view text) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  StateMembers members(text, kKind);
  const std::int64_t version = members.number(kVersionKey, 0, kMax);
  if (version < 1 || version > plan::kNewestOrderVersion) {
    throw Error(ErrorCode::invalid_argument,
                "the loader state has version " + std::to_string(version) +
                    ", and this library reads versions 1 to " +
                    std::to_string(plan::kNewestOrderVersion) + "; use the library that wrote it");
  }
  LoaderState state;
  state.order_version = version;
  state.epoch = members.number("epoch", 0, kMaxEpoch);
  state.step = members.number("step", 0, kMax);
  state.seed = members.unsigned_number("seed");
  state.samples = members.number("samples", 1, kMax);
  state.group_samples = members.number("group_samples", 1, kMax);
  state.window_groups = members.number("window_groups", 1, kMax);
  state.lanes = members.number("lanes", 1, kMax);
  state.global_batch = members.number("global_batch", 1, kMax);
  state.order = members.choice(
      "order", std::array{OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random});
  state.uneven = members.choice("uneven", std::array{Uneven::pad, Uneven::drop, Uneven::exact});
  state.drop_last = members.flag("drop_last");
  state.selection = members.text("selection");
  if (state.selection != "all" && !is_digest(state.selection)) {
    throw members.refusal("'selection' is neither 'all' nor a digest");
  }
  state.fingerprint = members.text("fingerprint");
  if (!is_digest(state.fingerprint)) throw members.refusal("'fingerprint' is not a digest");
  members.require_none_left();
  return state;
}

void require_same_contents(const LoaderState& state, const std::string& fingerprint,
                           const std::string& path) {
  if (state.fingerprint == fingerprint) return;
  throw Error(ErrorCode::invalid_argument,
              path + ": the loader state is of another file: the fingerprint of its contents is " +
                  state.fingerprint + " in the state and " + fingerprint +
                  " here; open the file that the state was taken from");
}

void require_same_order(const LoaderState& state, const LoaderState& own, const std::string& path) {
  require_same_contents(state, own.fingerprint, path);
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  Differences differences;
  differences.compare("seed", std::to_string(state.seed), std::to_string(own.seed));
  differences.compare("order", std::string(to_string(state.order)),
                      std::string(to_string(own.order)));
  differences.compare("selection of rows", state.selection, own.selection);
  differences.compare("samples", state.samples, own.samples);
  differences.compare("uneven", std::string(to_string(state.uneven)),
                      std::string(to_string(own.uneven)));
  differences.compare("drop_last", flag(state.drop_last), flag(own.drop_last));
  differences.compare("lanes", state.lanes, own.lanes);
  differences.compare("global batch (batch_size * world_size)", state.global_batch,
                      own.global_batch);
  differences.compare("version of the order", state.order_version, own.order_version);
  if (state.order_version == own.order_version) {
    differences.compare("samples of a row group (window_bytes)", state.group_samples,
                        own.group_samples);
    differences.compare("row groups of a window (window_bytes)", state.window_groups,
                        own.window_groups);
  }
  if (differences.text().empty()) return;
  throw Error(ErrorCode::invalid_argument,
              path + ": the loader state is of another order: " + differences.text() +
                  "; use the options that the state was taken with" +
                  (state.lanes != own.lanes ? std::string(". ") + kLanesHint : ""));
}

std::string contents_fingerprint(const Dataset& dataset) {
  const auto files = h5::files_of(internal::Access::impl(dataset));
  if (files.size() == 1) return file_fingerprint(*files.front());
  base::RunningDigest digest;
  for (const auto& file : files) add_text(digest, file_fingerprint(*file));
  return base::digest_text(digest.value());
}

std::string selection_digest(const RowSelection* selection, std::int64_t num_rows) {
  if (selection == nullptr || selection->count() == num_rows) return "all";
  base::RunningDigest digest;
  for (const RowRange& range : selection->ranges()) {
    add_number(digest, static_cast<std::uint64_t>(range.begin));
    add_number(digest, static_cast<std::uint64_t>(range.end));
  }
  return base::digest_text(digest.value());
}

}  // namespace chunkio::read
