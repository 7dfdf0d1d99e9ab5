/// Reports to files.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include "figure.hpp"
#include "machine.hpp"

namespace bench {

/// \throws std::runtime_error.
inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// Replaces the section of a Markdown file under the heading `# TITLE`, or adds it at the end. What
/// else is in the file stays. \throws std::runtime_error.
inline void write_section(const std::string& path, const std::string& title,
                          const std::string& text) {
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

/// The report of the program `name`: as JSON to one file, as a section of Markdown to another,
/// which holds one for each processor; an empty name leaves either out. \throws std::runtime_error.
inline void write_report(const Report& report, const std::string& name, const std::string& json,
                         const std::string& markdown) {
  if (!json.empty()) write_text(json, report.json().dump(2) + "\n");
  if (markdown.empty()) return;
  write_section(markdown, "Figures of " + name + ", " + this_machine().cpu,
                "Written by `bench/" + name + " --markdown`; see [" + name + ".cpp](" + name +
                    ".cpp) for what is measured and how. SHORT: the median misses its target.\n\n" +
                    report.markdown());
}

}  // namespace bench
