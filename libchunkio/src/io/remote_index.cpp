#include "io/remote_index.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "io/local_file.hpp"

namespace chunkio::io {
namespace {

using json = nlohmann::json;

/// How every index begins.
constexpr std::string_view kBeginning = "{\"chunkio_index\":1,";
/// Of the line that names the objects: some 10^5 of them.
constexpr std::size_t kMaxHeadBytes = std::size_t{32} << 20;
/// What is read in larger pieces is data.
constexpr std::size_t kMaxPieceBytes = std::size_t{64} << 10;

Error no_index(const std::string& path, const std::string& why) {
  return Error(ErrorCode::corrupt_data, path + " " + why + "; make it again with h5pack index",
               "remote_index");
}

/// Where the parts of an object are in the file.
struct Section {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::string digest = {};
};

/// The line that names the objects.
std::string read_head(const LocalFile& file) {
  std::string head;
  std::vector<std::byte> piece(std::size_t{64} << 10);
  while (head.size() < std::min(kMaxHeadBytes, static_cast<std::size_t>(file.size()))) {
    const std::size_t rest = static_cast<std::size_t>(file.size()) - head.size();
    const auto part = std::span(piece).first(std::min(piece.size(), rest));
    file.read_at(static_cast<std::int64_t>(head.size()), part, {});
    head.append(reinterpret_cast<const char*>(part.data()), part.size());
    if (!head.starts_with(kBeginning.substr(0, head.size()))) break;
    const std::size_t end = head.find('\n', head.size() - part.size());
    if (end != std::string::npos) return head.substr(0, end);
  }
  throw no_index(file.name(), "is no index of remote files");
}

/// \throws Error corrupt_data, invalid_argument; json::exception if it is damaged.
Section find_section(const std::string& path, const std::string& head,
                     const ObjectVersion& object) {
  const std::string place = place_digest(object.place);
  auto offset = static_cast<std::int64_t>(head.size()) + 1;
  const json objects = json::parse(head).at("objects");
  for (const json& one : objects) {
    Section section{offset, one.at("part_bytes").get<std::int64_t>(),
                    one.at("digest").get<std::string>()};
    offset += section.bytes;
    if (one.at("place").get<std::string>() != place) continue;
    if (one.at("version").get<std::string>() == object.validator &&
        one.at("bytes").get<std::int64_t>() == object.bytes) {
      return section;
    }
    throw no_index(path, "is an index of another version of " + object.name);
  }
  throw Error(ErrorCode::invalid_argument,
              path + " is an index of other files than " + object.name +
                  "; make one of it with h5pack index",
              "remote_index");
}

template <class Number>
void append_number(std::vector<std::byte>& bytes, Number number) {
  const auto raw = std::as_bytes(std::span(&number, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

std::int64_t number_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
  std::int64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// Parts that are ascending, disjoint and not adjacent.
std::vector<ObjectPart> joined(std::vector<ObjectPart> parts) {
  std::sort(parts.begin(), parts.end(), [](const ObjectPart& a, const ObjectPart& b) {
    return std::pair(a.offset, b.bytes.size()) < std::pair(b.offset, a.bytes.size());
  });
  std::vector<ObjectPart> all;
  for (ObjectPart& part : parts) {
    const std::int64_t end = all.empty() ? -1 : all.back().offset + std::ssize(all.back().bytes);
    if (part.offset > end) {
      all.push_back(std::move(part));
    } else if (const auto known = static_cast<std::size_t>(end - part.offset);
               known < part.bytes.size()) {
      all.back().bytes.insert(all.back().bytes.end(),
                              part.bytes.begin() + static_cast<std::ptrdiff_t>(known),
                              part.bytes.end());
    }
  }
  return all;
}

}  // namespace

std::string place_digest(const std::string& place) {
  const XXH128_hash_t hash = XXH3_128bits(place.data(), place.size());
  return base::digest_text(hash.high64) + base::digest_text(hash.low64);
}

RemoteIndex RemoteIndex::load(const std::string& path, const ObjectVersion& object) {
  const LocalFile file(path);
  const std::string head = read_head(file);
  Section section;
  try {
    section = find_section(path, head, object);
  } catch (const json::exception&) {
    throw no_index(path, "is damaged");
  }
  if (section.bytes < 0 || section.offset > file.size() ||
      section.bytes > file.size() - section.offset) {
    throw no_index(path, "is damaged: it ends early");
  }
  RemoteIndex index;
  index.bytes_.resize(static_cast<std::size_t>(section.bytes));
  file.read_at(section.offset, index.bytes_, {});
  if (base::digest_text(base::digest(index.bytes_)) != section.digest) {
    throw no_index(path, "is damaged: its digest does not match");
  }
  constexpr std::size_t kHeadBytes = 2 * sizeof(std::int64_t);
  for (std::size_t at = 0; at < index.bytes_.size();) {
    if (index.bytes_.size() - at < kHeadBytes) throw no_index(path, "is damaged");
    const std::int64_t offset = number_at(index.bytes_, at);
    const std::int64_t bytes = number_at(index.bytes_, at + sizeof offset);
    at += kHeadBytes;
    if (offset < 0 || bytes <= 0 || bytes > object.bytes || offset > object.bytes - bytes ||
        std::cmp_greater(bytes, index.bytes_.size() - at) ||
        (!index.parts_.empty() && offset <= index.parts_.back().range.end)) {
      throw no_index(path, "is damaged");
    }
    index.parts_.push_back({{offset, offset + bytes}, at});
    at += static_cast<std::size_t>(bytes);
  }
  return index;
}

const RemoteIndex::Part* RemoteIndex::find(const ByteRange& range) const noexcept {
  const auto behind = std::upper_bound(
      parts_.begin(), parts_.end(), range.begin,
      [](std::int64_t begin, const Part& part) { return begin < part.range.begin; });
  if (behind == parts_.begin()) return nullptr;
  const Part& part = *std::prev(behind);
  return range.end <= part.range.end ? &part : nullptr;
}

bool RemoteIndex::holds(const ByteRange& range) const noexcept { return find(range) != nullptr; }

bool RemoteIndex::read(std::int64_t offset, std::span<std::byte> out) const noexcept {
  const Part* const part = find({offset, offset + std::ssize(out)});
  if (part == nullptr) return false;
  std::memcpy(out.data(),
              bytes_.data() + part->at + static_cast<std::size_t>(offset - part->range.begin),
              out.size());
  return true;
}

std::vector<std::byte> encode_index(std::vector<IndexedObject> objects) {
  std::vector<std::byte> all;
  json entries = json::array();
  for (IndexedObject& object : objects) {
    std::vector<std::byte> section;
    for (const ObjectPart& part : joined(std::move(object.parts))) {
      append_number(section, part.offset);
      append_number(section, static_cast<std::int64_t>(part.bytes.size()));
      section.insert(section.end(), part.bytes.begin(), part.bytes.end());
    }
    entries.push_back({{"name", object.version.name},
                       {"place", place_digest(object.version.place)},
                       {"version", object.version.validator},
                       {"bytes", object.version.bytes},
                       {"part_bytes", section.size()},
                       {"digest", base::digest_text(base::digest(section))}});
    all.insert(all.end(), section.begin(), section.end());
  }
  const std::string head = std::string(kBeginning) + "\"objects\":" +
                           entries.dump(-1, ' ', false, json::error_handler_t::replace) + "}\n";
  const auto raw = std::as_bytes(std::span(head));
  all.insert(all.begin(), raw.begin(), raw.end());
  return all;
}

ReadTime RecordingSource::read_at(std::int64_t offset, std::span<std::byte> out,
                                  const std::stop_token& stop) const {
  const ReadTime time = WrappingSource::read_at(offset, out, stop);
  if (out.empty() || out.size() > kMaxPieceBytes) return time;
  const std::lock_guard lock(record_->mutex);
  record_->parts.push_back({offset, {out.begin(), out.end()}});
  return time;
}

std::unique_ptr<const ByteSource> RecordingSource::prefetch(
    std::span<const ByteRange> ranges) const noexcept try {
  std::shared_ptr<const ByteSource> prefetched = source()->prefetch(ranges);
  if (!prefetched) return nullptr;
  return std::unique_ptr<const ByteSource>(new RecordingSource(std::move(prefetched), record_));
} catch (const std::exception&) {
  return nullptr;
}

std::vector<ObjectPart> RecordingSource::parts() const {
  const std::lock_guard lock(record_->mutex);
  return record_->parts;
}

}  // namespace chunkio::io
