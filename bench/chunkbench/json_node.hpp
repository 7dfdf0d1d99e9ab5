/// A value of an untrusted JSON file and the way to it, so that a check can say where it failed.
///
/// The JSON and the name of the file must outlive the node. Every function throws chunkio::Error
/// corrupt_data, with the file and the way to the value, for what it does not allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

class JsonNode {
 public:
  // Bounds of what is believed, far above what a sweep makes. Whole numbers stay exact as doubles.
  static constexpr std::int64_t kMaxWhole = std::int64_t{1} << 53;
  static constexpr double kMaxNumber = 1e30;
  static constexpr std::size_t kMaxItems = 10'000;
  static constexpr std::size_t kMaxTextBytes = 2'000;

  JsonNode(const nlohmann::ordered_json& value, std::string path, const std::string& file)
      : value_(value), path_(std::move(path)), file_(file) {}

  /// A member that has to be there.
  [[nodiscard]] JsonNode at(const char* key) const;
  /// A member that may be absent or null.
  [[nodiscard]] std::optional<JsonNode> find(const char* key) const;
  [[nodiscard]] std::vector<JsonNode> items() const;
  /// Those of a member that may be absent or null.
  [[nodiscard]] std::vector<JsonNode> items_of(const char* key) const;

  /// 0 or more.
  [[nodiscard]] double number(double highest = kMaxNumber) const;
  [[nodiscard]] double positive() const;
  [[nodiscard]] std::int64_t whole(std::int64_t lowest, std::int64_t highest = kMaxWhole) const;
  [[nodiscard]] std::uint64_t seed() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::size_t index_in(std::span<const std::string_view> names) const;
  [[nodiscard]] const nlohmann::ordered_json& object() const;
  [[nodiscard]] const nlohmann::ordered_json& json() const { return value_; }

  // Members that may be absent or null.
  [[nodiscard]] std::optional<double> number_at(const char* key, double highest = kMaxNumber) const;
  [[nodiscard]] std::optional<std::int64_t> whole_at(const char* key, std::int64_t lowest) const;
  [[nodiscard]] std::vector<std::string> texts_at(const char* key) const;
  [[nodiscard]] std::vector<double> numbers_at(const char* key) const;

  [[noreturn]] void problem(const std::string& what) const { fail(path_, what); }

 private:
  [[nodiscard]] std::string child_path(const char* key) const;
  [[noreturn]] void fail(const std::string& path, const std::string& what) const;

  const nlohmann::ordered_json& value_;
  std::string path_;
  const std::string& file_;
};

}  // namespace bench
