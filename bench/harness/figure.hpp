/// One cell of the table of figures, and the table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

struct Target {
  enum class Kind { at_least, at_most };
  Kind kind = Kind::at_least;
  double value = 0;
  const char* unit = "";

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool met_by(double value_) const noexcept {
    return kind == Kind::at_least ? value_ >= value : value_ <= value;
  }
};

constexpr Target at_least(double value) { return {Target::Kind::at_least, value, ""}; }
constexpr Target at_most(double value, const char* unit = "") {
  return {Target::Kind::at_most, value, unit};
}

/// What was measured for one row of the table and one size of image.
struct Figure {
  std::string row;
  std::string size;                   ///< Name of the image size.
  std::vector<double> values = {};    ///< One for each round; empty: not measured, `note` says why.
  std::optional<Target> target = {};  ///< Absent: for information.
  std::string note = {};
  bool failed = false;  ///< Not measured because something that should work did not.

  /// By the median. Absent without target or values.
  [[nodiscard]] std::optional<bool> met() const;
  /// "1.32 (1.21 to 1.40)".
  [[nodiscard]] std::string text() const;
};

/// Figures in the order in which they were added, and what else belongs to a run.
class Report {
 public:
  /// Also prints it.
  void add(Figure figure);
  /// Raw measurements and settings behind the figures of one experiment.
  void add_detail(const std::string& size, const std::string& experiment,
                  nlohmann::ordered_json detail);
  /// A line about the run as a whole, or about the setting of an experiment. Also prints it.
  void add_line(std::string line);

  [[nodiscard]] bool anything_failed() const noexcept;
  [[nodiscard]] std::string markdown() const;
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::string> lines_;
  nlohmann::ordered_json details_ = nlohmann::ordered_json::object();
};

}  // namespace bench
