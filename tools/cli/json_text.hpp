/// Writes a JSON value on one line.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace cli {

/// `value` on one line, without its end. Names from files and command lines need not be UTF-8, JSON
/// must be: bytes that are not become U+FFFD.
template <class Json>
[[nodiscard]] std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cli
