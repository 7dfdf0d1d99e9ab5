#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "fuzz/fuzz_target.hpp"

namespace chunkio::fuzz {
namespace {

class Mutation {
 public:
  Mutation(std::span<std::byte> buffer, std::size_t size, std::uint64_t seed)
      : buffer_(buffer), size_(std::min(size, buffer.size())), random_(seed) {}

  std::size_t run() {
    for (std::uint64_t times = 1 + below(4); times > 0; --times) once();
    return size_;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

  void once() {
    if (size_ == 0) {
      buffer_[0] = static_cast<std::byte>(random_());
      size_ = 1;
    }
    switch (below(8)) {
      case 0:
        buffer_[below(size_)] ^= static_cast<std::byte>(1U << below(8));
        break;
      case 1:
        buffer_[below(size_)] = static_cast<std::byte>(random_());
        break;
      case 2:
      case 3:
        write_number(interesting_number());
        break;
      case 4:
        write_number(number_at(below(size_)) + below(17) - 8);
        break;
      case 5:
        move_run();
        break;
      case 6:
        insert_run();
        break;
      default:
        if (below(4) == 0) {
          size_ = 1 + below(size_);
        } else {
          erase_run();
        }
    }
  }

  /// What lengths, counts and addresses are when they are wrong.
  std::uint64_t interesting_number() {
    const std::array<std::uint64_t, 8> numbers{
        0,
        1,
        ~std::uint64_t{0},
        std::uint64_t{1} << below(64),
        (std::uint64_t{1} << below(64)) - 1,
        size_,
        size_ - std::min<std::uint64_t>(size_, below(64)),
        below(size_),
    };
    return numbers[below(numbers.size())];
  }
  [[nodiscard]] std::uint64_t number_at(std::size_t at) const {
    std::uint64_t number = 0;
    std::memcpy(&number, buffer_.data() + at, std::min(sizeof number, size_ - at));
    return number;
  }
  /// Of 1, 2, 4 or 8 bytes, mostly where one may be, little or big end first.
  void write_number(std::uint64_t number) {
    const std::size_t bytes = std::size_t{1} << below(4);
    std::size_t at = below(size_);
    if (below(4) != 0) at -= at % bytes;
    if (below(4) == 0) number = __builtin_bswap64(number) >> (64 - 8 * bytes);
    std::memcpy(buffer_.data() + at, &number, std::min(bytes, size_ - at));
  }
  void move_run() {
    const std::size_t from = below(size_), to = below(size_);
    const std::size_t bytes = 1 + below(std::min({size_ - from, size_ - to, std::size_t{512}}));
    std::memmove(buffer_.data() + to, buffer_.data() + from, bytes);
  }
  void insert_run() {
    const std::size_t from = below(size_), to = below(size_);
    const std::size_t bytes =
        std::min(1 + below(std::min(size_ - from, std::size_t{64})), buffer_.size() - size_);
    std::array<std::byte, 64> run{};
    std::memcpy(run.data(), buffer_.data() + from, bytes);
    std::memmove(buffer_.data() + to + bytes, buffer_.data() + to, size_ - to);
    std::memcpy(buffer_.data() + to, run.data(), bytes);
    size_ += bytes;
  }
  void erase_run() {
    const std::size_t at = below(size_);
    const std::size_t bytes = std::min(1 + below(64), size_ - at);
    std::memmove(buffer_.data() + at, buffer_.data() + at + bytes, size_ - at - bytes);
    size_ -= bytes;
  }

  std::span<std::byte> buffer_;
  std::size_t size_;
  std::mt19937_64 random_;
};

}  // namespace

std::size_t mutate(std::span<std::byte> buffer, std::size_t size, std::uint64_t seed) {
  return Mutation(buffer, size, seed).run();
}

}  // namespace chunkio::fuzz
