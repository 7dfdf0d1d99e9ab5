// Cold page cache: before each turn the file is put out of it (posix_fadvise DONTNEED). fio runs at
// the start and at the end of each round, since a disk that others use drifts, and the highest of
// its figures counts.

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments.hpp"
#include "fio.hpp"
#include "spread.hpp"

namespace bench {

void measure_cold(const Case& pictures, Report& report) {
  using chunkio::SourceKind;
  const std::string size = pictures.size.name;
  const std::string row = "cold, source as chosen by default / fio";
  const std::string no_fio = reason_without_fio();
  if (!no_fio.empty()) {
    report.add_missing(size, {{row, at_least(0.95)}}, no_fio, false);
    return;
  }
  struct Way {
    std::string name;
    SourceKind kind;
    bool direct_io;
  };
  const std::vector<Way> ways = {{"automatic", SourceKind::automatic, false},
                                 {"mapped", SourceKind::mapped, false},
                                 {"scatter", SourceKind::scatter, false},
                                 {"direct", SourceKind::direct, false},
                                 {"scatter, O_DIRECT", SourceKind::scatter, true},
                                 {"direct, O_DIRECT", SourceKind::direct, true}};
  const chunkio::Dataset dataset = chunkio::Dataset::open(pictures.path);
  // A loader of its own for each turn: pages that one has mapped would stay in the cache.
  const auto turn = [&](const Way& way, bool check) {
    chunkio::LoaderOptions options = pictures.loader_options(way.kind);
    options.direct_io = way.direct_io;
    drop_from_page_cache(pictures.path);
    chunkio::Loader loader(dataset, options);
    if (check && check_epoch(loader, pictures.pixels.bytes()) != pictures.order) {
      throw std::runtime_error(way.name + " delivers another order");
    }
    return check ? 0.0 : pictures.total_bytes() / seconds_of([&] { run_epochs(loader, 1); });
  };
  for (const Way& way : ways) turn(way, true);

  std::map<std::string, std::vector<double>> rates;
  std::map<std::string, std::vector<double>> ratios;
  for (std::int64_t round = 0; round < pictures.options.rounds; ++round) {
    const FioRates before = measure_fio(pictures.path);
    std::map<std::string, double> measured;
    for (const Way& way : ways) measured[way.name] = turn(way, false);
    const FioRates after = measure_fio(pictures.path);
    const double direct = std::max(before.random_direct, after.random_direct);
    const double buffered = std::max(before.sequential_buffered, after.sequential_buffered);
    rates["fio, random, O_DIRECT"].push_back(direct);
    rates["fio, sequential, buffered"].push_back(buffered);
    for (const auto& [name, rate] : measured) {
      rates[name].push_back(rate);
      ratios[name].push_back(rate / std::max(direct, buffered));
    }
  }
  const chunkio::Loader chosen(dataset, pictures.loader_options(SourceKind::automatic));
  report.add({row, size, at_least(0.95), ratios["automatic"],
              "default: " + std::string(chunkio::to_string(chosen.source()))});
  for (const Way& way : ways) {
    if (way.kind != SourceKind::automatic) {
      report.add({"cold, " + way.name + " / fio", size, {}, ratios[way.name]});
    }
  }
  for (const auto& [name, values] : rates) {
    std::vector<double> gigabytes;
    for (const double value : values) gigabytes.push_back(value / 1e9);
    report.add({"cold " + name + ", GB/s", size, {}, gigabytes});
  }
  nlohmann::ordered_json detail;
  for (const auto& [name, values] : rates) detail[name] = to_json(spread_of(values));
  report.add_detail(size, "cold",
                    {{"page_cache", "cold (posix_fadvise DONTNEED)"},
                     {"fio_version", fio_version()},
                     {"bytes_per_second", detail}});
}

}  // namespace bench
