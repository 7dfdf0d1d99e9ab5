/// A source of a sparse matrix: a kind of file, opened.
///
/// What a kind adds is one line of open_matrix() and a class. Data flow: a source gives its entries
/// once, in blocks -> CsrPacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

#include "cli/quote.hpp"
#include "h5pack/sparse/entry.hpp"

namespace h5pack {

struct MatrixRequest {
  std::string input = {};
  std::optional<chunkio::DType> dtype = {};  ///< Absent: as the kind of source has it.
  bool transpose = false;                    ///< Rows become columns.
  /// Columns of a CSV file. Empty: the first, the second, and the third if there is one; a value of
  /// "none": each entry is 1.
  std::string row_from = {}, column_from = {}, value_from = {};
  /// Of an HDF5 file: which matrix, and whether links are followed.
  std::string matrix = {};
  bool allow_external = false;
  std::string probe = {};          ///< As chunkio::OpenOptions::probe.
  std::int64_t memory_budget = 0;  ///< Bytes for tables of rows, columns and their names.
};

class MatrixSource {
 public:
  MatrixSource() = default;
  MatrixSource(const MatrixSource&) = delete;
  MatrixSource& operator=(const MatrixSource&) = delete;
  virtual ~MatrixSource() = default;

  /// Of the stored values.
  [[nodiscard]] virtual chunkio::DType dtype() const = 0;
  [[nodiscard]] virtual Duplicates duplicates() const = 0;  ///< What they mean if nobody says.
  /// Kind, path and options, for the file.
  [[nodiscard]] virtual nlohmann::ordered_json description() const = 0;
  /// Its path, for messages.
  [[nodiscard]] std::string name() const {
    return cli::quote(description().at("path").get<std::string>());
  }
  /// The files that it reads.
  [[nodiscard]] virtual std::vector<std::string> files() const {
    return {description().at("path").get<std::string>()};
  }
  /// Units of progress that read() goes through, "entries" or "bytes"; 0: not known.
  [[nodiscard]] virtual std::int64_t num_units() const = 0;
  [[nodiscard]] virtual const char* unit() const { return "entries"; }
  /// Of the file, if it says so itself; else known when it was read.
  [[nodiscard]] virtual std::int64_t num_rows() const = 0;
  [[nodiscard]] virtual std::int64_t num_columns() const = 0;

  /// Compares all entries with their digests, if the source has them. \throws Error as
  /// check_digests().
  virtual void check(const std::stop_token& /*stop*/, bool /*quiet*/) const {}

  /// Gives all entries to the sink, on the calling thread. To be called once.
  /// \param advance  takes units of progress.
  /// \throws Error corrupt_data with the place; unsupported, io_failed, out_of_resources.
  virtual void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) = 0;

  /// Names, once all is read; absent if the source numbers them.
  using NameOf = std::function<std::string_view(std::int64_t)>;
  [[nodiscard]] virtual NameOf row_names() const { return {}; }
  [[nodiscard]] virtual NameOf column_names() const { return {}; }
  /// Memory that they take.
  [[nodiscard]] virtual std::int64_t names_bytes() const { return 0; }

  /// What else there is of each row: one number, without axes.
  [[nodiscard]] virtual std::vector<chunkio::FieldInfo> row_fields() const { return {}; }
  /// The texts that the numbers of some of these stand for, by name: SparseSpec::categories.
  using Categories = std::map<std::string, std::vector<std::string>>;
  [[nodiscard]] virtual const Categories& row_categories() const {
    static const Categories kNone;
    return kNone;
  }
  /// Reads such a field of all rows. \throws Error as chunkio::Dataset::read_field().
  virtual void read_row_field(const chunkio::FieldInfo& /*field*/,
                              std::span<std::byte> /*out*/) const {}
  /// Names of what it holds beside the matrix and is not carried over.
  [[nodiscard]] virtual std::vector<std::string> left_out() const { return {}; }
  /// The seed with which its rows were shuffled; absent: nobody says that they were.
  [[nodiscard]] virtual std::optional<std::uint64_t> shuffled_with() const { return std::nullopt; }
};

/// Opens a source by what it holds: a zip file is .npz, HDF5 is that, a text that begins with
/// %%MatrixMarket is that, and any other text is CSV; text may be compressed with gzip, and "-" is
/// standard input. A pattern stands for shards, which are HDF5.
/// \throws Error not_found, io_failed, corrupt_data, unsupported, invalid_argument (options that
///         are not of that kind, no such column).
[[nodiscard]] std::unique_ptr<MatrixSource> open_matrix(const MatrixRequest& request);

}  // namespace h5pack
