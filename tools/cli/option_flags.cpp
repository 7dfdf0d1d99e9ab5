#include "cli/option_flags.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

#include "cli/escape.hpp"

namespace cli {
namespace {

struct Flag {
  std::string_view option;
  std::string_view flag;
};

constexpr std::array kFlags{
    Flag{"allow_external", "--allow-external"},
    Flag{"batch_size", "--batch"},
    Flag{"bytes_per_second", "--limit-bandwidth"},
    Flag{"chunk_samples", "--chunk"},
    Flag{"clip", "--clip"},
    Flag{"decode", "--decode"},
    Flag{"direct_io", "--direct-io"},
    Flag{"images", "--images"},
    Flag{"labels", "--label-field"},
    Flag{"layout", "--layout"},
    Flag{"memory_budget", "--memory-budget"},
    Flag{"memory_bytes", "--memory-budget"},
    Flag{"num_threads", "--threads"},
    Flag{"only_labels", "--labels"},
    Flag{"order", "--order"},
    Flag{"overwrite", "--force"},
    Flag{"prefetch_depth", "--prefetch"},
    Flag{"probe", "--trust"},
    Flag{"queue_depth", "--limit-queue"},
    Flag{"remote_cache", "--remote-cache"},
    Flag{"remote_cache_bytes", "--remote-cache-bytes"},
    Flag{"remote_index", "--remote-index"},
    Flag{"remote_requests", "--remote-requests"},
    Flag{"remote_timeout", "--remote-timeout"},
    Flag{"request_seconds", "--limit-latency"},
    // That of DeviceLoader has other values.
    Flag{"resident = host", "--resident host"},
    Flag{"resume", "--resume"},
    Flag{"rows", "--rows"},
    Flag{"scale", "--scale"},
    Flag{"source", "--source"},
    Flag{"verify", "--verify"},
    Flag{"window_bytes", "--window-bytes"},
};

/// Or of a path, or of a flag.
bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/';
}

/// Where the last whole `word` of a text ends, or npos. The last, since a file's name stands before
/// what is said of it.
std::size_t end_of_last(std::string_view text, std::string_view word) {
  std::size_t from = std::string_view::npos;
  while (true) {
    const std::size_t at = text.rfind(word, from);
    if (at == std::string_view::npos) return at;
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_word(text[at - 1])) && (end == text.size() || !is_of_word(text[end]))) {
      return end;
    }
    if (at == 0) return std::string_view::npos;
    from = at - 1;
  }
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

}  // namespace

std::string flag_of(std::string_view setting) {
  for (const std::string_view option : {setting, first_word(setting)}) {
    const auto* const found = std::find_if(kFlags.begin(), kFlags.end(),
                                           [&](const Flag& flag) { return flag.option == option; });
    if (found == kFlags.end()) continue;
    constexpr std::string_view kIs = " = ";
    const std::size_t is = setting.find(kIs);
    std::string flag(found->flag);
    if (option.size() < setting.size() && is != std::string_view::npos) {
      std::string value(setting.substr(is + kIs.size()));
      // Their values are words, which the command line writes with dashes.
      if (option == "order" || option == "verify")
        std::replace(value.begin(), value.end(), '_', '-');
      if (value != "true") flag += " " + value;
    }
    return flag;
  }
  return {};
}

std::string with_flag(std::string text, std::string_view setting) {
  const std::string flag = flag_of(setting);
  if (flag.empty()) return text;
  // Behind the setting as it stands, with its value; else behind the option alone.
  const std::size_t end = end_of_last(text, setting);
  if (end != std::string::npos) return text.insert(end, " (" + flag + ")");
  const std::size_t name_end = end_of_last(text, first_word(setting));
  if (name_end == std::string::npos) return text;
  return text.insert(name_end, " (" + std::string(first_word(flag)) + ")");
}

std::string with_flags(const chunkio::Error& error,
                       const std::function<bool(const std::string& flag)>& accepted) {
  std::string text = error.what();
  for (const std::string_view setting : error.options()) {
    const std::string flag = flag_of(setting);
    if (!flag.empty() && (!accepted || accepted(std::string(first_word(flag))))) {
      text = with_flag(std::move(text), setting);
    }
  }
  return text;
}

std::string why_no_labels(const chunkio::DatasetInfo& info) {
  const std::string why = escape(info.why_no_labels);
  return why.find("set labels = ") == std::string::npos ? why : with_flag(why, "labels");
}

std::string no_labels_text(const chunkio::DatasetInfo& info) {
  const std::string why = why_no_labels(info);
  return why.empty() ? "none" : "none: " + why;
}

std::string with_flag(const chunkio::Suggestion& suggestion) {
  return with_flag(suggestion.text, suggestion.option);
}

}  // namespace cli
