#include <cstdint>
#include <string>
#include <utility>

#include <chunkio/statistics.hpp>
#include <chunkio/tuning.hpp>

namespace chunkio {
namespace {

struct LabelFacts {
  std::vector<std::int64_t> class_counts = {};
  bool sorted_by_class = false;
  bool looked = true;  ///< False: there are too many to look at.
};

/// By one look at the labels, and none where the file says both: a shuffled one is not sorted.
LabelFacts facts_of_labels(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
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

}  // namespace

Inspection inspect(const Dataset& dataset) {
  Inspection found{.dataset = dataset.info()};
  const StoredLayout& stored = found.dataset.stored;
  LabelFacts labels = facts_of_labels(dataset);
  found.class_counts = std::move(labels.class_counts);
  if (stored.chunked) {
    found.chunk_bytes =
        stored.chunk_shape.num_elements() * static_cast<std::int64_t>(size_of(stored.dtype));
    found.cache = recommend_cache(found.dataset.num_chunks, found.chunk_bytes);
  }
  // Chunks are of images, and of other numbers whose rows have one length.
  if (!found.dataset.sparse && !found.dataset.encoded) found.advice = chunking_advice(stored);
  if (!labels.looked) {
    found.advice.emplace_back(
        "There are too many labels to look at them all here: whether the samples are sorted by "
        "class is not known, and classes that the file does not count are not counted.");
  }
  if (labels.sorted_by_class) {
    found.advice.push_back(
        std::string("The ") + (found.dataset.has_images() ? "images" : "samples") +
        " are sorted by class: with windows smaller than the file, batches in chunk order have the "
        "classes of few chunks, and training learns worse. Shuffle them once" +
        (found.dataset.has_images() ? " (h5pack repack, in shuffled order)." : "."));
  }
  return found;
}

}  // namespace chunkio
