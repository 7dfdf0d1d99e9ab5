#include "bar_chart.hpp"

#include <algorithm>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "axis.hpp"
#include "fitted_text.hpp"

namespace bench {
namespace {

// All lengths are CSS pixels.
constexpr double kWidth = 960;
constexpr double kLeft = 300;
constexpr double kPlotWidth = 440;
constexpr double kTextX = kLeft + kPlotWidth + 14;
constexpr double kBarHeight = 16;
constexpr double kRowHeight = 38;
constexpr double kTitleHeight = 26;
constexpr double kLimitLine = 16;
constexpr double kAxisHeight = 40;
constexpr std::size_t kLabelColumns = 38;
constexpr std::size_t kTextColumns = 30;

class Drawing {
 public:
  explicit Drawing(const BarChart& chart)
      : chart_(chart), axis_(Axis::linear(0, std::max(chart.highest, 1e-12))) {
    plot_end_ = chart.exact_end ? chart.highest : axis_.highest();
  }

  Markup draw() {
    const double top = static_cast<double>(chart_.limits.size()) * kLimitLine + 6;
    double bottom = top;
    for (const BarGroup& group : chart_.groups) {
      bottom += group.title.empty() ? 0 : kTitleHeight;
      bottom += static_cast<double>(group.bars.size()) * kRowHeight;
    }
    const double height = bottom + kAxisHeight;
    svg_.open("svg", {{"class", "wide"},
                      {"role", "img"},
                      {"aria-label", chart_.label},
                      {"viewBox", "0 0 " + coordinate(kWidth) + " " + coordinate(height)},
                      {"width", coordinate(kWidth)},
                      {"height", coordinate(height)}});
    draw_axis(top, bottom);
    double y = top;
    for (const BarGroup& group : chart_.groups) {
      if (!group.title.empty()) {
        svg_.leaf("text", {{"class", "h"}, {"x", "0"}, {"y", coordinate(y + 18)}}, group.title);
        y += kTitleHeight;
      }
      for (const Bar& bar : group.bars) {
        draw_bar(bar, y);
        y += kRowHeight;
      }
    }
    draw_limits(bottom);
    return svg_.close(), svg_;
  }

 private:
  [[nodiscard]] double x_of(double value) const {
    return kLeft + kPlotWidth * std::clamp(value / plot_end_, 0.0, 1.0);
  }

  void draw_axis(double top, double bottom) {
    for (const double tick : axis_.ticks()) {
      if (tick > plot_end_ * (1 + 1e-9)) continue;
      const std::string x = coordinate(x_of(tick));
      svg_.empty("path", {{"class", "grid"},
                          {"d", "M" + x + " " + coordinate(top) + "V" + coordinate(bottom)}});
      svg_.leaf("text", {{"class", "l m"}, {"x", x}, {"y", coordinate(bottom + 15)}},
                chart_.tick_text(tick));
    }
    svg_.leaf("text",
              {{"class", "t m"},
               {"x", coordinate(kLeft + kPlotWidth / 2)},
               {"y", coordinate(bottom + 33)}},
              chart_.axis_title);
  }

  void draw_bar(const Bar& bar, double y) {
    const double middle = y + kRowHeight / 2;
    svg_.open("g", {{"class", "bar"}});
    svg_.leaf("title", bar.hover);
    // Takes the pointer between label and value, too.
    svg_.empty("rect", {{"class", "hit"},
                        {"x", "0"},
                        {"y", coordinate(y)},
                        {"width", coordinate(kWidth)},
                        {"height", coordinate(kRowHeight)}});
    const std::size_t title_lines = bar.detail.empty() ? 2 : 1;
    const std::vector<std::string> lines = fitted_lines(bar.title, kLabelColumns, title_lines);
    const bool two = lines.size() > 1 || !bar.detail.empty();
    svg_.leaf("text",
              {{"class", "b e"},
               {"x", coordinate(kLeft - 14)},
               {"y", coordinate(middle + (two ? -2 : 4))}},
              lines[0]);
    if (two) {
      svg_.leaf("text",
                {{"class", bar.detail.empty() ? "b e" : "l e"},
                 {"x", coordinate(kLeft - 14)},
                 {"y", coordinate(middle + 13)}},
                bar.detail.empty() ? lines[1] : fitted(bar.detail, kLabelColumns + 6));
    }
    double from = 0;
    for (const BarPart& part : bar.parts) {
      svg_.open("g", {{"class", "part"}, {"data-v", nlohmann::json(part.length).dump()}});
      if (!part.hover.empty()) svg_.leaf("title", part.hover);
      svg_.empty("rect", {{"class", part.style},
                          {"x", coordinate(x_of(from))},
                          {"y", coordinate(middle - kBarHeight / 2)},
                          {"width", coordinate(x_of(from + part.length) - x_of(from))},
                          {"height", coordinate(kBarHeight)}});
      svg_.close();
      from += part.length;
    }
    for (const double other : bar.others) {
      svg_.empty("path", {{"class", "other"},
                          {"d", "M" + coordinate(x_of(other)) + " " +
                                    coordinate(middle + kBarHeight / 2 + 2) + "v5"}});
    }
    if (bar.range) {
      const std::string low = coordinate(x_of(bar.range->first));
      const std::string high = coordinate(x_of(bar.range->second));
      const std::string y_middle = coordinate(middle);
      const std::string y_top = coordinate(middle - 4);
      std::string path = "M" + low;
      path += " " + y_middle + "H" + high;
      path += "M" + low + " " + y_top + "v8";
      path += "M" + high + " " + y_top + "v8";
      svg_.empty("path", {{"class", "range"}, {"d", path}});
    }
    svg_.leaf("text", {{"class", "b"}, {"x", coordinate(kTextX)}, {"y", coordinate(middle + 4)}},
              fitted(bar.text, kTextColumns));
    svg_.close();
  }

  void draw_limits(double bottom) {
    // Each has a line of its own, so that their texts never meet.
    double text_y = 11;
    for (const BarLimit& limit : chart_.limits) {
      const double x = x_of(limit.value);
      svg_.open("g", {{"class", "limit"}, {"data-v", nlohmann::json(limit.value).dump()}});
      svg_.leaf("title", limit.hover);
      svg_.empty("path", {{"d", "M" + coordinate(x) + " " + coordinate(text_y + 3) + "V" +
                                    coordinate(bottom)}});
      const bool left = x > kLeft + kPlotWidth / 2;
      svg_.leaf("text",
                {{"class", left ? "l e" : "l"},
                 {"x", coordinate(x + (left ? 4 : -4))},
                 {"y", coordinate(text_y)}},
                fitted(limit.text, 60));
      svg_.close();
      text_y += kLimitLine;
    }
  }

  const BarChart& chart_;
  Axis axis_;
  double plot_end_ = 1;
  Markup svg_;
};

}  // namespace

Markup draw_bar_chart(const BarChart& chart) { return Drawing(chart).draw(); }

}  // namespace bench
