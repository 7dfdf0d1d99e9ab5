#include "h5pack/sparse/npy_array.hpp"

#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "h5pack/sparse/entry.hpp"
#include "h5pack/sparse/number_type.hpp"

namespace h5pack {

namespace {

using chunkio::DType;
using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 16;

/// What stands behind 'KEY': in a header.
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size());
  while (!value.empty() && (value.front() == ' ' || value.front() == ':')) value.remove_prefix(1);
  return value;
}

std::optional<DType> dtype_of_descr(std::string_view descr) {
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '|')) return std::nullopt;
  const std::string_view kind = descr.substr(1);
  constexpr std::pair<std::string_view, DType> kKinds[] = {
      {"b1", DType::uint8}, {"u1", DType::uint8},   {"i1", DType::int8},   {"u2", DType::uint16},
      {"i2", DType::int16}, {"u4", DType::uint32},  {"i4", DType::int32},  {"u8", DType::uint64},
      {"i8", DType::int64}, {"f4", DType::float32}, {"f8", DType::float64}};
  for (const auto& [name, dtype] : kKinds) {
    if (name == kind) return dtype;
  }
  return std::nullopt;
}

}  // namespace

NpyArray::NpyArray(const ZipFile& archive, const std::string& name)
    : archive_(archive), name_(name + ".npy"), stream_(archive, name_) {
  read_header();
}

void NpyArray::read_header() {
  const auto malformed = [&] {
    return archive_.damaged(cli::quote(name_) + " is no array of NumPy");
  };
  std::array<std::byte, 12> prefix{};
  stream_.read(std::span(prefix).first(8));
  if (std::memcmp(prefix.data(), "\x93NUMPY", 6) != 0) throw malformed();
  const bool wide = std::to_integer<int>(prefix[6]) > 1;
  const std::size_t length_bytes = wide ? 4 : 2;
  stream_.read(std::span(prefix).subspan(8, length_bytes));
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= std::to_integer<std::size_t>(prefix[8 + i]) << (8 * i);
  }
  if (length > kMaxHeaderBytes) throw malformed();
  std::string header(length, '\0');
  stream_.read(std::as_writable_bytes(std::span(header)));

  const std::string_view descr = value_of(header, "'descr'");
  const std::string_view shape = value_of(header, "'shape'");
  if (!descr.starts_with('\'') || !shape.starts_with('(')) throw malformed();
  descr_ = descr.substr(1, descr.find('\'', 1) - 1);
  std::string_view dims = shape.substr(1, shape.find(')') - 1);
  if (dims.ends_with(',')) dims.remove_suffix(1);
  if (dims.find(',') != std::string_view::npos) {
    throw Error(ErrorCode::unsupported,
                cli::quote(archive_.path()) + ": " + cli::quote(name_) +
                    " has more than one axis; save a matrix with scipy.sparse.save_npz");
  }
  // An array without axes has one element.
  size_ = 1;
  if (!dims.empty()) {
    const auto size = cli::parse_number<std::int64_t>(dims);
    if (!size || *size < 0) throw malformed();
    size_ = *size;
  }
  std::int64_t element_bytes = 0;
  const std::string_view digits =
      std::string_view(descr_).substr(std::min<std::size_t>(2, descr_.size()));
  if (const auto number = cli::parse_number<std::int64_t>(digits)) element_bytes = *number;
  if (descr_.size() > 1 && descr_[1] == 'U') element_bytes *= 4;
  const std::int64_t there = stream_.bytes() - static_cast<std::int64_t>(8 + length_bytes + length);
  if (element_bytes < 1 || element_bytes > 4096 || size_ != there / element_bytes ||
      there % element_bytes != 0) {
    throw archive_.damaged(cli::quote(name_) + " is to have " + std::to_string(size_) +
                           " elements of " + cli::quote(descr_) + ", and has " +
                           std::to_string(there) + " bytes");
  }
}

DType NpyArray::dtype() const {
  if (const auto dtype = dtype_of_descr(descr_)) return *dtype;
  throw Error(ErrorCode::unsupported,
              cli::quote(archive_.path()) + ": " + cli::quote(name_) + " has elements of type " +
                  cli::quote(descr_) +
                  ", which is not supported; save it as float32 or another real type");
}

std::span<const std::byte> NpyArray::read_block(std::size_t count, std::size_t element_bytes) {
  block_.resize(count * element_bytes);
  stream_.read(block_);
  done_ += static_cast<std::int64_t>(count);
  return block_;
}

void NpyArray::read_integers(std::span<std::int64_t> out) {
  const DType dtype = this->dtype();
  if (is_float(dtype)) throw archive_.damaged(cli::quote(name_) + " holds fractions");
  const auto block = read_block(out.size(), size_of(dtype));
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    for (std::size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, block.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, std::uint64_t>) {
        if (!std::in_range<std::int64_t>(value)) {
          throw archive_.damaged(cli::quote(name_) + " has the number " + std::to_string(value));
        }
      }
      out[i] = static_cast<std::int64_t>(value);
    }
  });
}

void NpyArray::read_values(std::span<std::uint64_t> out, DType target) {
  const DType dtype = this->dtype();
  const std::int64_t first = done_;
  encode(read_block(out.size(), size_of(dtype)), dtype, target, out, [&](std::size_t i) {
    return cli::quote(archive_.path()) + ": element " +
           std::to_string(first + static_cast<std::int64_t>(i)) + " of " + cli::quote(name_);
  });
}

std::string NpyArray::read_text() {
  const bool wide = descr_.size() > 1 && descr_[1] == 'U';
  std::string text;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(std::min<std::int64_t>(stream_.bytes(), 64)));
  const auto number = cli::parse_number<std::size_t>(
      std::string_view(descr_).substr(std::min<std::size_t>(2, descr_.size())));
  const std::size_t all = number.value_or(0) * (wide ? 4 : 1);
  if (size_ != 1 || all == 0 || all > bytes.size()) {
    throw archive_.damaged(cli::quote(name_) + " is no short text");
  }
  bytes.resize(all);
  stream_.read(bytes);
  for (std::size_t i = 0; i < bytes.size(); i += wide ? 4 : 1) {
    if (bytes[i] != std::byte{}) text += static_cast<char>(bytes[i]);
  }
  return text;
}

}  // namespace h5pack
