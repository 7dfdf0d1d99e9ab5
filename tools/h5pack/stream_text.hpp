/// The report of `h5pack stream` as text of at most 80 columns.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"

namespace h5pack {

/// What is streamed, and how; before the first epoch.
std::string stream_head_text(const StreamSetup& setup, bool colour);
/// One epoch.
std::string epoch_text(const StreamSetup& setup, const EpochReport& report, bool colour);
/// After the last epoch: all of them together if they were several, what would help, and what was
/// skipped.
std::string stream_end_text(const StreamSetup& setup, const EpochReport& total, bool colour);

}  // namespace h5pack
