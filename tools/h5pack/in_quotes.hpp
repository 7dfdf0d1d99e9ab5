/// File names in messages.
#pragma once

#include <string>
#include <string_view>

#include "escape.hpp"

namespace h5pack {

/// `name` in single quotes, made safe by escape().
[[nodiscard]] inline std::string in_quotes(std::string_view name) {
  return "'" + escape(name) + "'";
}

}  // namespace h5pack
