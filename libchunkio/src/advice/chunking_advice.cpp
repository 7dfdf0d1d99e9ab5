#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>
#include <chunkio/tuning.hpp>

#include "advice/quantities.hpp"
#include "base/checked_math.hpp"

namespace chunkio {
namespace {

using advice::bytes_text;
using advice::count_text;
using advice::factor_text;

// Advice begins outside these bounds. Below the first, overhead per chunk outweighs its bytes;
// above the second, a default window mixes fewer than four chunks.
constexpr double kSmallChunkBytes = 64 << 10;
constexpr double kLargeChunkBytes = 64 << 20;
// Storage beyond this multiple of the images is worth a word.
constexpr double kNotableWaste = 1.1;

/// A finding and by what factor it slows reading or swells the file, to put the worst first.
struct Finding {
  double cost = 1;
  std::string text;
};

/// The figures that findings are made of. Floating point, since they are only spoken of and a
/// third-party file's product of axes may exceed 63 bits.
struct ChunkFigures {
  double num_samples = 0;
  double sample_bytes = 0;
  double chunk_bytes = 0;
  double chunk_samples = 0;  // k
  double pieces = 1;         // chunks that one sample touches
  double num_chunks = 0;
  std::string cut_axes;       // "axis 2: 217 of 218"
  std::string better_chunks;  // "chunks=(36,3,218,178)"
};

ChunkFigures measure(const StoredLayout& stored) {
  ChunkFigures figures;
  const auto element_bytes = static_cast<double>(size_of(stored.dtype));
  figures.num_samples = static_cast<double>(stored.shape[0]);
  figures.sample_bytes = element_bytes;
  figures.chunk_bytes = element_bytes * static_cast<double>(stored.chunk_shape[0]);
  figures.chunk_samples = static_cast<double>(std::min(stored.chunk_shape[0], stored.shape[0]));
  std::string sample_axes;
  for (std::size_t axis = 1; axis < stored.shape.rank(); ++axis) {
    const std::int64_t size = stored.shape[axis];
    const std::int64_t chunk = stored.chunk_shape[axis];
    figures.sample_bytes *= static_cast<double>(size);
    figures.chunk_bytes *= static_cast<double>(chunk);
    figures.pieces *= static_cast<double>(base::ceil_divide(size, chunk));
    sample_axes.append(",").append(std::to_string(size));
    if (chunk < size) {
      figures.cut_axes += (figures.cut_axes.empty() ? "axis " : ", axis ") + std::to_string(axis) +
                          ": " + std::to_string(chunk) + " of " + std::to_string(size);
    }
  }
  figures.num_chunks =
      static_cast<double>(base::ceil_divide(stored.shape[0], stored.chunk_shape[0])) *
      figures.pieces;
  const double fitting = std::floor(static_cast<double>(kDefaultChunkBytes) / figures.sample_bytes);
  const double better = std::clamp(fitting, 1.0, figures.num_samples);
  figures.better_chunks =
      "chunks=(" + std::to_string(static_cast<std::int64_t>(better)) + sample_axes + ")";
  return figures;
}

void advise_on_cuts(const StoredLayout& stored, const ChunkFigures& figures,
                    std::vector<Finding>& findings) {
  const double touched_bytes = figures.pieces * figures.chunk_bytes;
  const double amplification = touched_bytes / figures.sample_bytes;
  const double waste =
      figures.num_chunks * figures.chunk_bytes / (figures.num_samples * figures.sample_bytes);
  // Filters squeeze the unused part of a chunk to nothing.
  const bool wasteful = stored.filters.empty() && waste >= kNotableWaste;
  if (figures.pieces > 1) {
    findings.push_back(
        {amplification,
         "Chunks " + stored.chunk_shape.to_string() + " cut every image into " +
             count_text(figures.pieces, "piece") + " (" + figures.cut_axes + "): one image of " +
             bytes_text(figures.sample_bytes) + " touches " + count_text(figures.pieces, "chunk") +
             ", " + bytes_text(touched_bytes) + " if they are read whole (" +
             factor_text(amplification) + ")" +
             (wasteful ? ", and the file takes " + factor_text(waste) +
                             " the bytes of its images, since chunks at the edge are stored whole"
                       : std::string()) +
             ". Store whole images, " + figures.better_chunks +
             ", or let h5pack repack write the file again: it never cuts one."});
  } else if (wasteful &&
             (waste - 1) * figures.num_samples * figures.sample_bytes > kDefaultChunkBytes) {
    findings.push_back({waste, "Chunks " + stored.chunk_shape.to_string() +
                                   " are larger than what they hold: the file takes " +
                                   factor_text(waste) + " the bytes of its images. Use " +
                                   figures.better_chunks +
                                   ", or let h5pack repack write the file again."});
  }
}

void advise_on_size(const StoredLayout& stored, const ChunkFigures& figures,
                    std::vector<Finding>& findings) {
  const auto window = static_cast<double>(kDefaultWindowBytes);
  const std::string k = figures.better_chunks;
  const auto better = static_cast<double>(kDefaultChunkBytes);
  if (figures.chunk_bytes > kLargeChunkBytes && figures.num_chunks == 1) {
    findings.push_back(
        {figures.chunk_bytes / better,
         "All " + count_text(figures.num_samples, "image") + " are in one chunk of " +
             bytes_text(figures.chunk_bytes) +
             ": a reader that works in chunks loads the whole dataset for its first image and has "
             "nothing to shuffle. Use " +
             k + ", or let h5pack repack write the file again."});
  } else if (figures.chunk_bytes > kLargeChunkBytes) {
    findings.push_back(
        {figures.chunk_bytes / better,
         "A chunk of " + bytes_text(figures.chunk_bytes) + " (" +
             count_text(figures.chunk_samples, "image") + ") is large: a shuffle window of " +
             bytes_text(window) + " mixes only " +
             count_text(std::max(1.0, std::floor(window / figures.chunk_bytes)), "chunk") +
             ", and each one in flight takes that much memory. Use " + k +
             ", or let h5pack repack write the file again, in chunks of 4 MiB by default."});
  } else if (figures.chunk_bytes < kSmallChunkBytes && figures.num_chunks > 1) {
    findings.push_back(
        {kSmallChunkBytes / figures.chunk_bytes,
         "Chunks of " + bytes_text(figures.chunk_bytes) +
             " are small: " + count_text(figures.num_chunks, "chunk") +
             " to look up in the index and read one by one, where reads of " + bytes_text(better) +
             " run at the full speed of a disk. Use " + k +
             ", or let h5pack repack write the file again, in chunks of 4 MiB by default."});
  }

  // What libhdf5 does (tried with 1.10.8): a chunk with filters is read and decoded whole, always;
  // one without, whole if the cache can hold it, else just the bytes asked for.
  const auto cache = static_cast<double>(ChunkCacheSettings{}.rdcc_nbytes);
  const bool filtered = !stored.filters.empty();
  const double images_read = figures.pieces * figures.chunk_bytes / figures.sample_bytes;
  if (figures.chunk_bytes > cache && (filtered || figures.pieces > 1) && images_read > 1) {
    const std::string cost =
        filtered ? "every image in random order reads and decodes its chunk again, " +
                       bytes_text(figures.pieces * figures.chunk_bytes) + " for " +
                       bytes_text(figures.sample_bytes) + " (" + factor_text(images_read) + ")"
                 : "nothing is kept between reads and every image in random order takes at least " +
                       count_text(figures.pieces, "read") + " of the file";
    findings.push_back(
        {filtered ? images_read : figures.pieces,
         "A chunk of " + bytes_text(figures.chunk_bytes) +
             " does not fit h5py's default cache of " + bytes_text(cache) + ": " + cost +
             ". Read in chunk order (order = chunk_shuffled, the default of chunkio and "
             "h5pack stream), "
             "which "
             "loads each chunk once an epoch; in h5py that takes rdcc_nbytes=" +
             std::to_string(static_cast<std::int64_t>(std::max(window, figures.chunk_bytes))) +
             " to keep a window of chunks."});
  }
}

void advise_on_filters(const StoredLayout& stored, const ChunkFigures& figures,
                       std::vector<Finding>& findings) {
  if (stored.filters.empty()) return;
  std::string names;
  for (const std::string& filter : stored.filters) names += (names.empty() ? "" : ", ") + filter;
  const double images_decoded = figures.pieces * figures.chunk_bytes / figures.sample_bytes;
  const std::string random = images_decoded > 1 ? ", and an image read in random order decodes " +
                                                      factor_text(images_decoded) + " its own bytes"
                                                : std::string();
  findings.push_back(
      {2, "Chunks go through filters (" + names + "): each visit decodes all " +
              bytes_text(figures.chunk_bytes) + " of a chunk on the CPU" + random +
              ". Write the file again without them (h5pack repack), or read in chunk order so that "
              "each chunk is decoded once an epoch."});
}

void advise_on_dtype(const StoredLayout& stored, std::vector<Finding>& findings) {
  const auto element_bytes = static_cast<double>(size_of(stored.dtype));
  if (element_bytes < 4) return;
  findings.push_back(
      {element_bytes, "Images are stored as " + std::string(to_string(stored.dtype)) + ": " +
                          factor_text(element_bytes) +
                          " the bytes of uint8 to store, read and copy. Store uint8 (h5pack "
                          "repack can scale), and convert and normalise after loading."});
}

}  // namespace

std::vector<std::string> chunking_advice(const StoredLayout& stored) {
  const auto no_elements = [](const Shape& shape) {
    return shape.rank() == 0 ||
           std::any_of(shape.dims().begin(), shape.dims().end(), [](auto n) { return n == 0; });
  };
  if (no_elements(stored.shape)) return {};
  std::vector<Finding> findings;
  if (stored.chunked) {
    if (stored.chunk_shape.rank() != stored.shape.rank() || no_elements(stored.chunk_shape)) {
      throw Error(ErrorCode::invalid_argument, "chunks " + stored.chunk_shape.to_string() +
                                                   " do not cut a dataset of shape " +
                                                   stored.shape.to_string());
    }
    const ChunkFigures figures = measure(stored);
    advise_on_cuts(stored, figures, findings);
    advise_on_size(stored, figures, findings);
    advise_on_filters(stored, figures, findings);
  } else {
    findings.push_back(
        {1,
         "The images are contiguous. This library reads them in runs of 4 MiB, as fast as chunks "
         "of that size; h5py reads one image at a time, and in random order each from another "
         "place: for it, let h5pack repack write the file again in chunks."});
  }
  advise_on_dtype(stored, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.cost > b.cost; });
  std::vector<std::string> advice;
  for (Finding& finding : findings) advice.push_back(std::move(finding.text));
  return advice;
}

}  // namespace chunkio
