#include "h5pack/dataset/copy_loader.hpp"

#include <algorithm>

#include <chunkio/error.hpp>
#include <chunkio/verify.hpp>

namespace h5pack {

chunkio::Loader copy_loader(const chunkio::Dataset& dataset, const CopyOptions& options) {
  // Large enough that readers do not wait for each other, small beside the budget.
  constexpr std::int64_t kWindowBytes = std::int64_t{64} << 20;
  try {
    return {dataset,
            {.batch_size = options.batch_rows,
             .rows = options.rows,
             .order = {.mode = chunkio::OrderMode::sequential,
                       .window_bytes = std::min(kWindowBytes, options.memory_budget / 8 + 1)},
             .memory = {.budget = options.memory_budget,
                        .prefetch_depth = 2,
                        .max_held = options.max_held},
             .io = {.verify = options.check_digests && why_not_verifiable(dataset).empty()
                                  ? chunkio::Verify::always
                                  : chunkio::Verify::off,
                    .num_epochs = 1}}};
  } catch (const chunkio::Error& error) {
    if (error.code() != chunkio::ErrorCode::out_of_resources) throw;
    // What could be lowered instead is chosen here, by the budget.
    std::string text = error.what();
    text.resize(std::min(text.find(", or lower window_bytes"), text.size()));
    throw error.with_message(text + options.memory_share);
  }
}

}  // namespace h5pack
