#include "advice_text.hpp"

#include <array>
#include <cstddef>
#include <string_view>

#include "escape.hpp"

namespace h5pack {

std::string with_program_options(std::string advice) {
  struct Name {
    const char* library;
    const char* program;
  };
  static constexpr std::array kNames{
      Name{"num_threads", "--threads"}, Name{"prefetch_depth", "--prefetch"},
      Name{"window_bytes", "--window-bytes"}, Name{"memory_budget", "--memory-budget"},
      Name{"batch_size", "--batch"}, Name{"direct_io", "--direct-io"},
      // Ordinary words but for the sign.
      Name{"resident =", "--resident"}, Name{"verify =", "--verify"}, Name{"order =", "--order"},
      Name{"source =", "--source"}, Name{"labels =", "--label-field"}};
  for (const Name& name : kNames) {
    const std::size_t at = advice.find(name.library);
    if (at == std::string::npos) continue;
    const std::string_view word =
        std::string_view(name.library).substr(0, std::string_view(name.library).find(' '));
    advice.insert(at + word.size(), std::string(" (") + name.program + ")");
  }
  return advice;
}

std::string no_labels_text(const chunkio::DatasetInfo& info) {
  if (info.why_no_labels.empty()) return "none";
  return "none: " + with_program_options(escape(info.why_no_labels));
}

}  // namespace h5pack
