/// Reports as JSON: one object a line, names as in the text. Bytes that are no UTF-8 become U+FFFD.
#pragma once

#include <string>

#include "h5pack/report/report.hpp"

namespace h5pack {

std::string epoch_json(const StreamSetup& setup, const EpochReport& report);
std::string preview_json(const PreviewReport& report);
std::string verify_json(const VerifyReport& report);
std::string export_json(const ExportReport& report);
std::string repack_json(const RepackReport& report);

}  // namespace h5pack
