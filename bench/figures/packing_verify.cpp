// h5pack verify against fio, with nothing of the file in the page cache. fio reads the same file
// from its start to its end before and after each turn, through the page cache and round it; the
// highest of its figures counts, since a disk that others use drifts.

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures/packing_case.hpp"
#include "harness/cold_file.hpp"
#include "harness/fio.hpp"
#include "harness/spread.hpp"

namespace bench {

void measure_verify(PackingCase& packing, Report& report) {
  const std::string size = kLarge.name;
  const std::string row = "h5pack verify / fio sequential, cold";
  const std::string no_fio = reason_without_fio();
  if (!no_fio.empty()) {
    report.add({row, size, {}, at_least(0.9), no_fio});
    return;
  }
  const std::string path = packing.scratch.file("verify.h5");
  write_noise_file(path, kLarge,
                   std::max<std::int64_t>(packing.options.repack_bytes / kLarge.bytes(), 1));
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));

  std::vector<double> ratios;
  std::vector<double> by_its_clock;
  std::vector<double> rates;
  std::vector<double> fio_rates;
  for (std::int64_t round = 0; round < packing.options.rounds; ++round) {
    const double before = measure_sequential_fio(path);
    drop_from_page_cache(path);
    const PackRun run = packing.run_h5pack({"verify", path});
    const double fio = std::max(before, measure_sequential_fio(path));
    if (!run.report.at("damaged").empty()) throw std::runtime_error(path + " is damaged");
    ratios.push_back(bytes / run.seconds / fio);
    by_its_clock.push_back(bytes / run.report.at("seconds").get<double>() / fio);
    rates.push_back(bytes / run.seconds / 1e9);
    fio_rates.push_back(fio / 1e9);
  }
  std::filesystem::remove(path);
  report.add({row, size, ratios, at_least(0.9)});
  report.add({row + ", without starting the program", size, by_its_clock});
  report.add({"h5pack verify, GB/s", size, rates});
  report.add({"fio sequential, GB/s", size, fio_rates});
  report.add_detail(size, "verify",
                    {{"bytes", bytes},
                     {"fio_version", fio_version()},
                     {"bytes_per_second", to_json(spread_of(rates))}});
}

}  // namespace bench
