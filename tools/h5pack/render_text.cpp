#include "render_text.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "byte_size.hpp"
#include "escape.hpp"
#include "progress_text.hpp"
#include "text_layout.hpp"

namespace h5pack {
namespace {

constexpr std::size_t kMaxClassesListed = 20;

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

}  // namespace

std::string info_text(const InfoReport& report, bool colour) {
  const chunkio::DatasetInfo& info = report.dataset;
  const auto add = [&](const std::string& label, const std::string& text) {
    return labelled(label, text, colour);
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

std::string preview_text(const PreviewReport& report) {
  return escape(report.output) + ": " + format_count(report.images) + " pictures, " +
         std::to_string(report.width) + " x " + std::to_string(report.height) + " pixels\n";
}

}  // namespace h5pack
