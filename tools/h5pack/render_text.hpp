/// Reports as text for people. File and class names come out escaped.
#pragma once

#include <string>

#include "report.hpp"

namespace h5pack {

std::string info_text(const InfoReport& report, bool colour);
/// What is streamed and how, and the head of the table of epochs.
std::string stream_head_text(const StreamSetup& setup, bool colour);
/// One row of that table.
std::string epoch_text(const EpochReport& report);
/// The sum of all epochs, where there are several.
std::string all_epochs_text(const EpochReport& total);
std::string preview_text(const PreviewReport& report);

}  // namespace h5pack
