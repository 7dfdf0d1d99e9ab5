/// Adds options that check their values: errors name the option and what it takes.
///
/// All of them throw chunkio::Error invalid_argument while CLI11 parses; main turns it into exit
/// code 2. Targets must outlive the parse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

namespace cli {

/// While it lives, options that are added to `app` stand under this heading in the help.
class Heading {
 public:
  Heading(CLI::App& app, const std::string& heading)
      : app_(app), before_(app.option_defaults()->get_group()) {
    app.option_defaults()->group(heading);
  }
  Heading(const Heading&) = delete;
  Heading& operator=(const Heading&) = delete;
  ~Heading() { app_.option_defaults()->group(before_); }

 private:
  CLI::App& app_;
  std::string before_;
};

/// What `parse` returns, or its error with the option named.
template <class Parse>
auto of_option(const std::string& name, const Parse& parse) {
  try {
    return parse();
  } catch (const chunkio::Error& error) {
    throw error.with_message(name + ": " + error.what());
  }
}

/// \throws chunkio::Error invalid_argument: an option must be what is wanted, not `text`.
[[noreturn]] void refuse(const std::string& name, const std::string& wanted,
                         const std::string& text);

/// A text that must be given: what a command reads, or its output.
/// \param type_name  what the help shows for its value; empty: nothing.
CLI::Option* add_required(CLI::App& app, const std::string& name, std::string& target,
                          const std::string& description, const std::string& type_name = "");

/// FILE of the commands that read a file, or shards.
CLI::Option* add_file_or_shards(CLI::App& app, std::string& target);

/// \throws chunkio::Error invalid_argument if it is empty.
void check_output(const std::string& output);

/// A size such as 64MiB, at least `smallest` bytes; the help shows the value `target` has now as
/// default.
CLI::Option* add_byte_size(CLI::App& app, const std::string& name, std::int64_t& target,
                           const std::string& description, std::int64_t smallest = 1);

/// --memory-budget of what reads a dataset once.
CLI::Option* add_memory_budget(CLI::App& app, std::int64_t& target);

/// More threads than this would be a slip of the keyboard.
inline constexpr std::int64_t kMaxThreads = 1024;

/// \throws chunkio::Error invalid_argument, naming --threads, beyond kMaxThreads.
void check_threads(std::int64_t threads);

/// A whole number, at least `smallest`. \pre `name` has a long one: "--long" or "-l,--long".
CLI::Option* add_integer(CLI::App& app, const std::string& name, std::int64_t& target,
                         std::int64_t smallest, const std::string& description);

/// --quality of JPEG files, 1 to 100.
CLI::Option* add_jpeg_quality(CLI::App& app, int& target);

/// A seed: any whole number that fits in 64 bits.
CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& description);

/// A time in milliseconds, from 0 to one hour.
CLI::Option* add_milliseconds(CLI::App& app, const std::string& name, double& target,
                              const std::string& description);

/// A time in seconds, from `lowest` to 60; the help shows the value `target` has now as default.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& target,
                         const std::string& description, double lowest = 0.01);

/// Names separated by commas. (CLI11's own splitting takes the next option for a name after ",".)
CLI::Option* add_names(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description, const std::string& type_name);

/// --rows, as parse_row_list() reads it.
CLI::Option* add_rows(CLI::App& app, std::optional<chunkio::RowSelection>& target);

/// --trust, which clears OpenOptions::probe. It is set to the program that lies beside this one.
void add_trust(CLI::App& app, std::string& probe);

/// --images, --label-field and --layout, for files that do not describe themselves, --decode and
/// --crop for encoded images, --allow-external, --trust and --remote-....
void add_open_options(CLI::App& app, chunkio::OpenOptions& target,
                      const std::string& heading = "Options");

/// One of the named values.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& target,
                        std::vector<std::pair<std::string, T>> choices,
                        const std::string& description) {
  std::string names;
  std::string type;  // which choices_of() takes apart
  std::string current;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i != 0) names += i + 1 == choices.size() ? " or " : ", ";
    if (i != 0) type += "|";
    names += choices[i].first;
    type += choices[i].first;
    if (choices[i].second == target) current = choices[i].first;
  }
  const auto choose = [&target, choices = std::move(choices), names,
                       name](const std::string& text) {
    for (const auto& [choice, value] : choices) {
      if (choice != text) continue;
      target = value;
      return;
    }
    refuse(name, names, text);
  };
  return app.add_option_function<std::string>(name, choose, description)
      ->type_name(type)
      ->default_str(current);
}

}  // namespace cli
