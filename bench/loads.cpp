// What an epoch reads: exact counts, no clock.

#include <string>

#include "experiments.hpp"

namespace bench {

void measure_loads(const Case& pictures, Report& report) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(pictures.path);
  chunkio::Loader loader(dataset, pictures.loader_options(chunkio::SourceKind::automatic));
  run_epochs(loader, 1);
  const chunkio::LoaderStats stats = loader.epoch_stats(kEpoch);
  const std::string size = pictures.size.name;
  report.add(
      {"chunk loads per epoch / chunks",
       size,
       at_most(1.0),
       {static_cast<double>(stats.chunk_loads) / static_cast<double>(dataset.info().num_chunks)}});
  report.add(
      {"bytes read / bytes stored",
       size,
       at_most(1.01),
       {static_cast<double>(stats.bytes_read) / static_cast<double>(dataset.info().stored_bytes)}});
}

}  // namespace bench
