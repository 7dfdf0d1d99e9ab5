// Data four times the memory that a control group allows, page cache included: an epoch in a child
// process of that group, against fio in the same group.

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures/reading_suite.hpp"
#include "harness/cold_file.hpp"
#include "harness/control_group.hpp"
#include "harness/epoch_child.hpp"
#include "harness/fio.hpp"
#include "harness/spread.hpp"

namespace bench {

void measure_limited(const Case& images, Report& report) {
  const std::string size = images.size.name;
  const std::string row = "data 4x a memory limit, default source / fio under the same limit";
  std::string reason = reason_without_fio();
  const std::int64_t limit_bytes = images.options.limited_bytes / 4;
  std::shared_ptr<ControlGroup> limit;
  try {
    limit = limit_memory(limit_bytes);
  } catch (const std::runtime_error& error) {
    reason = error.what();
  }
  if (!reason.empty()) {
    report.add({row, size, {}, at_least(0.9), reason});
    return;
  }
  const std::string path = images.scratch.file(size + "-limited.h5");
  const std::int64_t num_samples =
      std::max<std::int64_t>(images.options.limited_bytes / images.size.bytes(), 1);
  write_noise_file(path, images.size, num_samples);
  const double bytes = static_cast<double>(num_samples) * static_cast<double>(images.size.bytes());

  struct Way {
    std::string name;
    std::string source;
    bool direct_io;
  };
  const std::vector<Way> ways = {{"default", "auto", false},
                                 {"mapped", "mapped", false},
                                 {"scatter", "scatter", false},
                                 {"direct, O_DIRECT", "direct", true}};
  std::string chosen;
  std::map<std::string, std::vector<double>> rates;
  std::map<std::string, std::vector<double>> ratios;
  for (std::int64_t round = 0; round < images.options.rounds; ++round) {
    const FioRates fio = measure_fio(path, limit->enter());
    rates["fio, random, O_DIRECT"].push_back(fio.random_direct);
    rates["fio, sequential, buffered"].push_back(fio.sequential_buffered);
    for (const Way& way : ways) {
      drop_from_page_cache(path);
      const nlohmann::ordered_json result =
          run_epoch_in_child({{"path", path},
                              {"source", way.source},
                              {"direct_io", way.direct_io},
                              {"threads", images.options.threads},
                              {"batch_size", images.options.batch_size}},
                             limit->enter());
      if (result.at("images") != num_samples) throw std::runtime_error("samples were left out");
      if (way.source == "auto") chosen = result.at("source").get<std::string>();
      const double rate = bytes / result.at("seconds").get<double>();
      rates[way.name].push_back(rate);
      ratios[way.name].push_back(rate / fio.higher());
    }
  }
  report.add({row, size, ratios["default"], at_least(0.9), "default: " + chosen});
  for (const Way& way : ways) {
    if (way.source != "auto") {
      report.add({"data 4x a memory limit, " + way.name + " / fio", size, ratios[way.name]});
    }
  }
  nlohmann::ordered_json detail;
  for (const auto& [name, values] : rates) detail[name] = to_json(spread_of(values));
  report.add_detail(size, "limited",
                    {{"bytes", bytes}, {"limit_bytes", limit_bytes}, {"bytes_per_second", detail}});
  std::filesystem::remove(path);
}

}  // namespace bench
