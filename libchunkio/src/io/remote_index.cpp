#include "io/remote_index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "base/file_number.hpp"
#include "io/local_file.hpp"

namespace chunkio::io {
namespace {

using json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "index files are little-endian");

/// How every index file begins.
constexpr std::string_view kBeginning = "{\"chunkio_index\":1,\"head_bytes\":";
/// The first line is shorter.
constexpr std::int64_t kFirstLine = 100;
/// Of all lines behind it: those of some 100,000 objects.
constexpr std::int64_t kMaxHeadBytes = std::int64_t{32} << 20;

Error no_index(const std::string& path, const std::string& why) {
  return Error(ErrorCode::corrupt_data, path + " " + why + "; make it again with h5pack index",
               "remote_index");
}
Error damaged(const std::string& path) { return no_index(path, "is damaged"); }

/// Up to so many bytes: as many as there are.
std::string read_text(const LocalFile& file, std::int64_t offset, std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(std::min(bytes, file.size() - offset)), '\0');
  file.read_at(offset, std::as_writable_bytes(std::span(text)), {});
  return text;
}

/// A member of a line that is a number from 0 to `most`. \throws Error corrupt_data.
std::int64_t number_of(const json& line, const char* name, std::int64_t most,
                       const std::string& path) {
  const auto member = line.find(name);
  if (member == line.end() || !member->is_number_integer()) throw damaged(path);
  const auto number = member->get<std::int64_t>();
  if (number < 0 || number > most) throw damaged(path);
  return number;
}
std::string text_of(const json& line, const char* name, const std::string& path) {
  const auto member = line.find(name);
  if (member == line.end() || !member->is_string()) throw damaged(path);
  return member->get<std::string>();
}
json parsed(std::string_view line, const std::string& path) {
  json object = json::parse(line, nullptr, false);
  if (!object.is_object()) throw damaged(path);
  return object;
}

/// What is said of the objects, and where their parts begin in the file.
struct Head {
  std::string lines = {};
  std::int64_t parts_begin = 0;
};

/// \throws Error corrupt_data.
Head read_head(const LocalFile& file) {
  const std::string first = read_text(file, 0, kFirstLine);
  if (!first.starts_with(kBeginning)) {
    throw no_index(file.name(), "is no index file of remote files");
  }
  const std::size_t end = first.find('\n');
  if (end == std::string::npos) throw damaged(file.name());
  const auto begin = static_cast<std::int64_t>(end) + 1;
  const std::int64_t bytes = number_of(parsed(first.substr(0, end), file.name()), "head_bytes",
                                       std::min(kMaxHeadBytes, file.size() - begin), file.name());
  return {read_text(file, begin, bytes), begin + bytes};
}

/// The line of an object. \throws Error corrupt_data, invalid_argument.
json find_line(const std::string& path, const std::string& lines, const ObjectVersion& object) {
  const std::size_t at = lines.find("\"place\":\"" + base::long_digest_text(object.place) + '"');
  if (at == std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                path + " is an index file of other files than " + object.name +
                    "; make one of it with h5pack index",
                "remote_index");
  }
  const std::size_t begin = lines.rfind('\n', at) + 1;  // 0 in the first line
  json line = parsed(std::string_view(lines).substr(begin, lines.find('\n', at) - begin), path);
  if (text_of(line, "version", path) != object.validator ||
      number_of(line, "bytes", std::numeric_limits<std::int64_t>::max(), path) != object.bytes) {
    throw no_index(path, "is an index file of another version of " + object.name);
  }
  return line;
}

void append_number(std::vector<std::byte>& bytes, std::int64_t number) {
  const auto raw = std::as_bytes(std::span(&number, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
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

RemoteIndex RemoteIndex::load(const std::string& path, const ObjectVersion& object) {
  const LocalFile file(path);
  const Head head = read_head(file);
  const json line = find_line(path, head.lines, object);
  const std::int64_t begin =
      head.parts_begin + number_of(line, "parts_at", file.size() - head.parts_begin, path);
  RemoteIndex index;
  index.bytes_.resize(
      static_cast<std::size_t>(number_of(line, "part_bytes", file.size() - begin, path)));
  file.read_at(begin, index.bytes_, {});
  if (base::digest_text(base::digest(index.bytes_)) != text_of(line, "digest", path)) {
    throw damaged(path);
  }
  constexpr std::size_t kNumbers = 2 * sizeof(std::int64_t);
  for (std::size_t at = 0; at < index.bytes_.size();) {
    if (index.bytes_.size() - at < kNumbers) throw damaged(path);
    const auto offset = static_cast<std::int64_t>(base::number_at<std::uint64_t>(index.bytes_, at));
    const auto bytes =
        static_cast<std::int64_t>(base::number_at<std::uint64_t>(index.bytes_, at + sizeof offset));
    at += kNumbers;
    if (offset < 0 || bytes <= 0 || bytes > object.bytes || offset > object.bytes - bytes ||
        std::cmp_greater(bytes, index.bytes_.size() - at) ||
        (!index.parts_.empty() && offset <= index.parts_.back().range.end)) {
      throw damaged(path);
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
  std::string lines;
  std::vector<std::byte> parts;
  for (IndexedObject& object : objects) {
    const std::size_t begin = parts.size();
    for (const ObjectPart& part : joined(std::move(object.parts))) {
      append_number(parts, part.offset);
      append_number(parts, std::ssize(part.bytes));
      parts.insert(parts.end(), part.bytes.begin(), part.bytes.end());
    }
    const auto own = std::span<const std::byte>(parts).subspan(begin);
    const json line = {{"name", object.version.name},
                       {"place", base::long_digest_text(object.version.place)},
                       {"version", object.version.validator},
                       {"bytes", object.version.bytes},
                       {"parts_at", begin},
                       {"part_bytes", own.size()},
                       {"digest", base::digest_text(base::digest(own))}};
    lines += line.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  }
  if (std::cmp_greater(lines.size(), kMaxHeadBytes)) {
    throw Error(ErrorCode::invalid_argument, "an index file cannot be of " +
                                                 std::to_string(objects.size()) +
                                                 " files; make one of each part of them");
  }
  const std::string head = std::string(kBeginning) + std::to_string(lines.size()) + "}\n" + lines;
  const auto raw = std::as_bytes(std::span(head));
  parts.insert(parts.begin(), raw.begin(), raw.end());
  return parts;
}

}  // namespace chunkio::io
