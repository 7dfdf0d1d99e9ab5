/// Reports as text for people. File and class names come out escaped.
#pragma once

#include <string>

#include <chunkio/inspection.hpp>

#include "h5pack/report/report.hpp"

namespace h5pack {

std::string info_text(const chunkio::Inspection& report, bool colour);
std::string preview_text(const PreviewReport& report);
std::string verify_text(const VerifyReport& report);
std::string export_text(const ExportReport& report);
std::string repack_text(const RepackReport& report);

}  // namespace h5pack
