#include "chunkbench/json_node.hpp"

#include <cmath>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace bench {
namespace {

std::string one_of(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

JsonNode JsonNode::at(const char* key) const {
  const auto found = object().find(key);
  if (found == value_.end()) fail(child_path(key), "is missing");
  return {*found, child_path(key), file_};
}

std::optional<JsonNode> JsonNode::find(const char* key) const {
  const auto found = object().find(key);
  if (found == value_.end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, child_path(key), file_);
}

std::vector<JsonNode> JsonNode::items() const {
  if (!value_.is_array()) problem("is no list");
  if (value_.size() > kMaxItems) problem("has more than " + std::to_string(kMaxItems) + " entries");
  std::vector<JsonNode> nodes;
  for (std::size_t i = 0; i < value_.size(); ++i) {
    nodes.emplace_back(value_[i], path_ + "[" + std::to_string(i) + "]", file_);
  }
  return nodes;
}

std::vector<JsonNode> JsonNode::items_of(const char* key) const {
  const std::optional<JsonNode> list = find(key);
  return list ? list->items() : std::vector<JsonNode>();
}

double JsonNode::number(double highest) const {
  if (!value_.is_number()) problem("is no number");
  const double number = value_.get<double>();
  if (!(number >= 0 && number <= highest)) {
    problem(highest == 1 ? "is not from 0 to 1" : "is no number that can be (0 or more)");
  }
  return number;
}

double JsonNode::positive() const {
  const double value = number();
  if (value == 0) problem("is not above 0");
  return value;
}

std::int64_t JsonNode::whole(std::int64_t lowest, std::int64_t highest) const {
  // 4.0 is whole, too: other writers of JSON know one kind of number.
  const double number = value_.is_number() ? value_.get<double>() : -1;
  if (!(number >= static_cast<double>(lowest) && number <= static_cast<double>(highest)) ||
      number != std::floor(number)) {
    problem("is no whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  }
  return static_cast<std::int64_t>(number);
}

std::uint64_t JsonNode::seed() const {
  if (!value_.is_number_unsigned()) problem("is no whole number of at most 64 bits");
  return value_.get<std::uint64_t>();
}

bool JsonNode::boolean() const {
  if (!value_.is_boolean()) problem("is neither true nor false");
  return value_.get<bool>();
}

std::string JsonNode::text() const {
  if (!value_.is_string()) problem("is no text");
  auto text = value_.get<std::string>();
  if (text.size() > kMaxTextBytes) {
    problem("is longer than " + std::to_string(kMaxTextBytes) + " bytes");
  }
  return text;
}

std::size_t JsonNode::index_in(std::span<const std::string_view> names) const {
  const std::string name = text();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  problem("is not " + one_of(names));
}

const nlohmann::ordered_json& JsonNode::object() const {
  if (!value_.is_object()) problem("is no object");
  return value_;
}

std::optional<double> JsonNode::number_at(const char* key, double highest) const {
  const std::optional<JsonNode> found = find(key);
  if (!found) return std::nullopt;
  return found->number(highest);
}

std::optional<std::int64_t> JsonNode::whole_at(const char* key, std::int64_t lowest) const {
  const std::optional<JsonNode> found = find(key);
  if (!found) return std::nullopt;
  return found->whole(lowest);
}

std::vector<std::string> JsonNode::texts_at(const char* key) const {
  std::vector<std::string> texts;
  for (const JsonNode& item : items_of(key)) texts.push_back(item.text());
  return texts;
}

std::vector<double> JsonNode::numbers_at(const char* key) const {
  std::vector<double> numbers;
  for (const JsonNode& item : items_of(key)) numbers.push_back(item.number());
  return numbers;
}

std::string JsonNode::child_path(const char* key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void JsonNode::fail(const std::string& path, const std::string& what) const {
  throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                       cli::quote(file_) + " is damaged or no result of chunkbench: " +
                           (path.empty() ? "its outermost value" : cli::escape(path)) + " " + what +
                           "; pass what 'chunkbench sweep --output' wrote");
}

}  // namespace bench
