/// A table of figures, which is a subcommand of the program `figures`, and the runner of all
/// tables.
///
/// Every figure is a ratio of two things interleaved in the same round; the median and range of the
/// rounds are printed, with the target and whether the median meets it. What is timed was checked
/// first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "harness/drawn_images.hpp"
#include "harness/figure.hpp"

namespace bench {

/// Adds figures to the report, for the image size that was prepared last.
struct Experiment {
  std::string name;
  std::function<void(Report&)> measure;
};

struct Suite {
  std::string name;         ///< Of the subcommand, and of the section of Markdown.
  std::string description;  ///< For --help.
  std::string source;       ///< The file, below bench, that says what is measured.
  std::function<void(CLI::App&)> add_options;  ///< Those that only this suite has.
  std::function<void(Report&)> begin;          ///< Describes the run, once options are known.
  /// Called before the experiments of each image size. Empty: they take their sizes themselves.
  std::function<void(const ImageSize&)> prepare = {};
  std::function<void()> finish = {};         ///< Called after them, to release what was prepared.
  std::vector<Experiment> experiments = {};  ///< In this order.
};

/// Adds the subcommand with --only, --size, --json, --markdown and its own options. When chosen, it
/// sets `action`, which measures and returns an exit code: 1 if anything failed. An experiment that
/// throws is a row of the table, and the others go on.
void add_suite(CLI::App& app, Suite suite, std::function<int()>& action);

/// What the experiments of a suite share, made of its options when the first of them asks.
template <class Made, class Options>
struct MadeWhenAsked {
  Options options = {};
  std::optional<Made> made = {};

  Made& get() {
    if (!made) made.emplace(options);
    return *made;
  }
};

/// Options that suites share, with what they check.
void add_rounds(CLI::App& app, std::int64_t& target);
void add_folder(CLI::App& app, std::string& target);
void add_peers(CLI::App& app, std::string& target);
void add_count(CLI::App& app, const std::string& name, std::int64_t& target,
               const std::string& description, std::int64_t lowest = 1);
void add_bytes(CLI::App& app, const std::string& name, std::int64_t& target,
               const std::string& description);

/// Says so in the report if that many bytes of images rather measure the last-level cache.
void note_small_data(std::int64_t bytes, Report& report);

}  // namespace bench
