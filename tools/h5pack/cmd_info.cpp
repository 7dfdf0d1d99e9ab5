/// h5pack info: what a file holds and whether its chunking suits training.
#include <memory>
#include <string>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>

#include "command.hpp"
#include "label_blocks.hpp"
#include "options.hpp"
#include "output.hpp"
#include "render_json.hpp"
#include "render_text.hpp"

namespace h5pack {
namespace {

struct InfoOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
};

// Labels of foreign files can be anything, row ids for instance; those are no classes.
constexpr std::int64_t kMaxClassesCounted = 100'000;

/// Samples of each class, or with each attribute set, as the labels say; empty if labels are
/// neither.
std::vector<std::int64_t> count_labels(const chunkio::Dataset& dataset) {
  std::vector<std::int64_t> counts;
  bool countable = true;
  for_each_label_block(dataset, [&](const LabelBlock& block) {
    if (!countable) return;
    if (block.num_attributes != 0) {
      counts.resize(block.num_attributes);
      for (std::size_t i = 0; i < block.attributes.size(); ++i) {
        counts[i % block.num_attributes] += block.attributes[i] != 0 ? 1 : 0;
      }
    }
    for (const std::int64_t label : block.classes) {
      if (label < 0 || label >= kMaxClassesCounted) {
        countable = false;
        return;
      }
      if (static_cast<std::size_t>(label) >= counts.size()) {
        counts.resize(static_cast<std::size_t>(label) + 1);
      }
      ++counts[static_cast<std::size_t>(label)];
    }
  });
  return countable ? counts : std::vector<std::int64_t>();
}

InfoReport inspect(const InfoOptions& options) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(options.file, options.open);
  InfoReport report;
  report.dataset = dataset.info();
  const chunkio::StoredLayout& stored = report.dataset.stored;
  report.class_counts =
      report.dataset.class_counts.empty() ? count_labels(dataset) : report.dataset.class_counts;
  if (stored.chunked) {
    report.chunk_bytes = stored.chunk_shape.num_elements() *
                         static_cast<std::int64_t>(chunkio::size_of(stored.dtype));
    report.cache = chunkio::recommend_cache(report.dataset.num_chunks, report.chunk_bytes);
  }
  report.advice = chunkio::chunking_advice(stored);
  return report;
}

}  // namespace

void add_info_command(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* const command =
      app.add_subcommand("info", "Say what a file holds and whether its chunking suits training");
  const auto options = std::make_shared<InfoOptions>();
  command->add_option("FILE", options->file, "An HDF5 file")->required()->type_name("");
  add_open_options(*command, options->open);
  command->callback([&global, &action, options] {
    action = [&global, options] {
      const InfoReport report = inspect(*options);
      print(global.json ? info_json(report) : info_text(report, use_colour(stdout)));
      return ExitCode::ok;
    };
  });
}

}  // namespace h5pack
