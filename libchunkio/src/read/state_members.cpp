#include "read/state_members.hpp"

#include <set>
#include <utility>
#include <vector>

namespace chunkio::read {

using nlohmann::json;

StateMembers::StateMembers(std::string_view text, const StateKind& kind) : kind_(kind) {
  if (text.size() > kind_.max_bytes) throw refusal("it is too long");
  // The parser takes NUL for the end of the text.
  if (text.find('\0') != text.npos) throw refusal("it is not a JSON object");
  std::vector<std::set<std::string>> names;  // of the objects that are open
  std::string repeated;
  const auto notice_repetition = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key &&
        !names.back().insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  object_ = json::parse(text, notice_repetition, /*allow_exceptions=*/false);
  if (!object_.is_object()) throw refusal("it is not a JSON object");
  if (!repeated.empty()) throw refusal(quoted(repeated) + " is there twice");
}

std::int64_t StateMembers::number(const std::string& name, std::int64_t lowest,
                                  std::int64_t highest) {
  const json value = take(name);
  const bool fits = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(highest) &&
                    value.get<std::uint64_t>() >= static_cast<std::uint64_t>(lowest);
  if (!fits) {
    throw refusal(quoted(name) + " is not a whole number from " + std::to_string(lowest) + " to " +
                  std::to_string(highest));
  }
  return value.get<std::int64_t>();
}

std::uint64_t StateMembers::unsigned_number(const std::string& name) {
  const json value = take(name);
  if (!value.is_number_unsigned()) {
    throw refusal(quoted(name) + " is not a whole number from 0 to 2^64 - 1");
  }
  return value.get<std::uint64_t>();
}

bool StateMembers::flag(const std::string& name) {
  const json value = take(name);
  if (!value.is_boolean()) throw refusal(quoted(name) + " is not true or false");
  return value.get<bool>();
}

std::string StateMembers::text(const std::string& name) {
  const json value = take(name);
  if (!value.is_string()) throw refusal(quoted(name) + " is not a text");
  return value.get<std::string>();
}

std::string StateMembers::object(const std::string& name) {
  const json value = take(name);
  if (!value.is_object()) throw refusal(quoted(name) + " is not an object");
  return value.dump();
}

void StateMembers::require_none_left() const {
  if (!object_.empty()) throw refusal(quoted(object_.begin().key()) + " is not known");
}

Error StateMembers::refusal(const std::string& why) const {
  return Error(ErrorCode::invalid_argument, std::string("this is not ") + kind_.what + ": " + why +
                                                "; pass one that " + kind_.from + " returned");
}

/// Names come from outside: nothing but plain letters goes into a message.
std::string StateMembers::quoted(const std::string& name) {
  const bool plain = name.size() <= 32 &&
                     name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  return plain ? "'" + name + "'" : std::string("a member");
}

json StateMembers::take(const std::string& name) {
  const auto found = object_.find(name);
  if (found == object_.end()) throw refusal(quoted(name) + " is missing");
  json value = std::move(*found);
  object_.erase(found);
  return value;
}

}  // namespace chunkio::read
