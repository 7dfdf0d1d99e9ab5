/// Parses the JSON text of a state: takes its members one by one, each once and of its type.
///
/// States come from outside, so whatever is not exactly a state is refused: text behind a NUL, a
/// name that an object has twice, a member too many. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

namespace chunkio::read {

/// Whose state it is, for messages.
struct StateKind {
  const char* what = "";      ///< "a loader state"
  const char* from = "";      ///< What returns such a state: "a loader".
  std::size_t max_bytes = 0;  ///< What is longer is something else.
};

/// All members throw refusal() where the state has no such member, or one of another type.
class StateMembers {
 public:
  /// \throws Error invalid_argument: `text` is no JSON object, or one of its objects repeats a
  /// name.
  StateMembers(std::string_view text, const StateKind& kind);

  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t lowest,
                                    std::int64_t highest);
  [[nodiscard]] std::uint64_t unsigned_number(const std::string& name);
  [[nodiscard]] bool flag(const std::string& name);
  [[nodiscard]] std::string text(const std::string& name);
  /// As a text again.
  [[nodiscard]] std::string object(const std::string& name);
  /// One of `choices`, by its name.
  template <class Choice, std::size_t n>
  [[nodiscard]] Choice choice(const std::string& name, const std::array<Choice, n>& choices) {
    const std::string wanted = text(name);
    for (const Choice candidate : choices) {
      if (wanted == to_string(candidate)) return candidate;
    }
    throw refusal(quoted(name) + " has a value that is not known");
  }
  /// To be called last.
  void require_none_left() const;

  /// Why the text is not a state, as an invalid_argument to be thrown.
  [[nodiscard]] Error refusal(const std::string& why) const;

 private:
  static std::string quoted(const std::string& name);
  nlohmann::json take(const std::string& name);

  const StateKind kind_;
  nlohmann::json object_;
};

}  // namespace chunkio::read
