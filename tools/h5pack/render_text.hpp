/// Reports as text for people. File and class names come out escaped.
#pragma once

#include <string>

#include "report.hpp"

namespace h5pack {

std::string info_text(const InfoReport& report, bool colour);
std::string preview_text(const PreviewReport& report);

}  // namespace h5pack
