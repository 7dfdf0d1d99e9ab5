#include "cli/help.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

#include "cli/text_layout.hpp"

namespace cli {
namespace {

constexpr std::size_t kColumns = 80;

/// Fits a terminal of 80 columns.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter(const CLI::App& command, std::vector<std::string> examples,
                std::vector<std::string> common)
      : command_(command), examples_(std::move(examples)), common_(std::move(common)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (app != &command_ || common_.empty() || mode != CLI::AppFormatMode::Normal) {
      return CLI::Formatter::make_help(app, std::move(name), mode);
    }
    std::vector<const CLI::Option*> shown;
    for (const std::string& option : common_) shown.push_back(app->get_option(option));
    const auto all = app->get_options([](const CLI::Option* option) {
      return option->nonpositional() && !option->get_group().empty();
    });
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           make_group("Options", false, shown) + "\nAll " + std::to_string(all.size()) +
           " options: " + command_line_of(*app) + " --help-all\n";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_parent() != nullptr) name = command_line_of(*app);
    return CLI::Formatter::make_usage(app, std::move(name));
  }

  std::string make_description(const CLI::App* app) const override {
    std::string text = CLI::Formatter::make_description(app);
    if (app != &command_ || examples_.empty()) return text;
    text += "\nExamples:\n";
    for (const std::string& example : examples_) text += "  " + example + "\n";
    return text + "\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_items_expected_max() == 0) return "";
    const std::string type = option->get_type_name();
    const std::string current = option->get_default_str();
    return (type.empty() ? "" : " " + type) + (current.empty() ? "" : " [" + current + "]") +
           (option->get_required() && !option->get_positional() ? " (required)" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string others =
        joined(option->get_excludes(), "not with ") + joined(option->get_needs(), "needs ");
    // --help-all of a command that has others indents theirs by two.
    return wrap(option->get_description() + others, kColumns - get_column_width() - 2);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return labelled("  " + command->get_name(),
                    wrap(command->get_description(), kColumns - kLabelColumns), false);
  }

  [[nodiscard]] const std::vector<std::string>& examples() const noexcept { return examples_; }

 private:
  /// What is typed for it: "h5pack append OLD folder".
  static std::string command_line_of(const CLI::App& app) {
    const CLI::App* const parent = app.get_parent();
    if (parent == nullptr) return app.get_name();
    std::string line = command_line_of(*parent);
    for (const CLI::Option* option : parent->get_options()) {
      if (option->get_positional()) line += " " + option->get_name(true);
    }
    return line + " " + app.get_name();
  }

  /// " (not with --chunk)".
  static std::string joined(const std::set<CLI::Option*>& options, const std::string& relation) {
    const auto name = [](const CLI::Option* option) { return option->get_name(); };
    return options.empty() ? "" : " (" + relation + cli::joined(options, ", ", name) + ")";
  }

  const CLI::App& command_;
  std::vector<std::string> examples_;
  std::vector<std::string> common_;
};

std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> rows(from.size() + 1,
                                             std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const bool same = from[i - 1] == to[j - 1];
      rows[i][j] =
          std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[from.size()][to.size()];
}

}  // namespace

void set_help(CLI::App& command, std::vector<std::string> examples,
              std::vector<std::string> common) {
  command.formatter(
      std::make_shared<HelpFormatter>(command, std::move(examples), std::move(common)));
}

std::vector<std::string> examples_of(const CLI::App& command) {
  const auto formatter = std::dynamic_pointer_cast<HelpFormatter>(command.get_formatter());
  return formatter == nullptr ? std::vector<std::string>() : formatter->examples();
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto of_choice = [](char c) {
    return c == '|' || c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (type.find('|') == std::string::npos || !std::all_of(type.begin(), type.end(), of_choice)) {
    return {};
  }
  std::vector<std::string> choices;
  for (std::size_t at = 0; at <= type.size();) {
    const std::size_t end = std::min(type.find('|', at), type.size());
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

std::string most_similar(std::string_view name, const std::vector<std::string>& names) {
  const auto begins = [name](const std::string& other) { return other.starts_with(name); };
  if (std::count_if(names.begin(), names.end(), begins) == 1) {
    return *std::find_if(names.begin(), names.end(), begins);
  }
  std::string best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& other : names) {
    const std::size_t wrong = distance(name, other);
    if (wrong >= least || wrong >= other.size()) continue;
    best = other;
    least = wrong;
  }
  return best;
}

}  // namespace cli
