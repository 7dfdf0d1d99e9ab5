/// Numbers names in the order in which they are first met.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h5pack {

class NameTable {
 public:
  /// The digest by which names are found; other threads may compute it.
  [[nodiscard]] static std::uint64_t hash(std::string_view name) noexcept;

  /// The number of the name, from 0; a new one if it is new. \param hash  of it.
  /// \throws Error unsupported: more names than kMaxAxis.
  std::uint32_t number_of(std::string_view name, std::uint64_t hash);

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(ends_.size());
  }
  /// Valid until the next number_of(). \pre 0 <= number < size().
  [[nodiscard]] std::string_view name(std::int64_t number) const noexcept;
  /// Memory that is taken.
  [[nodiscard]] std::int64_t bytes() const noexcept;

 private:
  struct Slot {
    std::uint32_t tag = 0;     // The upper half of the hash.
    std::uint32_t number = 0;  // Plus 1; 0: empty.
  };
  void grow();

  std::string text_;                 // All names, one behind the other.
  std::vector<std::uint64_t> ends_;  // Of each in it.
  std::vector<std::uint64_t> hashes_;
  std::vector<Slot> slots_;  // A power of two, at most half full.
};

}  // namespace h5pack
