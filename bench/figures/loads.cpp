// What an epoch reads: exact counts, no clock.

#include <string>

#include "figures/reading_suite.hpp"

namespace bench {

void add_load_figures(const std::string& size, const std::string& of_file,
                      const chunkio::Loader& loader, Report& report) {
  const chunkio::LoaderStats stats = loader.epoch_stats(kEpoch);
  const chunkio::DatasetInfo& info = loader.dataset().info();
  const bool plain = of_file.empty();
  report.add({plain ? "chunk loads per epoch / chunks" : of_file + ": chunk loads / chunks",
              size,
              {static_cast<double>(stats.chunk_loads) / static_cast<double>(info.num_chunks)},
              at_most(1.0)});
  report.add({(plain ? "" : of_file + ": ") + "bytes read / bytes stored",
              size,
              {static_cast<double>(stats.bytes_read) / static_cast<double>(info.stored_bytes)},
              at_most(1.01)});
}

void measure_loads(const Case& images, Report& report) {
  chunkio::Loader loader(chunkio::Dataset::open(images.path),
                         images.loader_options(chunkio::SourceKind::automatic));
  run_epochs(loader, 1);
  add_load_figures(images.size.name, "", loader, report);
}

}  // namespace bench
