/// Writes completions and manual pages of h5pack to a folder, at build time. They are made from the
/// parser, so that they name the options that the program has.
///
///     write_reference FOLDER
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <chunkio/version.hpp>

#include "cli/help.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/commands/commands.hpp"

namespace h5pack {
namespace {

/// A command that can be typed: "" is the program, "append folder" one below append.
struct Node {
  std::string path = {};
  const CLI::App* app = nullptr;
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<Node> nodes_of(const CLI::App& program) {
  std::vector<Node> nodes{{.app = &program}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const CLI::App* const command : commands_of(*nodes[i].app)) {
      const std::string before = nodes[i].path.empty() ? "" : nodes[i].path + " ";
      nodes.push_back({.path = before + command->get_name(), .app = command});
    }
  }
  return nodes;
}

/// The options of a command; those above it hold there, too.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* const option : app->get_options()) {
      const bool again = std::any_of(options.begin(), options.end(), [&](const auto* known) {
        return known->get_lnames() == option->get_lnames();
      });
      if (!option->get_positional() && !again) options.push_back(option);
    }
  }
  return options;
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool takes_path(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type == "FILE" || type == "DIR" || type == "OUT" || type == "SOURCE";
}

/// Between single quotes of a shell.
std::string in_shell_quotes(const std::string& text, const std::string& quote = "'\\''") {
  return "'" + cli::replaced(text, "'", quote) + "'";
}

// ---- Manual pages ----

/// Text of a manual page: no character of it means anything to troff.
std::string roff(const std::string& text) {
  std::string safe = cli::replaced(cli::replaced(text, "\\", "\\e"), "-", "\\-");
  safe = cli::replaced(safe, "\n", "\n\\&");
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

std::string roff_option(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : spellings(option)) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string text = ".TP\n" + cli::joined(names, ", ");
  if (takes_value(option) && !option.get_type_name().empty()) {
    // Lines may be broken behind each of the choices.
    text += " \\fI" + cli::replaced(roff(option.get_type_name()), "|", "|\\:") + "\\fR";
  }
  text += "\n" + roff(option.get_description());
  if (takes_value(option) && !option.get_default_str().empty()) {
    text += " (default: " + roff(option.get_default_str()) + ")";
  }
  return text + ".\n";
}

std::string roff_positionals(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* const option : command.get_options()) {
    if (!option->get_positional()) continue;
    text += ".TP\n\\fI" + roff(option->get_name(true)) + "\\fR\n" +
            roff(option->get_description()) + ".\n";
  }
  return text;
}

/// Grouped as in the help.
std::string roff_options(const CLI::App& command) {
  std::string text;
  for (const std::string& group : command.get_groups()) {
    std::string options;
    for (const CLI::Option* const option : command.get_options()) {
      if (!option->get_positional() && option->get_group() == group)
        options += roff_option(*option);
    }
    if (!options.empty()) text += (group == "Options" ? "" : ".SS " + roff(group) + "\n") + options;
  }
  return text;
}

std::string manual_page(const CLI::App& program, const CLI::App& command,
                        const std::string& version) {
  const bool whole = &command == &program;
  const std::string name = whole ? "h5pack" : "h5pack-" + command.get_name();
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string text = ".TH " + roff(upper) + " 1 \"\" \"h5pack " + version + "\"\n";
  text += ".SH NAME\n" + roff(name) + " \\- " + roff(command.get_description()) + "\n";
  text += ".SH SYNOPSIS\n\\fBh5pack\\fR ";
  text += whole ? "\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n"
                : "\\fB" + roff(command.get_name()) + "\\fR [\\fIOPTION\\fR]...";
  if (!whole) {
    for (const CLI::Option* const option : command.get_options()) {
      if (option->get_positional()) text += " \\fI" + roff(option->get_name(true)) + "\\fR";
    }
    text += commands_of(command).empty() ? "\n" : " \\fISOURCE\\fR [\\fIOPTION\\fR]...\n";
  }
  if (const std::string positionals = roff_positionals(command); !positionals.empty()) {
    text += ".SH ARGUMENTS\n" + positionals;
  }
  if (whole) {
    text += ".SH COMMANDS\n";
    for (const CLI::App* const each : commands_of(program)) {
      text += ".TP\n\\fBh5pack\\-" + roff(each->get_name()) + "\\fR(1)\n" +
              roff(each->get_description()) + ".\n";
    }
  }
  text += ".SH OPTIONS\n" + roff_options(command);
  for (const CLI::App* const each : whole ? std::vector<const CLI::App*>() : commands_of(command)) {
    text += ".SH " + roff(each->get_name()) + "\n" + roff(each->get_description()) + ".\n" +
            roff_positionals(*each) + roff_options(*each);
  }
  text += ".SH EXAMPLES\n.nf\n";
  for (const std::string& example : cli::examples_of(command)) text += roff(example) + "\n";
  text += ".fi\n.SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_codes()) {
    text += ".TP\n" + code + "\n" + roff(meaning) + ".\n";
  }
  return text + ".SH SEE ALSO\n" +
         (whole ? "The pages of the commands, above.\n" : "\\fBh5pack\\fR(1)\n");
}

// ---- bash ----

std::string bash_words(const Node& node) {
  std::vector<std::string> words;
  for (const CLI::App* const command : commands_of(*node.app)) words.push_back(command->get_name());
  for (const CLI::Option* const option : options_of(*node.app)) {
    for (const std::string& name : spellings(*option)) words.push_back(name);
  }
  return cli::joined(words, " ");
}

/// For bash 4 or newer, with or without the package bash-completion.
std::string bash_completion(const CLI::App& program) {
  const std::vector<Node> nodes = nodes_of(program);
  std::vector<std::string> paths;
  std::string words;
  std::string values;
  for (const Node& node : nodes) {
    if (!node.path.empty()) paths.push_back(in_shell_quotes(node.path));
    words += "    " + in_shell_quotes(node.path) + ") words=" + in_shell_quotes(bash_words(node)) +
             " ;;\n";
    for (const CLI::Option* const option : options_of(*node.app)) {
      if (!takes_value(*option)) continue;
      std::vector<std::string> cases;
      for (const std::string& name : spellings(*option)) {
        cases.push_back(in_shell_quotes(node.path + ":" + name));
      }
      const std::vector<std::string> choices = cli::choices_of(*option);
      if (choices.empty() && takes_path(*option)) continue;  // files, as by default
      values += "    " + cli::joined(cases, " | ") + ")\n      COMPREPLY=($(compgen -W " +
                in_shell_quotes(cli::joined(choices, " ")) +
                " -- \"$current\"))\n      return ;;\n";
    }
  }
  return R"(# bash completion of h5pack, made from its parser

_h5pack() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local node='' next words i
  # --option=value comes as three words.
  [[ $current == = ]] && current=
  [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${node:+$node }${COMP_WORDS[i]}"
    case $next in
    )" + cli::joined(paths, " | ") +
         R"() node=$next ;;
    esac
  done
  case "$node:$previous" in
)" + values +
         R"(  esac
  case $node in
)" + words +
         R"(  esac
  if [[ $current == -* || -z $node ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}

# Otherwise names of files.
complete -o bashdefault -o default -F _h5pack h5pack
)";
}

std::string zsh_completion(const CLI::App& program) {
  // In a description brackets end it; in a value's name a colon does.
  const auto described = [](const std::string& text) {
    return cli::replaced(cli::replaced(cli::replaced(text, "[", "("), "]", ")"), ":", "\\:");
  };
  std::string text = "#compdef h5pack\n# zsh completion of h5pack, made from its parser\n\n";
  for (const Node& node : nodes_of(program)) {
    std::string function = "_h5pack" + (node.path.empty() ? "" : "_" + node.path);
    function = cli::replaced(function, " ", "_");
    text += function + "() {\n  local line state\n  _arguments -C \\\n";
    for (const CLI::Option* const option : options_of(*node.app)) {
      std::string value;
      if (takes_value(*option)) {
        const std::vector<std::string> choices = cli::choices_of(*option);
        value = ":" + described(option->get_type_name()) + ":" +
                (!choices.empty()      ? "(" + cli::joined(choices, " ") + ")"
                 : takes_path(*option) ? "_files"
                                       : " ");
      }
      for (const std::string& name : spellings(*option)) {
        const bool assigned = takes_value(*option) && name.starts_with("--");
        text += "    " +
                in_shell_quotes(name + (assigned ? "=" : "") + "[" +
                                described(option->get_description()) + "]" + value) +
                " \\\n";
      }
    }
    const std::vector<const CLI::App*> commands = commands_of(*node.app);
    if (commands.empty()) {
      text += "    '*:file:_files'\n}\n\n";
      continue;
    }
    // The file of append stands before its command.
    const bool has_file = !node.path.empty();
    text += has_file ? "    '1:file:_files' \\\n    '2: :->command' '*::argument:->rest'\n"
                     : "    '1: :->command' '*::argument:->rest'\n";
    text += "  case $state in\n  command)\n    local -a commands=(\n";
    for (const CLI::App* const command : commands) {
      text +=
          "      " + in_shell_quotes(command->get_name() + ":" + command->get_description()) + "\n";
    }
    text += "    )\n    _describe command commands ;;\n  rest)\n    case $line[" +
            std::string(has_file ? "2" : "1") + "] in\n";
    for (const CLI::App* const command : commands) {
      text += "    " + command->get_name() + ") " + function + "_" + command->get_name() + " ;;\n";
    }
    text += "    esac ;;\n  esac\n}\n\n";
  }
  return text + "_h5pack \"$@\"\n";
}

std::string fish_completion(const CLI::App& program) {
  std::string text = "# fish completion of h5pack, made from its parser\n\n";
  std::vector<std::string> names;
  for (const CLI::App* const command : commands_of(program)) names.push_back(command->get_name());
  const auto quoted = [](const std::string& words) { return in_shell_quotes(words, "\\'"); };
  for (const Node& node : nodes_of(program)) {
    std::string here = "not __fish_seen_subcommand_from " + cli::joined(names, " ");
    if (!node.path.empty()) {
      const std::string above = node.path.substr(0, node.path.find(' '));
      here = "__fish_seen_subcommand_from " +
             cli::replaced(node.path, " ", "; and __fish_seen_subcommand_from ");
      // append has commands of the same names.
      if (above == node.path && above != "append") {
        here += "; and not __fish_seen_subcommand_from append";
      }
    }
    const std::string begin = "complete -c h5pack -n " + quoted(here);
    for (const CLI::App* const command : commands_of(*node.app)) {
      text += begin + (node.path.empty() ? " -f" : "") + " -a " + command->get_name() + " -d " +
              quoted(command->get_description()) + "\n";
    }
    // Those of the program and of append are given once, and hold below it, too.
    for (const CLI::Option* const option : node.app->get_options()) {
      if (option->get_positional()) continue;
      std::string line = node.path.empty() ? "complete -c h5pack" : begin;
      for (const std::string& name : option->get_snames()) line += " -s " + name;
      for (const std::string& name : option->get_lnames()) line += " -l " + name;
      if (takes_value(*option)) line += takes_path(*option) ? " -rF" : " -x";
      if (const auto choices = cli::choices_of(*option); !choices.empty()) {
        line += " -a " + quoted(cli::joined(choices, " "));
      }
      text += line + " -d " + quoted(option->get_description()) + "\n";
    }
  }
  return text;
}

/// Names (h5pack.1, h5pack-stream.1, ...) and texts of the pages of the program and its commands.
std::vector<std::pair<std::string, std::string>> manual_pages(const CLI::App& program,
                                                              const std::string& version) {
  std::vector<std::pair<std::string, std::string>> pages{
      {"h5pack.1", manual_page(program, program, version)}};
  for (const CLI::App* const command : commands_of(program)) {
    pages.emplace_back("h5pack-" + command->get_name() + ".1",
                       manual_page(program, *command, version));
  }
  return pages;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file << text;
  file.close();
}

}  // namespace
}  // namespace h5pack

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_reference FOLDER\n", stderr);
    return 2;
  }
  try {
    using namespace h5pack;
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    Program program;
    write(folder / "h5pack.bash", bash_completion(program.app()));
    write(folder / "_h5pack", zsh_completion(program.app()));
    write(folder / "h5pack.fish", fish_completion(program.app()));
    for (const auto& [name, text] : manual_pages(program.app(), std::string(chunkio::version()))) {
      write(folder / name, text);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_reference: %s: %s\n", argv[1], error.what());
    return 1;
  }
}
