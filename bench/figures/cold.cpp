// Cold page cache: before each turn the file is put out of it. fio runs at the start and at the end
// of each round, since a disk that others use drifts, and the highest of its figures counts. The
// ways begin in turn.
//
// Each loader has delivered an epoch before: the first writes of its ring bring memory that the
// host of a virtual machine may have taken back, which can take longer than the disk.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures/reading_suite.hpp"
#include "harness/cold_file.hpp"
#include "harness/fio.hpp"
#include "harness/spread.hpp"

namespace bench {

void measure_cold(const Case& images, Report& report) {
  using chunkio::SourceKind;
  const std::string size = images.size.name;
  const std::string row = "cold, source as chosen by default / fio";
  const std::string no_fio = reason_without_fio();
  if (!no_fio.empty()) {
    report.add({row, size, {}, at_least(0.95), no_fio});
    return;
  }
  struct Way {
    std::string name;
    SourceKind kind;
    bool direct_io;
    std::optional<chunkio::Loader> loader = {};
  };
  std::array<Way, 6> ways = {{{"automatic", SourceKind::automatic, false},
                              {"mapped", SourceKind::mapped, false},
                              {"scatter", SourceKind::scatter, false},
                              {"direct", SourceKind::direct, false},
                              {"scatter, O_DIRECT", SourceKind::scatter, true},
                              {"direct, O_DIRECT", SourceKind::direct, true}}};
  const chunkio::Dataset dataset = chunkio::Dataset::open(images.path);
  for (Way& way : ways) {
    chunkio::LoaderOptions options = images.loader_options(way.kind);
    options.io.direct_io = way.direct_io;
    way.loader.emplace(dataset, options);
    drop_from_page_cache(images.path);
    if (check_epoch(*way.loader, images.pixels.bytes()) != images.order) {
      throw std::runtime_error(way.name + " delivers another order");
    }
  }

  const auto reason_of = [&](const std::string& name) {
    const auto way = std::find_if(ways.begin(), ways.end(),
                                  [&](const Way& candidate) { return candidate.name == name; });
    return way->loader->source_reason();
  };
  std::map<std::string, std::vector<double>> rates;
  std::map<std::string, std::vector<double>> ratios;
  for (std::int64_t round = 0; round < images.options.rounds; ++round) {
    const FioRates before = measure_fio(images.path);
    std::map<std::string, double> measured;
    for (Way& way : ways) {
      drop_from_page_cache(images.path);
      measured[way.name] = images.total_bytes() / seconds_of([&] { run_epochs(*way.loader, 1); });
    }
    std::rotate(ways.begin(), ways.begin() + 1, ways.end());
    const FioRates after = measure_fio(images.path);
    const double direct = std::max(before.random_direct, after.random_direct);
    const double buffered = std::max(before.sequential_buffered, after.sequential_buffered);
    rates["fio, random, O_DIRECT"].push_back(direct);
    rates["fio, sequential, buffered"].push_back(buffered);
    for (const auto& [name, rate] : measured) {
      rates[name].push_back(rate);
      ratios[name].push_back(rate / std::max(direct, buffered));
    }
  }
  report.add({row, size, ratios.at("automatic"), at_least(0.95), reason_of("automatic")});
  report.add({"cold, as files larger than memory are read / fio", size,
              ratios.at("direct, O_DIRECT"), at_least(0.95)});
  for (const auto& [name, values] : ratios) {
    report.add({"cold, " + name + " / fio", size, values});
  }
  for (const auto& [name, values] : rates) {
    std::vector<double> gigabytes;
    for (const double value : values) gigabytes.push_back(value / 1e9);
    report.add({"cold " + name + ", GB/s", size, gigabytes});
  }
  nlohmann::ordered_json detail;
  for (const auto& [name, values] : rates) detail[name] = to_json(spread_of(values));
  report.add_detail(size, "cold",
                    {{"page_cache", "cold (at most 1 % resident)"},
                     {"fio_version", fio_version()},
                     {"bytes_per_second", detail}});
}

}  // namespace bench
