/// Names that no other file has.
#pragma once

#include <string>

namespace chunkio::base {

/// A random UUID (version 4), such as 0f8fad5b-d9cb-469f-a165-70867728950e.
/// \throws Error io_failed.
[[nodiscard]] std::string random_uuid();

}  // namespace chunkio::base
