#include "cli/progress_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace cli {
namespace {

constexpr int kMaxBarColumns = 40;
constexpr int kMinBarColumns = 8;

int percent(const ProgressState& state) {
  // Rounded down, so that 100% is said only when all is done.
  return static_cast<int>(100.0 * static_cast<double>(state.done) /
                          static_cast<double>(std::max<std::int64_t>(state.total, 1)));
}

/// ", 12,345 images/s, 0:03 left, 2 skipped"; unknown parts are omitted.
std::string rate_and_rest(const ProgressState& state) {
  const std::string skipped =
      state.skipped > 0 ? ", " + format_count(state.skipped) + " skipped" : "";
  if (state.done <= 0 || state.seconds <= 0) return skipped;
  const double rate = static_cast<double>(state.done) / state.seconds;
  std::string text = ", " + format_count(std::llround(rate)) + " " + state.unit + "/s";
  const std::int64_t rest = state.total - state.done;
  if (rest > 0) text += ", " + format_duration(static_cast<double>(rest) / rate) + " left";
  return text + skipped;
}

}  // namespace

std::string progress_bar(const ProgressState& state, int columns) {
  std::array<char, 16> share{};
  std::snprintf(share.data(), share.size(), "%3d%%", percent(state));
  const std::string tail = std::string(share.data()) + " " + format_count(state.done) + "/" +
                           format_count(state.total) + " " + state.unit + rate_and_rest(state);
  // The last column stays free: writing it wraps on some terminals.
  const int width = std::max(columns - 1, 0);
  const int room = width - static_cast<int>(state.label.size()) - static_cast<int>(tail.size()) - 4;
  std::string text = state.label + " ";
  if (room >= kMinBarColumns) {
    const int bar = std::min(room, kMaxBarColumns);
    const int filled = std::clamp(percent(state) * bar / 100, 0, bar);
    text += "[" + std::string(static_cast<std::size_t>(filled), '=');
    if (filled < bar) text += ">" + std::string(static_cast<std::size_t>(bar - filled - 1), ' ');
    text += "] ";
  }
  text += tail;
  return text.substr(0, static_cast<std::size_t>(width));
}

std::string progress_line(const ProgressState& state) {
  return state.label + ": " + std::to_string(percent(state)) + "% (" + format_count(state.done) +
         " of " + format_count(state.total) + " " + state.unit + ")" + rate_and_rest(state);
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(std::int64_t count, const std::string& singular) {
  return format_count(count) + " " + singular + (count == 1 ? "" : "s");
}

std::string format_duration(double seconds) {
  // The number must fit, and nobody waits for more than 99 days.
  const auto total = static_cast<std::int64_t>(std::ceil(std::clamp(seconds, 0.0, 8.64e6)));
  std::array<char, 32> buffer{};
  const auto hours = static_cast<int>(total / 3600);
  const auto minutes = static_cast<int>(total / 60 % 60);
  const auto rest = static_cast<int>(total % 60);
  if (hours > 0) {
    std::snprintf(buffer.data(), buffer.size(), "%d:%02d:%02d", hours, minutes, rest);
  } else {
    std::snprintf(buffer.data(), buffer.size(), "%d:%02d", minutes, rest);
  }
  return buffer.data();
}

}  // namespace cli
