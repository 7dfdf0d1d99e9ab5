// What a whole process allocates (RssAnon + RssShmem of /proc/self/status, sampled each
// millisecond) beyond a memory budget that is exactly what the loader says it needs, for N images
// in 16 epochs and for 16 N in one, so that both deliver as much. The files are hollow: they take
// no disk, and reading them allocates page cache as any file does. Both are read by the scatter
// source, since the larger would not be mapped.
//
// Growth with N is to be none. What is sampled are whole processes, which differ by some huge pages
// from run to run, so three runs are interleaved, and up to 1 MiB is taken for none: far less
// than any copy of something that grows, since 15 N further images have more than that in row
// numbers.

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures/reading_suite.hpp"
#include "harness/cold_file.hpp"
#include "harness/epoch_child.hpp"

namespace bench {

void measure_memory(const Case& images, Report& report) {
  constexpr double kMiB = 1 << 20;
  const std::string size = images.size.name;
  // N images fill the loader's two windows, so that what grows after that grows with N.
  const std::int64_t smaller =
      std::max(images.num_samples, (std::int64_t{1} << 30) / images.size.bytes());
  nlohmann::ordered_json detail;
  std::vector<double> beyond;
  std::vector<double> growth;
  for (int round = 0; round < 3; ++round) {
    double peak[2] = {};
    for (int i = 0; i < 2; ++i) {
      const std::int64_t num_samples = smaller * (i == 0 ? 1 : 16);
      const std::string path = images.scratch.file(size + "-hollow.h5");
      write_hollow_file(path, images.size, num_samples);
      const nlohmann::ordered_json result =
          run_epoch_in_child({{"path", path},
                              {"source", "scatter"},
                              {"threads", images.options.threads},
                              {"batch_size", images.options.batch_size},
                              {"watch_epochs", i == 0 ? 16 : 1}});
      if (result.at("images") != 16 * smaller) throw std::runtime_error("samples were left out");
      peak[i] = result.at("peak_bytes").get<double>();
      beyond.push_back((peak[i] - result.at("memory_budget").get<double>()) / kMiB);
      detail[i == 0 ? "N" : "16 N"].push_back(result);
      drop_from_page_cache(path);
      std::filesystem::remove(path);
    }
    growth.push_back((peak[1] - peak[0]) / kMiB);
  }
  report.add({"peak RssAnon + RssShmem beyond the budget, MiB", size, beyond, at_most(32)});
  report.add({"its growth from N to 16 N, MiB (none, to 1)", size, growth, at_most(1)});
  report.add_detail(size, "memory", detail);
}

}  // namespace bench
