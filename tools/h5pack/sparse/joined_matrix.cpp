#include "h5pack/sparse/joined_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sparse/entry.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::FieldInfo;

class JoinedMatrix final : public MatrixSource {
 public:
  JoinedMatrix(std::unique_ptr<MatrixSource> before, std::unique_ptr<MatrixSource> added,
               std::int64_t first_source_row)
      : before_(std::move(before)), added_(std::move(added)), first_source_row_(first_source_row) {
    for (const FieldInfo& field : before_->row_fields()) {
      if (field.name == kSourceIndex) continue;
      const FieldInfo* const more = find(field.name);
      // Numbers of categories may have any type.
      if (more != nullptr && (more->dtype == field.dtype || are_categories(field.name))) continue;
      throw Error(ErrorCode::unsupported,
                  "the rows of " + before_->name() + " have " + cli::quote(field.name) + " (" +
                      std::string(to_string(field.dtype)) + "), and those of " + added_->name() +
                      (more == nullptr ? " have not"
                                       : " have it as " + std::string(to_string(more->dtype))) +
                      ": add it to the table of rows there");
    }
    number_categories();
  }

  [[nodiscard]] chunkio::DType dtype() const override { return before_->dtype(); }
  [[nodiscard]] Duplicates duplicates() const override { return added_->duplicates(); }
  [[nodiscard]] nlohmann::ordered_json description() const override {
    return added_->description();
  }
  [[nodiscard]] std::vector<std::string> files() const override {
    std::vector<std::string> files = before_->files();
    for (std::string& file : added_->files()) files.push_back(std::move(file));
    return files;
  }
  [[nodiscard]] std::int64_t num_units() const override {
    const bool same = std::string_view(added_->unit()) == before_->unit();
    const std::int64_t more = added_->num_units();
    return same && more > 0 ? before_->num_units() + more : 0;
  }
  [[nodiscard]] std::int64_t num_rows() const override {
    const std::int64_t more = added_->num_rows();
    return more > 0 ? before_->num_rows() + more : 0;
  }
  [[nodiscard]] std::int64_t num_columns() const override { return before_->num_columns(); }

  void check(const std::stop_token& stop, bool quiet) const override {
    before_->check(stop, quiet);
    added_->check(stop, quiet);
  }
  void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) override {
    // Before the work, where the source knows.
    if (added_->num_columns() > 0) check_number_of_columns();
    check_number_of_rows();
    before_->read(sink, advance);
    std::vector<Entry> moved;
    added_->read(
        [&](std::span<const Entry> entries) {
          moved.assign(entries.begin(), entries.end());
          for (Entry& entry : moved) {
            const std::int64_t row = before_->num_rows() + entry.row;
            if (row >= kMaxAxis) throw too_many_rows();
            entry.row = static_cast<std::uint32_t>(row);
          }
          sink(moved);
        },
        advance);
    check_number_of_rows();
    check_number_of_columns();
    check_column_names();
  }

  [[nodiscard]] NameOf row_names() const override {
    if (!before_->row_names() && !added_->row_names()) return {};
    return [this, first = before_->row_names(), second = added_->row_names(),
            text = std::string()](std::int64_t row) mutable -> std::string_view {
      const std::int64_t more = row - before_->num_rows();
      if (more < 0 && first) return first(row);
      if (more >= 0 && second) return second(more);
      text = std::to_string(more < 0 ? row : first_source_row_ + more);
      return text;
    };
  }
  [[nodiscard]] NameOf column_names() const override {
    return before_->column_names() ? before_->column_names() : added_->column_names();
  }
  [[nodiscard]] std::int64_t names_bytes() const override {
    return before_->names_bytes() + added_->names_bytes();
  }

  [[nodiscard]] std::vector<FieldInfo> row_fields() const override { return before_->row_fields(); }
  [[nodiscard]] const Categories& row_categories() const override {
    return before_->row_categories();
  }
  void read_row_field(const FieldInfo& field, std::span<std::byte> out) const override {
    const std::size_t own = static_cast<std::size_t>(before_->num_rows()) * size_of(field.dtype);
    before_->read_row_field(field, out.first(own));
    if (field.name != kSourceIndex) {
      const FieldInfo& more = *find(field.name);
      if (!numbers_.contains(field.name)) return added_->read_row_field(more, out.subspan(own));
      std::vector<std::byte> codes(static_cast<std::size_t>(added_->num_rows()) *
                                   size_of(more.dtype));
      added_->read_row_field(more, codes);
      return renumber(codes, more, out.subspan(own), field.dtype);
    }
    for (std::int64_t row = 0; row < added_->num_rows(); ++row) {
      const std::int64_t index = first_source_row_ + row;
      std::memcpy(out.data() + own + static_cast<std::size_t>(row) * sizeof index, &index,
                  sizeof index);
    }
  }
  [[nodiscard]] std::vector<std::string> left_out() const override {
    std::vector<std::string> names = before_->left_out();
    for (std::string& name : added_->left_out()) names.push_back(std::move(name));
    const std::vector<FieldInfo> kept = before_->row_fields();
    for (const FieldInfo& field : added_fields_) {
      const bool known = std::any_of(kept.begin(), kept.end(),
                                     [&](const FieldInfo& one) { return one.name == field.name; });
      if (!known && field.name != kSourceIndex) names.push_back(field.name);
    }
    return names;
  }

 private:
  [[nodiscard]] const FieldInfo* find(const std::string& name) const {
    const auto found = std::find_if(added_fields_.begin(), added_fields_.end(),
                                    [&](const FieldInfo& one) { return one.name == name; });
    return found == added_fields_.end() ? nullptr : &*found;
  }
  /// Whether the numbers of the field stand for texts in both.
  [[nodiscard]] bool are_categories(const std::string& field) const {
    return before_->row_categories().contains(field) && added_->row_categories().contains(field);
  }
  /// Matches the categories of the added rows with those of the file, by their texts.
  void number_categories() {
    const Categories& known = before_->row_categories();
    const Categories& given = added_->row_categories();
    for (const FieldInfo& field : before_->row_fields()) {
      const auto here = given.find(field.name);
      const auto there = known.find(field.name);
      if (there == known.end() && here == given.end()) continue;
      if (!are_categories(field.name)) {
        const bool only_there = here == given.end();
        throw Error(ErrorCode::unsupported, cli::quote(field.name) + " are categories in " +
                                                (only_there ? before_->name() : added_->name()) +
                                                " and numbers in " +
                                                (only_there ? added_->name() : before_->name()) +
                                                ": give them as the same in both");
      }
      std::map<std::string_view, std::int64_t> places;
      for (const std::string& text : there->second) places.emplace(text, std::ssize(places));
      std::vector<std::int64_t>& numbers = numbers_[field.name];
      for (const std::string& text : here->second) {
        const auto found = places.find(text);
        if (found == places.end()) {
          throw Error(ErrorCode::unsupported, "category " + cli::quote(text) + " of " +
                                                  cli::quote(field.name) + " in " + added_->name() +
                                                  " is none of " + before_->name() +
                                                  ": pack both sources together, or remove it");
        }
        numbers.push_back(found->second);
      }
    }
  }
  /// \param field  of the added rows, which have these codes.
  /// \param out    gets the numbers of the same texts in the file, in its type.
  /// \throws Error corrupt_data: a number that stands for nothing; unsupported: the type has no
  ///         number for one.
  void renumber(std::span<const std::byte> codes, const FieldInfo& field, std::span<std::byte> out,
                chunkio::DType dtype) const {
    const std::vector<std::int64_t>& numbers = numbers_.at(field.name);
    std::vector<std::uint64_t> bits(codes.size() / size_of(field.dtype));
    encode(codes, field.dtype, chunkio::DType::int64, bits, [&](std::size_t row) {
      return "category of row " + std::to_string(row) + " of " + added_->name();
    });
    for (std::size_t row = 0; row < bits.size(); ++row) {
      auto number = std::bit_cast<std::int64_t>(bits[row]);
      if (number < -1 || number >= std::ssize(numbers)) {
        throw Error(ErrorCode::corrupt_data, added_->name() + " has category " +
                                                 std::to_string(number) + " of " +
                                                 std::to_string(numbers.size()) + " in " +
                                                 cli::quote(field.name) + "; write it again");
      }
      if (number >= 0) number = numbers[static_cast<std::size_t>(number)];
      const auto stored = encode_integer(number, dtype);
      if (!stored) {
        throw Error(ErrorCode::unsupported, before_->name() + " numbers " + cli::quote(field.name) +
                                                " as " + std::string(to_string(dtype)) +
                                                ", which has no " + std::to_string(number) +
                                                "; pack both sources together");
      }
      store(*stored, dtype, out.data() + row * size_of(dtype));
    }
  }
  [[nodiscard]] Error too_many_rows() const {
    return Error(ErrorCode::unsupported, before_->name() + " and " + added_->name() +
                                             " have more than 2^32 - 1 rows together; pack them "
                                             "into files of their own");
  }
  void check_number_of_rows() const {
    if (before_->num_rows() + added_->num_rows() >= kMaxAxis) throw too_many_rows();
  }
  void check_number_of_columns() const {
    if (added_->num_columns() == before_->num_columns()) return;
    throw Error(ErrorCode::unsupported,
                added_->name() + " has " + std::to_string(added_->num_columns()) +
                    " columns, and " + before_->name() + " has " +
                    std::to_string(before_->num_columns()) + ": give rows of the same columns");
  }
  void check_column_names() const {
    const NameOf known = before_->column_names();
    const NameOf given = added_->column_names();
    if (!known || !given) return;
    for (std::int64_t column = 0; column < num_columns(); ++column) {
      const std::string there(known(column));
      const std::string here(given(column));
      if (there == here) continue;
      throw Error(ErrorCode::unsupported, "column " + std::to_string(column) + " is " +
                                              cli::quote(here) + " in " + added_->name() + " and " +
                                              cli::quote(there) + " in " + before_->name() +
                                              ": bring the columns into one order");
    }
  }

  std::unique_ptr<MatrixSource> before_;
  std::unique_ptr<MatrixSource> added_;
  std::vector<FieldInfo> added_fields_ = added_->row_fields();
  std::int64_t first_source_row_;
  /// By field: maps each category of the added rows to its number in the file.
  std::map<std::string, std::vector<std::int64_t>> numbers_;
};

}  // namespace

std::int64_t next_source_row(const MatrixSource& file) {
  for (const FieldInfo& field : file.row_fields()) {
    if (field.name != kSourceIndex) continue;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(file.num_rows()));
    file.read_row_field(field, std::as_writable_bytes(std::span(rows)));
    const std::int64_t highest = *std::max_element(rows.begin(), rows.end());
    if (highest < INT64_MAX - kMaxAxis) return highest + 1;
    throw Error(ErrorCode::unsupported, "source_index of " + file.name() + " goes up to " +
                                            std::to_string(highest) +
                                            ", which leaves no numbers for further rows; write it "
                                            "anew with h5pack csr");
  }
  return file.num_rows();
}

std::unique_ptr<MatrixSource> joined(std::unique_ptr<MatrixSource> before,
                                     std::unique_ptr<MatrixSource> added,
                                     std::int64_t first_source_row) {
  return std::make_unique<JoinedMatrix>(std::move(before), std::move(added), first_source_row);
}

}  // namespace h5pack
