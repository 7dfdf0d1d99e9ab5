/// The order in which samples are written: source order, or shuffled once for all readers.
#pragma once

#include <cstdint>
#include <vector>

namespace h5pack {

/// A permutation of 0..n-1 that depends on nothing but its arguments: on every platform row i of a
/// shuffled file is source row `shuffled_order(n, seed)[i]`.
///
/// Fisher-Yates from the end (i = n-1 .. 1: swap i with a draw from 0..i). Draws are SplitMix64
/// outputs (Steele, Lea and Flood, OOPSLA 2014) with the state starting at `seed`; a draw r below
/// 2^64 mod (i+1) is rejected, so that r mod (i+1) is unbiased.
[[nodiscard]] std::vector<std::int64_t> shuffled_order(std::int64_t n, std::uint64_t seed);

/// 0..n-1.
[[nodiscard]] std::vector<std::int64_t> source_order(std::int64_t n);

/// A seed for each of several orders that have nothing to do with each other: those of `seed + i`
/// would be the same draws, one place on.
[[nodiscard]] std::uint64_t seed_of(std::uint64_t seed, std::uint64_t i) noexcept;

}  // namespace h5pack
