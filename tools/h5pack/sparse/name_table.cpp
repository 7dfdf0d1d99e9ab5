#include "h5pack/sparse/name_table.hpp"

#include <chunkio/error.hpp>

#include "h5pack/sparse/entry.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace h5pack {

std::uint64_t NameTable::hash(std::string_view name) noexcept {
  return XXH3_64bits(name.data(), name.size());
}

std::string_view NameTable::name(std::int64_t number) const noexcept {
  const auto i = static_cast<std::size_t>(number);
  const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(text_).substr(begin, ends_[i] - begin);
}

std::int64_t NameTable::bytes() const noexcept {
  return static_cast<std::int64_t>(text_.capacity() + (ends_.capacity() + hashes_.capacity()) * 8 +
                                   slots_.capacity() * sizeof(Slot));
}

void NameTable::grow() {
  std::vector<Slot> slots(slots_.empty() ? 1024 : 2 * slots_.size());
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    std::size_t at = hashes_[i] & (slots.size() - 1);
    while (slots[at].number != 0) at = (at + 1) & (slots.size() - 1);
    slots[at] = {static_cast<std::uint32_t>(hashes_[i] >> 32), static_cast<std::uint32_t>(i + 1)};
  }
  slots_ = std::move(slots);
}

std::uint32_t NameTable::number_of(std::string_view name, std::uint64_t hash) {
  if (2 * (ends_.size() + 1) > slots_.size()) grow();
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].number != 0; at = (at + 1) & (slots_.size() - 1)) {
    const std::uint32_t number = slots_[at].number - 1;
    if (slots_[at].tag == tag && this->name(number) == name) return number;
  }
  if (size() >= kMaxAxis - 1) {
    throw chunkio::Error(chunkio::ErrorCode::unsupported,
                         "there are more than 2^32 - 1 different names");
  }
  slots_[at] = {tag, static_cast<std::uint32_t>(ends_.size() + 1)};
  text_ += name;
  ends_.push_back(text_.size());
  hashes_.push_back(hash);
  return slots_[at].number - 1;
}

}  // namespace h5pack
