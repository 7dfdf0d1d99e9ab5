#include "h5pack/sparse/transposed_matrix.hpp"

#include <utility>

namespace h5pack {
namespace {

class TransposedMatrix final : public MatrixSource {
 public:
  explicit TransposedMatrix(std::unique_ptr<MatrixSource> matrix) : matrix_(std::move(matrix)) {}

  [[nodiscard]] chunkio::DType dtype() const override { return matrix_->dtype(); }
  [[nodiscard]] Duplicates duplicates() const override { return matrix_->duplicates(); }
  [[nodiscard]] nlohmann::ordered_json description() const override {
    nlohmann::ordered_json description = matrix_->description();
    description["transpose"] = true;
    return description;
  }
  [[nodiscard]] std::vector<std::string> files() const override { return matrix_->files(); }
  [[nodiscard]] std::int64_t num_units() const override { return matrix_->num_units(); }
  [[nodiscard]] const char* unit() const override { return matrix_->unit(); }
  [[nodiscard]] std::int64_t num_rows() const override { return matrix_->num_columns(); }
  [[nodiscard]] std::int64_t num_columns() const override { return matrix_->num_rows(); }
  void check(const std::stop_token& stop, bool quiet) const override {
    matrix_->check(stop, quiet);
  }
  void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) override {
    std::vector<Entry> swapped;
    matrix_->read(
        [&](std::span<const Entry> entries) {
          swapped.assign(entries.begin(), entries.end());
          for (Entry& entry : swapped) std::swap(entry.row, entry.column);
          sink(swapped);
        },
        advance);
  }
  [[nodiscard]] NameOf row_names() const override { return matrix_->column_names(); }
  [[nodiscard]] NameOf column_names() const override { return matrix_->row_names(); }
  [[nodiscard]] std::int64_t names_bytes() const override { return matrix_->names_bytes(); }
  // Fields of rows are those of columns now, which are not packed.
  [[nodiscard]] std::vector<std::string> left_out() const override {
    std::vector<std::string> names = matrix_->left_out();
    for (const chunkio::FieldInfo& field : matrix_->row_fields()) names.push_back(field.name);
    return names;
  }

 private:
  std::unique_ptr<MatrixSource> matrix_;
};

}  // namespace

std::unique_ptr<MatrixSource> transposed(std::unique_ptr<MatrixSource> matrix) {
  return std::make_unique<TransposedMatrix>(std::move(matrix));
}

}  // namespace h5pack
