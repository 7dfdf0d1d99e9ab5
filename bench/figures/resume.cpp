// Wall time from nothing to the first batch, warm page cache: a loader made and its first batch
// taken, at the start of an epoch and resumed at several batches, interleaved. The batch that is
// slowest to resume counts.

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures/reading_suite.hpp"
#include "harness/spread.hpp"

namespace bench {

void measure_resume(const Case& images, Report& report) {
  const std::string size = images.size.name;
  const chunkio::Dataset dataset = chunkio::Dataset::open(images.path);
  const chunkio::LoaderOptions options = images.loader_options(chunkio::SourceKind::automatic);

  // States at a few places of the epoch, and the first row that must follow.
  struct Place {
    std::int64_t step;
    std::string state;
    std::int64_t row;
  };
  std::vector<Place> places;
  {
    chunkio::Loader loader(dataset, options);
    const std::int64_t steps = loader.num_steps();
    std::vector<std::int64_t> wanted;
    for (const double part : {0.1, 0.37, 0.5, 0.75, 0.93}) {
      wanted.push_back(static_cast<std::int64_t>(part * static_cast<double>(steps)));
    }
    loader.start_epoch(kEpoch);
    for (std::int64_t step = 0; step < steps; ++step) {
      if (std::find(wanted.begin(), wanted.end(), step) != wanted.end()) {
        places.push_back({step, loader.state(), 0});
      }
      const std::optional<chunkio::Batch> batch = loader.next();
      if (!places.empty() && places.back().step == step) {
        places.back().row = batch.value().sample_ids()[0];
      }
    }
  }

  const auto first_batch = [&](const Place* place) {
    std::optional<chunkio::Loader> loader;
    std::optional<chunkio::Batch> batch;
    const double seconds = seconds_of([&] {
      if (place == nullptr) {
        loader.emplace(dataset, options);
      } else {
        loader.emplace(chunkio::Loader::resume(dataset, options, place->state));
      }
      loader->start_epoch(kEpoch);
      batch = loader->next();
    });
    const std::int64_t expected = place == nullptr ? images.order[0] : place->row;
    if (!batch || batch->sample_ids()[0] != expected) {
      throw std::runtime_error("a resumed loader starts with another sample");
    }
    return seconds;
  };
  first_batch(nullptr);
  std::vector<double> start_seconds;
  std::vector<std::vector<double>> resumed_seconds(places.size());
  std::vector<std::vector<double>> ratios(places.size());
  for (std::int64_t round = 0; round < images.options.rounds; ++round) {
    for (std::size_t p = 0; p < places.size(); ++p) {
      const double start = first_batch(nullptr);
      const double resumed = first_batch(&places[p]);
      start_seconds.push_back(start);
      resumed_seconds[p].push_back(resumed);
      ratios[p].push_back(resumed / start);
    }
  }
  std::size_t slowest = 0;
  for (std::size_t p = 1; p < places.size(); ++p) {
    if (spread_of(ratios[p]).median > spread_of(ratios[slowest]).median) slowest = p;
  }
  report.add({"resume at batch k / first batch at 0, wall time", size, ratios.at(slowest),
              at_most(1.1),
              "the slowest of 5 places: batch " + std::to_string(places.at(slowest).step)});
  nlohmann::ordered_json resumed;
  for (std::size_t p = 0; p < places.size(); ++p) {
    resumed["batch " + std::to_string(places[p].step)] = to_json(spread_of(resumed_seconds[p]));
  }
  report.add_detail(
      size, "resume",
      {{"first_batch_seconds", to_json(spread_of(start_seconds))}, {"resumed_seconds", resumed}});
}

}  // namespace bench
