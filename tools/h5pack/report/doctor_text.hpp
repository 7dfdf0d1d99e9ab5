/// The report of `h5pack doctor` as text of at most 80 columns, or as JSON.
#pragma once

#include <string>

#include "h5pack/tune/doctor_run.hpp"

namespace h5pack {

std::string doctor_text(const DoctorReport& report, bool colour);
std::string doctor_json(const DoctorReport& report);

}  // namespace h5pack
