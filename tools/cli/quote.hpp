/// Quotes file names in messages.
#pragma once

#include <string>
#include <string_view>

#include "cli/escape.hpp"

namespace cli {

/// `name` in single quotes, made safe by escape().
[[nodiscard]] inline std::string quote(std::string_view name) { return "'" + escape(name) + "'"; }

}  // namespace cli
