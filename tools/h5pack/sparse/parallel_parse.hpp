/// Blocks of lines parsed by several threads and taken in the order of the file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "h5pack/sparse/line_blocks.hpp"

namespace h5pack {

/// Calls `take` for what `parse` made of each block, one at a time and in order; `parse` runs on
/// several threads. What any of them throws is thrown; of several errors of `parse` that of the
/// first block, since a later one waits for its turn in `take`.
/// \param memory_budget  blocks take an eighth of it, unless there is but one.
/// \param parse  (const LineBlock&) -> Parsed; returns errors in it rather than throwing them.
template <class Parsed>
void parse_blocks(LineBlocks& blocks, std::int64_t memory_budget,
                  const std::function<Parsed(const LineBlock&)>& parse,
                  const std::function<void(Parsed&&)>& take) {
  // Of a block of a megabyte: the text, its parts, and a number of eight bytes for each few
  // letters.
  constexpr std::int64_t kBytesABlock = std::int64_t{6} << 20;
  const auto in_flight = static_cast<std::size_t>(std::clamp<std::int64_t>(
      memory_budget / 8 / kBytesABlock, 1, 2 * tbb::this_task_arena::max_concurrency()));
  tbb::parallel_pipeline(
      in_flight,
      tbb::make_filter<void, LineBlock>(tbb::filter_mode::serial_in_order,
                                        [&](tbb::flow_control& control) {
                                          std::optional<LineBlock> block = blocks.next();
                                          if (!block) control.stop();
                                          return block ? std::move(*block) : LineBlock{};
                                        }) &
          tbb::make_filter<LineBlock, Parsed>(
              tbb::filter_mode::parallel, [&](const LineBlock& block) { return parse(block); }) &
          tbb::make_filter<Parsed, void>(tbb::filter_mode::serial_in_order,
                                         [&](Parsed parsed) { take(std::move(parsed)); }));
}

}  // namespace h5pack
