#include "h5pack/dataset/selected_field.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr std::int64_t kBlockBytes = std::int64_t{4} << 20;
/// Rows that are not wanted are read, too, if they are fewer bytes than this: less than a call.
constexpr std::int64_t kGapBytes = 4096;

/// Reads rows of one field to places in a window.
class WindowReader {
 public:
  WindowReader(const chunkio::Dataset& dataset, const chunkio::FieldInfo& field)
      : dataset_(dataset),
        name_(field.name),
        row_bytes_(static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field))),
        block_(static_cast<std::size_t>(std::max(kBlockBytes / row_bytes_, std::int64_t{1}) *
                                        row_bytes_)) {}

  /// \param window  a row for each of `rows`.
  void read(std::span<const std::int64_t> rows, std::span<std::byte> window) {
    std::vector<std::size_t> places(rows.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    if (!std::is_sorted(rows.begin(), rows.end())) {
      std::sort(places.begin(), places.end(),
                [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    }
    for (std::size_t begin = 0; begin < places.size();) {
      const std::int64_t first = rows[places[begin]];
      std::size_t end = begin + 1;
      while (end < places.size() && belongs(first, rows[places[end - 1]], rows[places[end]])) ++end;
      const std::int64_t count = rows[places[end - 1]] - first + 1;
      dataset_.read_field(name_, first, count,
                          std::span(block_).first(static_cast<std::size_t>(count * row_bytes_)));
      for (; begin < end; ++begin) {
        std::memcpy(window.data() + places[begin] * static_cast<std::size_t>(row_bytes_),
                    block_.data() + (rows[places[begin]] - first) * row_bytes_,
                    static_cast<std::size_t>(row_bytes_));
      }
    }
  }

 private:
  /// Whether `row` is read with the rows from `first` to `last`.
  [[nodiscard]] bool belongs(std::int64_t first, std::int64_t last,
                             std::int64_t row) const noexcept {
    return (row - first + 1) * row_bytes_ <= static_cast<std::int64_t>(block_.size()) &&
           (row - last - 1) * row_bytes_ <= kGapBytes;
  }

  const chunkio::Dataset& dataset_;
  const std::string& name_;
  std::int64_t row_bytes_;
  std::vector<std::byte> block_;
};

}  // namespace

chunkio::FieldData selected_field(const chunkio::Dataset& dataset, const chunkio::FieldInfo& field,
                                  const Rows& rows, std::int64_t memory_bytes, std::string name) {
  chunkio::FieldData selected{field, {}, {}};
  selected.info.name = std::move(name);
  selected.stream = [&dataset, &rows, field, memory_bytes](const chunkio::FieldData::Sink& sink) {
    const auto row_bytes = static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field));
    const auto window_rows = static_cast<std::size_t>(std::clamp<std::int64_t>(
        memory_bytes / row_bytes, 1, static_cast<std::int64_t>(rows.size())));
    std::vector<std::byte> window(window_rows * static_cast<std::size_t>(row_bytes));
    WindowReader reader(dataset, field);
    for (std::size_t first = 0; first < rows.size(); first += window_rows) {
      const std::size_t count = std::min(window_rows, rows.size() - first);
      const auto filled = std::span(window).first(count * static_cast<std::size_t>(row_bytes));
      reader.read(std::span(rows).subspan(first, count), filled);
      sink(filled);
    }
  };
  return selected;
}

chunkio::FieldData selected_source_index(const chunkio::Dataset& dataset, const Rows& rows,
                                         std::int64_t memory_bytes) {
  if (const std::optional<chunkio::FieldInfo> field = find_source_index(dataset)) {
    return selected_field(dataset, *field, rows, memory_bytes, kSourceIndex);
  }
  return {.info = {kSourceIndex, chunkio::DType::int64, {}},
          .stream = [&rows](const chunkio::FieldData::Sink& sink) {
            sink(std::as_bytes(std::span(rows)));
          }};
}

}  // namespace h5pack
