/// The text of `h5pack --version`.
#pragma once

#include <string>

namespace h5pack {

/// Versions of h5pack, its libraries and its image formats, a line each. Loads the codecs.
[[nodiscard]] std::string versions_text();

}  // namespace h5pack
