#include "base/shard_names.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

namespace chunkio {
namespace base {
namespace {

constexpr std::string_view kOf = "-of-";

std::string padded(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

[[noreturn]] void refuse_count(const std::string& count) {
  throw Error(ErrorCode::invalid_argument, "a dataset has 1 to " + std::to_string(kMaxShards) +
                                               " files (shards), not " + count +
                                               "; choose another number");
}

std::size_t start_of_name(const std::string& path) { return path.rfind('/') + 1; }  // npos: 0

}  // namespace

std::optional<ShardPattern> ShardPattern::parse(const std::string& path) {
  const std::size_t star = path.rfind('*');
  if (star == std::string::npos || star < start_of_name(path) ||
      path.compare(star + 1, kOf.size(), kOf) != 0) {
    return std::nullopt;
  }
  const std::size_t begin = star + 1 + kOf.size();
  const std::size_t end = std::min(path.find_first_not_of("0123456789", begin), path.size());
  if (begin == end) return std::nullopt;
  ShardPattern pattern{
      .before = path.substr(0, star), .after = path.substr(end), .digits = end - begin};
  const auto [stop, status] =
      std::from_chars(path.data() + begin, path.data() + end, pattern.count);
  if (status != std::errc() || pattern.count < 1 || pattern.count > kMaxShards) {
    refuse_count(path.substr(begin, end - begin));
  }
  return pattern;
}

ShardPattern ShardPattern::beside(const std::string& path, std::int64_t count) {
  if (count < 1 || count > kMaxShards) refuse_count(std::to_string(count));
  const std::size_t dot = path.rfind('.');
  // A name that begins with its only dot has no extension.
  const std::size_t end =
      dot == std::string::npos || dot <= start_of_name(path) ? path.size() : dot;
  return {.before = path.substr(0, end) + "-", .after = path.substr(end), .count = count};
}

std::string ShardPattern::file(std::int64_t index) const {
  return before + padded(index, digits) + std::string(kOf) + padded(count, digits) + after;
}

std::vector<std::string> ShardPattern::files() const {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(file(i));
  return names;
}

std::string ShardPattern::text() const {
  return before + "*" + std::string(kOf) + padded(count, digits) + after;
}

}  // namespace base

std::string shard_path(const std::string& path, std::int64_t index, std::int64_t count) {
  const base::ShardPattern pattern = base::ShardPattern::beside(path, count);
  if (index < 0 || index >= count) {
    throw Error(ErrorCode::invalid_argument,
                "shards count from 0, so there is no shard " + std::to_string(index) + " of " +
                    std::to_string(count) + "; use 0 to " + std::to_string(count - 1));
  }
  return pattern.file(index);
}

std::string shard_pattern(const std::string& path, std::int64_t count) {
  return base::ShardPattern::beside(path, count).text();
}

}  // namespace chunkio
