/// Chooses the rows of each output of `h5pack repack`, and their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

namespace h5pack {

enum class RepackOrder : std::uint8_t {
  stored,    ///< As they are in the file.
  source,    ///< By `source_index`; as in the file if it has none.
  shuffled,  ///< By shuffled_order() of the rows that go to the output, ascending.
};

/// The order as the command line names it, as a static string.
[[nodiscard]] const char* to_string(RepackOrder order) noexcept;

struct RepackSelection {
  std::optional<chunkio::RowSelection> rows = {};  ///< Only these.
  std::vector<std::int64_t> labels = {};           ///< Only samples with one of these; empty: all.
  /// Relative sizes of the parts, at least two; empty: one output.
  std::vector<double> split = {};
  /// Each class by itself is split in these proportions.
  bool stratify = false;
  RepackOrder order = RepackOrder::stored;
  std::uint64_t seed = 0;  ///< Of the shuffle, and of who goes to which part.
};

/// Parses "0.9:0.1": two or three numbers above 0; only their proportions count.
/// \throws chunkio::Error invalid_argument.
[[nodiscard]] std::vector<double> parse_split(const std::string& text);

/// Names of so many parts: train and test; train, val and test. \pre 2 or 3.
[[nodiscard]] std::vector<std::string> split_names(std::size_t parts);

/// The rows of each output, in its order. A function of the arguments and of the file's labels and
/// source rows, which it reads. Blocks on I/O.
///
/// To split, the chosen rows (of each class, if stratified) are permuted by shuffled_order() and
/// cut where round(count * sum of proportions so far) says.
/// \throws chunkio::Error invalid_argument (labels are needed and are no classes; nothing is left
///         for an output), and as Dataset::read_field().
[[nodiscard]] std::vector<std::vector<std::int64_t>> choose_rows(const chunkio::Dataset& dataset,
                                                                 const RepackSelection& selection);

}  // namespace h5pack
