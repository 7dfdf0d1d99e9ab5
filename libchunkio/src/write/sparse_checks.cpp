#include "write/sparse_checks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "h5/description_reader.hpp"
#include "h5/error_stack.hpp"
#include "h5/schema.hpp"
#include "h5/sparse_structure.hpp"

namespace chunkio::write {
namespace {

/// The most that names may take, padded: beyond, one long name makes a file of padding.
constexpr std::int64_t kMaxNamesBytes = std::int64_t{1} << 36;

[[nodiscard]] Error invalid(const std::string& what) {
  return Error(ErrorCode::invalid_argument, "sparse specification: " + what);
}

[[nodiscard]] bool is_numeric(DType dtype) noexcept {
  return size_of(dtype) != 0 && dtype != DType::float16 && dtype != DType::bfloat16;
}

void check_rows(const SparseSpec& spec) {
  const auto num_rows = static_cast<std::int64_t>(spec.row_lengths.size());
  if (num_rows < 1 || num_rows > h5::kMaxSamples || spec.num_columns < 1) {
    throw invalid("there must be at least one row and one column, got " + std::to_string(num_rows) +
                  " and " + std::to_string(spec.num_columns));
  }
  if (!is_numeric(spec.dtype)) {
    throw invalid("values are " + std::string(to_string(spec.dtype)) +
                  ", which files do not have; give float32");
  }
  const std::int64_t most = h5::kMaxSampleBytes / entry_bytes(spec);
  std::int64_t entries = 0;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::int64_t length = spec.row_lengths[static_cast<std::size_t>(row)];
    if (length < 0 || length > spec.num_columns) {
      throw invalid("row " + std::to_string(row) + " cannot have " + std::to_string(length) +
                    " entries in " + std::to_string(spec.num_columns) + " columns");
    }
    if (length > most) {
      throw invalid("row " + std::to_string(row) + " has " + std::to_string(length) +
                    " entries; a row takes at most 1 GiB");
    }
    const auto sum = base::checked_add(entries, length * entry_bytes(spec));
    if (!sum) throw invalid("the entries are more than a file can hold");
    entries = *sum;
  }
  if (entries == 0) throw invalid("no row has an entry, so there would be nothing to read");
}

/// Whether a text is UTF-8 of the shortest form, without surrogates (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char first = at(i++);
    if (first < 0x80) continue;
    const std::size_t more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (first < 0xc2 || first > 0xf4 || more > text.size() - i) return false;
    unsigned char lowest = 0x80;
    unsigned char highest = 0xbf;
    if (first == 0xe0) lowest = 0xa0;
    if (first == 0xed) highest = 0x9f;
    if (first == 0xf0) lowest = 0x90;
    if (first == 0xf4) highest = 0x8f;
    for (std::size_t end = i + more; i < end; ++i) {
      if (at(i) < lowest || at(i) > highest) return false;
      lowest = 0x80;
      highest = 0xbf;
    }
  }
  return true;
}

/// \param most  bytes of all names, padded to the longest.
/// \returns the bytes of the longest name, at least 1.
std::int64_t check_names(const std::function<std::string_view(std::int64_t)>& name_of,
                         std::int64_t count, const std::string& what,
                         std::int64_t most = kMaxNamesBytes) {
  std::size_t longest = 1;
  if (!name_of) return static_cast<std::int64_t>(std::to_string(count - 1).size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string_view name = name_of(i);
    const std::string shown = "the name of " + what + " " + std::to_string(i);
    if (name.find('\0') != std::string_view::npos) throw invalid(shown + " contains a zero byte");
    if (!is_utf8(name)) {
      throw invalid(shown + ", '" + h5::printable(name) +
                    "', is not UTF-8; convert it, as iconv does");
    }
    if (std::cmp_greater(name.size(), h5::kMaxNameBytes)) {
      throw invalid(shown + " is longer than " + std::to_string(h5::kMaxNameBytes) + " bytes");
    }
    longest = std::max(longest, name.size());
  }
  const auto bytes = static_cast<std::int64_t>(longest);
  if (count > most / bytes) {
    throw invalid("the names of every " + what + ", padded to the longest, take more than " +
                  std::to_string(most) + " bytes");
  }
  return bytes;
}

void check_fields(const SparseSpec& spec) {
  std::set<std::string> taken = {h5::sparse::kNames, h5::kSampleDigests};
  for (const FieldData& field : spec.fields) {
    const FieldInfo& info = field.info;
    const std::string shown = "field '" + info.name + "'";
    if (info.name.empty() || info.name.find('/') != std::string::npos || info.name == "." ||
        info.name == ".." || info.name.find('\0') != std::string::npos ||
        std::cmp_greater(info.name.size(), h5::kMaxNameBytes)) {
      throw invalid(shown + " has no name that a column of a table can have");
    }
    if (!taken.insert(info.name).second) throw invalid(shown + ": the name is taken");
    if (!is_numeric(info.dtype) || info.row_shape.rank() != 0) {
      throw invalid(shown + " must be one number a row");
    }
    if (info.name == h5::kSourceIndex && info.dtype != DType::int64) {
      throw invalid("source_index must be int64 [N]");
    }
    std::size_t bytes = 0;
    field.for_each_block([&](std::span<const std::byte> rows) { bytes += rows.size(); });
    if (bytes != spec.row_lengths.size() * size_of(info.dtype)) {
      throw invalid(shown + " has " + std::to_string(bytes) + " bytes for " +
                    std::to_string(spec.row_lengths.size()) + " rows");
    }
  }
}

/// \throws Error invalid_argument unless all numbers of the field are -1 to `end` - 1.
void check_codes(const FieldData& field, std::int64_t end) {
  const auto check = [&](auto type) {
    using Code = decltype(type);
    field.for_each_block([&](std::span<const std::byte> bytes) {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(Code)) {
        Code code{};
        std::memcpy(&code, bytes.data() + at, sizeof(code));
        if (std::cmp_greater_equal(code, -1) && std::cmp_less(code, end)) continue;
        throw invalid("field '" + field.info.name + "' has the number " + std::to_string(code) +
                      "; those of its " + std::to_string(end) + " categories are -1 to " +
                      std::to_string(end - 1));
      }
    });
  };
  switch (field.info.dtype) {
    case DType::uint8:
      return check(std::uint8_t{});
    case DType::int8:
      return check(std::int8_t{});
    case DType::uint16:
      return check(std::uint16_t{});
    case DType::int16:
      return check(std::int16_t{});
    case DType::uint32:
      return check(std::uint32_t{});
    case DType::int32:
      return check(std::int32_t{});
    case DType::uint64:
      return check(std::uint64_t{});
    case DType::int64:
      return check(std::int64_t{});
    default:
      throw invalid("field '" + field.info.name + "' has categories, and " +
                    std::string(to_string(field.info.dtype)) + " instead of whole numbers");
  }
}

void check_categories(const SparseSpec& spec) {
  for (const auto& [name, texts] : spec.categories) {
    const auto field = std::find_if(spec.fields.begin(), spec.fields.end(),
                                    [&](const FieldData& one) { return one.info.name == name; });
    if (field == spec.fields.end()) throw invalid("there is no field '" + name + "' of categories");
    check_names(
        [&](std::int64_t i) { return std::string_view(texts[static_cast<std::size_t>(i)]); },
        std::ssize(texts), "category of field '" + name + "'", h5::kMaxNamesBytes);
    if (std::set<std::string_view>(texts.begin(), texts.end()).size() != texts.size()) {
      throw invalid("two categories of field '" + name + "' are alike");
    }
    check_codes(*field, std::ssize(texts));
  }
}

void check_text(const std::string& text, std::int64_t most, const std::string& what) {
  if (std::cmp_greater(text.size(), most) || text.find('\0') != std::string::npos) {
    throw invalid(what + " has a zero byte, or more than " + std::to_string(most) + " bytes");
  }
}

}  // namespace

std::int64_t entry_bytes(const SparseSpec& spec) noexcept {
  return static_cast<std::int64_t>(size_of(h5::index_dtype(spec.num_columns)) +
                                   size_of(spec.dtype));
}

NameWidths validate(const SparseSpec& spec) {
  check_rows(spec);
  check_fields(spec);
  check_categories(spec);
  check_text(spec.split, h5::kMaxNameBytes, "split");
  check_text(spec.options_json, h5::kMaxTextBytes, "options_json");
  if (spec.shard) {
    const auto rows = static_cast<std::int64_t>(spec.row_lengths.size());
    check_text(spec.shard->set, h5::kMaxNameBytes, "shard set");
    if (!h5::is_possible(*spec.shard, rows)) {
      throw invalid("shard " + std::to_string(spec.shard->index) + " of " +
                    std::to_string(spec.shard->count) + " cannot hold " + std::to_string(rows) +
                    " of " + std::to_string(spec.shard->total_rows) + " rows from row " +
                    std::to_string(spec.shard->first_row) + " on");
    }
  }
  if (spec.order != "shuffled" && spec.order != "source") {
    throw invalid("order must be shuffled or source, got '" + spec.order + "'");
  }
  NameWidths widths;
  widths.rows =
      check_names(spec.row_name, static_cast<std::int64_t>(spec.row_lengths.size()), "row");
  if (spec.column_name || spec.num_columns <= h5::sparse::kMaxNumberedColumns) {
    widths.columns = check_names(spec.column_name, spec.num_columns, "column");
  }
  return widths;
}

}  // namespace chunkio::write
