#include "render_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "byte_size.hpp"
#include "escape.hpp"
#include "output.hpp"
#include "progress_text.hpp"

namespace h5pack {
namespace {

constexpr std::size_t kLabelColumns = 14;
constexpr std::size_t kMaxClassesListed = 20;

std::string decimals(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string percent(double fraction, int digits) { return decimals(100 * fraction, digits) + " %"; }

/// "label:        text\n"; further lines of `text` are indented alike.
std::string entry(const std::string& label, const std::string& text, bool colour) {
  std::string out = bold(label, colour) + std::string(kLabelColumns - label.size(), ' ');
  for (const char c : text) {
    out += c;
    if (c == '\n') out += std::string(kLabelColumns, ' ');
  }
  return out + "\n";
}

std::string field_text(const chunkio::FieldInfo& field) {
  const std::string row =
      field.row_shape.rank() == 0 ? "" : " " + field.row_shape.to_string() + " each";
  return "/" + escape(field.name) + " " + std::string(to_string(field.dtype)) + row;
}

std::string named_counts_text(const std::vector<std::string>& names,
                              const std::vector<std::int64_t>& counts) {
  const std::size_t size = std::max(names.size(), counts.size());
  const std::size_t shown = size <= kMaxClassesListed ? size : kMaxClassesListed / 2;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) text += ", ";
    text += i < names.size() ? escape(names[i]) : "class " + std::to_string(i);
    if (i < counts.size()) text += " (" + format_count(counts[i]) + ")";
  }
  if (shown < size) {
    text += ", and " + format_count(static_cast<std::int64_t>(size - shown)) +
            " more (--json lists all)";
  }
  return text;
}

std::string storage_text(const InfoReport& report) {
  const chunkio::DatasetInfo& info = report.dataset;
  const std::int64_t raw_bytes = info.num_samples * info.sample_bytes();
  if (!info.stored.chunked) return "contiguous, " + format_bytes(raw_bytes) + " in one run";
  std::string filters;
  for (const std::string& filter : info.stored.filters) {
    filters += (filters.empty() ? "" : " + ") + escape(filter);
  }
  std::string text = format_count(info.num_chunks) +
                     (info.num_chunks == 1 ? " chunk of " : " chunks of ") +
                     info.stored.chunk_shape.to_string() + ", " + format_bytes(report.chunk_bytes) +
                     " each, " + (filters.empty() ? "unfiltered" : "filtered by " + filters);
  text += "\n" + format_bytes(info.stored_bytes) + " in the file";
  if (!filters.empty()) text += " for " + format_bytes(raw_bytes) + " of pixels";
  return text;
}

std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + decimals(value, 4);
  return "[" + text + "]";
}

/// A Python string literal of `text`.
std::string python_literal(const std::string& text) {
  std::string out = "\"";
  for (const char c : escape(text)) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string h5py_line(const InfoReport& report) {
  return "h5py.File(" + python_literal(report.dataset.path) +
         ", \"r\", rdcc_nslots=" + std::to_string(report.cache.rdcc_nslots) +
         ", rdcc_nbytes=" + std::to_string(report.cache.rdcc_nbytes) +
         ", rdcc_w0=" + decimals(report.cache.rdcc_w0, 2) + ")";
}

/// Text broken at blanks into lines of at most `columns`.
std::string wrap(const std::string& text, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (used != 0 && used + 1 + length > columns) {
      out += '\n';
      used = 0;
    } else if (used != 0) {
      out += ' ';
      ++used;
    }
    out += text.substr(at, length);
    used += length;
    at = end + 1;
  }
  return out;
}

constexpr std::array<const char*, 9> kEpochColumns = {"epoch",    "images",    "seconds",
                                                      "images/s", "GB/s",      "chunk loads",
                                                      "hit rate", "read amp.", "stall"};
constexpr std::array<int, 9> kEpochWidths = {5, 11, 8, 11, 7, 11, 9, 9, 8};

std::string epoch_row(const std::array<std::string, 9>& cells) {
  std::string row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto width = static_cast<std::size_t>(kEpochWidths[i]);
    if (i != 0) row += "  ";
    if (cells[i].size() < width) row += std::string(width - cells[i].size(), ' ');
    row += cells[i];
  }
  return row;
}

}  // namespace

std::string info_text(const InfoReport& report, bool colour) {
  const chunkio::DatasetInfo& info = report.dataset;
  const auto add = [&](const std::string& label, const std::string& text) {
    return entry(label, text, colour);
  };
  std::string out;
  std::string origin;
  if (info.format_version) {
    origin = "\npacked by " + escape(info.creator) + ", format version " +
             std::to_string(*info.format_version);
    if (!info.split.empty()) origin += ", split " + escape(info.split);
    if (!info.order.empty()) origin += ", order " + escape(info.order);
    if (info.order == "shuffled" && info.seed)
      origin += " (seed " + std::to_string(*info.seed) + ")";
  } else {
    origin =
        "\na foreign file: not packed by h5pack, so it says nothing about classes or statistics";
  }
  out += add("file", escape(info.path) + origin);
  out += add("images", format_count(info.num_samples) + " x " + info.sample_shape().to_string() +
                           " " + std::string(to_string(info.stored.dtype)) + ", layout " +
                           std::string(to_string(info.layout)) +
                           (info.channel_order.empty() ? "" : ", " + escape(info.channel_order)) +
                           " (dataset /" + escape(info.images_path) + ")");
  out += add("labels", info.labels ? field_text(*info.labels) : "none");
  const bool attributes = !info.attribute_names.empty();
  if (attributes) {
    out +=
        add("attributes", wrap(named_counts_text(info.attribute_names, report.class_counts), 84));
  }
  if (!info.class_names.empty() || (!attributes && !report.class_counts.empty())) {
    out += add("classes",
               wrap(named_counts_text(info.class_names, attributes ? std::vector<std::int64_t>()
                                                                   : report.class_counts),
                    84));
  }
  if (!info.fields.empty()) {
    std::string fields;
    for (const chunkio::FieldInfo& field : info.fields) {
      fields += (fields.empty() ? "" : ", ") + field_text(field);
    }
    out += add("fields", wrap(fields, 84));
  }
  out += add("storage", storage_text(report));
  out += add("statistics", info.statistics ? "mean " + numbers_text(info.statistics->mean) +
                                                 ", std " + numbers_text(info.statistics->std) +
                                                 " (per channel, on the scale 0..1)"
                                           : "none stored");
  if (info.stored.chunked) {
    out += add("h5py cache", h5py_line(report));
  }
  std::string advice;
  for (const std::string& finding : report.advice) {
    advice += (advice.empty() ? "- " : "\n- ") + wrap(finding, 84);
  }
  out +=
      add("advice", advice.empty() ? "nothing to improve: this chunking suits training" : advice);
  return out;
}

std::string stream_head_text(const StreamSetup& setup, bool colour) {
  const chunkio::DatasetInfo& info = setup.dataset;
  std::string out = escape(info.path) + ": " + format_count(info.num_samples) + " images of " +
                    info.sample_shape().to_string() + " in " + format_count(setup.num_groups) +
                    (info.stored.chunked ? " chunk" : " run") +
                    (setup.num_groups == 1 ? " of " : "s of ") + format_count(setup.group_samples) +
                    "\n";
  out += "source " + std::string(to_string(setup.source)) + " (" + escape(setup.source_reason) +
         "), order " + std::string(to_string(setup.order));
  if (setup.order == chunkio::OrderMode::chunk_shuffled) {
    out += " in windows of " + format_count(setup.window_groups);
  }
  out += ", batches of " + format_count(setup.batch_size) + ", " + format_count(setup.num_threads) +
         (setup.num_threads == 1 ? " thread, " : " threads, ") + format_bytes(setup.memory_bytes) +
         " of memory\n\n";
  std::array<std::string, 9> head;
  std::copy(kEpochColumns.begin(), kEpochColumns.end(), head.begin());
  return out + bold(epoch_row(head), colour) + "\n";
}

namespace {

std::string report_row(const std::string& label, const EpochReport& report) {
  const chunkio::LoaderStats& stats = report.stats;
  return epoch_row({label, format_count(stats.images), decimals(report.seconds, 3),
                    format_count(std::llround(report.images_per_second())),
                    decimals(report.bytes_per_second() / 1e9, 3), format_count(stats.chunk_loads),
                    percent(stats.hit_rate(), 2), decimals(stats.read_amplification(), 3),
                    percent(report.stall_fraction(), 1)});
}

}  // namespace

std::string all_epochs_text(const EpochReport& total) {
  return report_row("all", total) +
         "\nAn epoch begins with what was prefetched during the one before: \"all\" is the rate to "
         "quote.\n";
}

std::string epoch_text(const EpochReport& report) {
  std::string out = report_row(std::to_string(report.epoch), report);
  if (report.pixel_digest) {
    std::array<char, 96> digests{};
    std::snprintf(digests.data(), digests.size(),
                  "\n       order digest %016llx, pixel digest %016llx",
                  static_cast<unsigned long long>(report.order_digest),
                  static_cast<unsigned long long>(*report.pixel_digest));
    out += digests.data();
  }
  return out + "\n";
}

std::string preview_text(const PreviewReport& report) {
  return escape(report.output) + ": " + format_count(report.images) + " pictures, " +
         std::to_string(report.width) + " x " + std::to_string(report.height) + " pixels\n";
}

}  // namespace h5pack
