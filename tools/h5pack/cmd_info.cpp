/// h5pack info: what a file holds and whether its chunking suits training.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>

#include "command.hpp"
#include "label_blocks.hpp"
#include "options.hpp"
#include "output.hpp"
#include "render_json.hpp"
#include "render_text.hpp"
#include "shuffle_quality.hpp"
#include "structure_check.hpp"

namespace h5pack {
namespace {

struct InfoOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
};

struct LabelFacts {
  std::vector<std::int64_t> class_counts = {};
  bool sorted_by_class = false;
  bool looked = true;  ///< False: there are too many to look at.
};

/// By one look at the labels, and none where the file says both: a shuffled one is not sorted.
LabelFacts facts_of_labels(const chunkio::Dataset& dataset) {
  const chunkio::DatasetInfo& info = dataset.info();
  LabelFacts facts{.class_counts = info.class_counts};
  const bool uncounted = facts.class_counts.empty();
  const bool may_be_sorted = info.order != "shuffled";
  if (!uncounted && !may_be_sorted) return facts;
  // A small file can have any number of them.
  constexpr std::int64_t kMostLabels = std::int64_t{1} << 24;
  facts.looked = info.num_samples <= kMostLabels || !info.labels;
  if (!facts.looked) return facts;
  LabelHistogram histogram;
  LabelCounter neighbours;
  for_each_label_block(dataset, [&](const LabelBlock& block) {
    if (uncounted) histogram.add(block);
    if (!may_be_sorted) return;
    for (const std::int64_t label : block.classes) neighbours.add(label);
  });
  if (uncounted) facts.class_counts = histogram.result();
  const auto summary = neighbours.summary();
  facts.sorted_by_class = summary && summary->sorted_by_class;
  return facts;
}

InfoReport inspect(const InfoOptions& options) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(options.file, options.open);
  InfoReport report;
  report.dataset = dataset.info();
  const chunkio::StoredLayout& stored = report.dataset.stored;
  LabelFacts labels = facts_of_labels(dataset);
  report.class_counts = std::move(labels.class_counts);
  if (stored.chunked) {
    report.chunk_bytes = stored.chunk_shape.num_elements() *
                         static_cast<std::int64_t>(chunkio::size_of(stored.dtype));
    report.cache = chunkio::recommend_cache(report.dataset.num_chunks, report.chunk_bytes);
  }
  report.advice = chunkio::chunking_advice(stored);
  if (!labels.looked) {
    report.advice.emplace_back(
        "There are too many labels to look at them all here: whether the images are sorted by "
        "class is not known, and classes that the file does not count are not counted.");
  }
  if (labels.sorted_by_class) {
    report.advice.emplace_back(
        "The images are sorted by class: with windows smaller than the file, batches in chunk "
        "order have the classes of few chunks, and training learns worse. Shuffle them once "
        "(h5pack repack --order shuffled).");
  }
  return report;
}

}  // namespace

void add_info_command(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* const command =
      app.add_subcommand("info", "Say what a file holds and whether its chunking suits training");
  const auto options = std::make_shared<InfoOptions>();
  command->add_option("FILE", options->file, "An HDF5 file, or shards: 'train-*-of-00008.h5'")
      ->required()
      ->type_name("");
  add_open_options(*command, options->open);
  command->callback([&global, &action, options] {
    action = [&global, options] {
      const InfoReport report = inspect(*options);
      warn_of_damage(report.dataset);
      print(global.json ? info_json(report) : info_text(report, use_colour(stdout)));
      return ExitCode::ok;
    };
  });
}

}  // namespace h5pack
