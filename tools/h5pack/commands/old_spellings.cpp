#include "h5pack/commands/old_spellings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "cli/text_layout.hpp"

namespace h5pack {
namespace {

struct Renamed {
  std::string_view commands;  ///< Separated by spaces.
  std::string_view old;       ///< An option, or an option and its value.
  std::string_view now;       ///< Of the option, or of its value.
};

constexpr std::string_view kPack = "folder cifar celeba csv";

constexpr std::array kRenamed{
    Renamed{kPack, "--color", "--channels"},
    Renamed{kPack, "--layout", "--out-layout"},
    Renamed{"append", "--order appended", "stored"},
    Renamed{"preview", "--columns", "--grid-columns"},
    Renamed{"preview", "--rows", "--grid-rows"},
    Renamed{"stream", "--consume-ms", "--step-ms"},
    Renamed{"stream", "--on-error raise", "fail"},
    Renamed{"stream doctor", "--order chunk_shuffled", "chunk-shuffled"},
    Renamed{"stream doctor", "--profile", "--simulate-disk"},
    Renamed{"stream doctor", "--verify first_epoch", "first-epoch"},
    Renamed{"tune", "--color", "--channels"},
    Renamed{"tune", "--cpus", "--threads"},
    Renamed{"tune", "--memory", "--memory-budget"},
    Renamed{"tune", "--profile", "--disk"},
};

bool is_of(std::string_view command, std::string_view commands) {
  while (!commands.empty()) {
    const std::size_t end = std::min(commands.find(' '), commands.size());
    if (commands.substr(0, end) == command) return true;
    commands.remove_prefix(std::min(end + 1, commands.size()));
  }
  return false;
}

const Renamed* renamed_as(std::string_view command, std::string_view old) {
  const auto* const found = std::find_if(
      kRenamed.begin(), kRenamed.end(),
      [&](const Renamed& each) { return each.old == old && is_of(command, each.commands); });
  return found == kRenamed.end() ? nullptr : found;
}

std::string warning(const std::string& old, const std::string& now) {
  return old + " is now " + now + "; version 0.3 will not know the old spelling";
}

}  // namespace

CommandLine with_todays_spellings(std::vector<std::string> arguments) {
  CommandLine line{.arguments = std::move(arguments)};
  // Options before the command take no value.
  const auto command = std::find_if(line.arguments.begin(), line.arguments.end(),
                                    [](const std::string& word) { return !word.starts_with('-'); });
  if (command == line.arguments.end()) return line;
  const std::string name = *command;
  for (auto at = command + 1; at != line.arguments.end() && *at != "--"; ++at) {
    if (!at->starts_with("--")) continue;
    const std::size_t equals = at->find('=');
    const std::string option = at->substr(0, equals);
    if (const Renamed* const renamed = renamed_as(name, option)) {
      at->replace(0, option.size(), renamed->now);
      line.warnings.push_back(warning(option, std::string(renamed->now)));
      continue;
    }
    const auto next = at + 1;
    if (equals == std::string::npos && next == line.arguments.end()) continue;
    std::string& word = equals == std::string::npos ? *next : *at;
    const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
    const std::string old = option + " " + word.substr(begin);
    if (const Renamed* const renamed = renamed_as(name, old)) {
      word.replace(begin, std::string::npos, renamed->now);
      line.warnings.push_back(warning(old, option + " " + std::string(renamed->now)));
    }
  }
  return line;
}

std::string with_todays_names(std::string text) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.commands != kPack) continue;
    text = cli::replaced(std::move(text), '"' + std::string(renamed.old) + '"',
                         '"' + std::string(renamed.now) + '"');
  }
  return text;
}

}  // namespace h5pack
