/// Going on with a sweep that ended early, if it is the same one.
///
/// Pure functions; thread-safe.
#pragma once

#include <string>

#include "chunkbench/results.hpp"

namespace bench {

/// Takes over what `before` has measured. Cells that failed are pending again.
/// \param name  of the file that `before` came from.
/// \throws chunkio::Error invalid_argument: it is of another sweep; names the first difference.
void continue_from(const Results& before, const std::string& name, Results& now);

}  // namespace bench
