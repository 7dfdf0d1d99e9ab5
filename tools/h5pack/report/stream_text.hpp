/// The report of `h5pack stream` as text of at most 80 columns.
#pragma once

#include <string>
#include <vector>

#include "h5pack/report/report.hpp"

namespace h5pack {

/// What is streamed, and how; before the first epoch.
std::string stream_head_text(const StreamSetup& setup, bool colour);
/// One epoch.
std::string epoch_text(const StreamSetup& setup, const EpochReport& report, bool colour);
/// After the last epoch: all of them together if they were several, the source if more is known of
/// it now, what would help, and what was skipped.
/// \param reason_at_first  for the source, before the first epoch.
std::string stream_end_text(const StreamSetup& setup, const EpochReport& total,
                            const std::string& reason_at_first, bool colour);

}  // namespace h5pack
