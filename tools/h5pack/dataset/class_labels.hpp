/// Translates between labels and class names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// The name of a class; absent if it has none.
[[nodiscard]] std::optional<std::string> class_name(std::span<const std::string> names,
                                                    std::int64_t label);

/// The labels that `names` stand for. A name is a class name of the file or, if there is no such
/// class, a number. So a class that is called "10" is meant by 10 even if its label is another.
/// \throws chunkio::Error invalid_argument: neither. The message has class names that are close,
///         else the first ones.
[[nodiscard]] std::vector<std::int64_t> labels_of(const chunkio::DatasetInfo& info,
                                                  const std::vector<std::string>& names);

}  // namespace h5pack
