#include "harness/suite.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/cpus.hpp"
#include "harness/machine.hpp"

namespace bench {
namespace {

/// What every suite is asked for.
struct Output {
  std::vector<std::string> only;
  std::vector<std::string> sizes;
  std::string json;
  std::string markdown;
};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// Replaces the section of a Markdown file under the heading `# TITLE`, or adds it at the end. What
/// else is in the file stays.
void write_section(const std::string& path, const std::string& title, const std::string& text) {
  const std::string heading = "# " + title;
  std::string before;
  std::string after;
  bool replaced = false;
  bool inside = false;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ")) inside = line == heading;
    replaced |= inside;
    if (!inside) (replaced ? after : before) += line + "\n";
  }
  if (!before.empty() && !before.ends_with("\n\n")) before += "\n";
  write_text(path, before + heading + "\n\n" + text + (after.empty() ? "" : "\n") + after);
}

/// As JSON to one file; to another as a section of Markdown, one for each processor.
void write_report(const Report& report, const Suite& suite, const Output& output) {
  if (!output.json.empty()) write_text(output.json, report.json().dump(2) + "\n");
  if (output.markdown.empty()) return;
  const std::string file = suite.source.substr(suite.source.rfind('/') + 1);
  write_section(output.markdown, "Figures of " + suite.name + ", " + this_machine().cpu,
                "Written by `figures " + suite.name + " --markdown`; see [" + file + "](" +
                    suite.source +
                    ") for what is measured and how.\nSHORT: the median misses its target.\n\n" +
                    report.markdown());
}

/// Whether it was done; if not, a row of the report says why.
bool attempt(const std::string& what, const ImageSize& size, Report& report,
             const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    report.add({what, size.name, {}, {}, error.what(), true});
    return false;
  }
}

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

void measure_size(const Suite& suite, const Output& output, const ImageSize& size, Report& report) {
  for (const Experiment& experiment : suite.experiments) {
    if (!wanted(output.only, experiment.name)) continue;
    if (!suite.prepare) std::printf("\n%s\n", experiment.name.c_str());
    attempt("experiment '" + experiment.name + "'", size, report,
            [&] { experiment.measure(report); });
  }
}

int run(const Suite& suite, const Output& output) {
  Report report;
  describe_machine(report);
  suite.begin(report);
  for (const ImageSize& size : kImageSizes) {
    if (!wanted(output.sizes, size.name)) continue;
    if (suite.prepare) {
      std::printf("\n%s, %lldx%lldx%lld\n", size.name, static_cast<long long>(size.height),
                  static_cast<long long>(size.width), static_cast<long long>(size.channels));
    }
    if (!suite.prepare || attempt("images", size, report, [&] { suite.prepare(size); })) {
      measure_size(suite, output, size, report);
    }
    if (suite.finish) suite.finish();
    // Whatever ends the program during the next size, this one's figures are there.
    write_report(report, suite, output);
    if (!suite.prepare) break;
  }
  return report.anything_failed() ? 1 : 0;
}

void add_names(CLI::App& app, const std::string& name, std::vector<std::string>& target,
               const std::string& description, const std::vector<std::string>& known) {
  app.add_option(name, target, description)->delimiter(',')->check(CLI::IsMember(known));
}

}  // namespace

void add_suite(CLI::App& app, Suite suite, std::function<int()>& action) {
  CLI::App& command = *app.add_subcommand(suite.name, suite.description);
  const auto output = std::make_shared<Output>();
  suite.add_options(command);
  std::vector<std::string> names;
  for (const Experiment& experiment : suite.experiments) names.push_back(experiment.name);
  if (names.size() > 1) {
    add_names(command, "--only", output->only, "Only these experiments", names);
  }
  names.clear();
  for (const ImageSize& size : kImageSizes) names.emplace_back(size.name);
  if (suite.prepare) add_names(command, "--size", output->sizes, "Only these image sizes", names);
  command.add_option("--json", output->json, "Also write everything to this file");
  command.add_option("--markdown", output->markdown,
                     "Also write the table to its section of this file");
  command.callback([&action, output, suite = std::make_shared<Suite>(std::move(suite))] {
    action = [output, suite] { return run(*suite, *output); };
  });
}

void add_rounds(CLI::App& app, std::int64_t& target) {
  add_count(app, "--rounds", target, "Interleaved rounds, 5 or more for a figure to quote");
}

void add_folder(CLI::App& app, std::string& target) {
  app.add_option("--dir", target, "Where the files go; they are removed at the end");
}

void add_peers(CLI::App& app, std::string& target) {
  app.add_option("--peers", target,
                 "Virtual environment made by bench/peers/setup.sh; without it no peers run");
}

void add_count(CLI::App& app, const std::string& name, std::int64_t& target,
               const std::string& description, std::int64_t lowest) {
  app.add_option(name, target, description)
      ->check(CLI::Range(lowest, std::int64_t{1} << 30))
      ->capture_default_str();
}

void add_bytes(CLI::App& app, const std::string& name, std::int64_t& target,
               const std::string& description) {
  app.add_option(name, target, description)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1} << 16, std::int64_t{1} << 40))
      ->capture_default_str();
}

void note_small_data(std::int64_t bytes, Report& report) {
  constexpr std::int64_t kCacheMultiple = 4;
  if (bytes >= kCacheMultiple * chunkio::base::last_level_cache_bytes()) return;
  report.add_line("NOTE: --bytes is less than " + std::to_string(kCacheMultiple) +
                  " times the last-level cache; these figures measure the cache");
}

}  // namespace bench
