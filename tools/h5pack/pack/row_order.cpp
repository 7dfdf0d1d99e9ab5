#include "h5pack/pack/row_order.hpp"

#include <cstddef>
#include <numeric>
#include <utility>

namespace h5pack {

namespace {

std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<std::int64_t> source_order(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

std::vector<std::int64_t> shuffled_order(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int64_t> order = source_order(n);
  std::uint64_t state = seed;
  for (std::uint64_t i = order.size(); i-- > 1;) {
    const std::uint64_t bound = i + 1;
    const std::uint64_t rejected_below = (0 - bound) % bound;
    std::uint64_t draw = splitmix64(state);
    while (draw < rejected_below) draw = splitmix64(state);
    std::swap(order[i], order[draw % bound]);
  }
  return order;
}

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t i) noexcept {
  std::uint64_t state = i;
  state = seed ^ splitmix64(state);
  return splitmix64(state);
}

}  // namespace h5pack
