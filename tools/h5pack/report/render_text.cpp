#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/byte_size.hpp"
#include "cli/escape.hpp"
#include "cli/json_text.hpp"
#include "cli/option_flags.hpp"
#include "cli/progress_text.hpp"
#include "cli/quote.hpp"
#include "cli/snippets.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/report/report.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {
namespace {

constexpr std::size_t kMaxClassesListed = 20;
constexpr std::size_t kMaxLeftOutListed = 12;

std::string field_text(const chunkio::FieldInfo& field) {
  const std::string row =
      field.row_shape.rank() == 0 ? "" : " " + field.row_shape.to_string() + " each";
  return "/" + cli::escape(field.name) + " " + std::string(to_string(field.dtype)) + row;
}

std::string left_out_text(const std::vector<std::string>& left_out) {
  return cli::listed(left_out, kMaxLeftOutListed, cli::escape) +
         (left_out.size() > kMaxLeftOutListed ? " (--json lists all)" : "");
}

std::string named_counts_text(const std::vector<std::string>& names,
                              const std::vector<std::int64_t>& counts) {
  const std::size_t size = std::max(names.size(), counts.size());
  const std::size_t shown = size <= kMaxClassesListed ? size : kMaxClassesListed / 2;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) text += ", ";
    text += i < names.size() ? cli::escape(names[i]) : "class " + std::to_string(i);
    if (i < counts.size()) text += " (" + cli::format_count(counts[i]) + ")";
  }
  if (shown < size) {
    text += ", and " + cli::format_count(static_cast<std::int64_t>(size - shown)) +
            " more (--json lists all)";
  }
  return text;
}

/// What made other files of the images than their source had.
std::string encoding_text(const chunkio::DatasetInfo& info) {
  const nlohmann::json options = nlohmann::json::parse(info.options_json, nullptr, false);
  if (!options.is_object()) return "";
  const auto number = [&](const char* name) {
    const nlohmann::json value = options.value(name, nlohmann::json());
    return value.is_number_integer() ? cli::json_text(value) : "";
  };
  const nlohmann::json codec = options.value("encoded_as", nlohmann::json());
  if (codec.is_string()) return "\nencoded from pixels: " + cli::escape(codec.get<std::string>());
  if (number("max_side").empty()) return "";
  return "\nlarger ones were resized to " + number("max_side") + " pixels a side (JPEG, quality " +
         number("quality") + ")";
}

std::string storage_text(const chunkio::Inspection& report) {
  const chunkio::DatasetInfo& info = report.dataset;
  const std::int64_t raw_bytes = info.num_samples * info.sample_bytes();
  if (info.sparse) {
    const auto entries = static_cast<double>(info.sparse->num_entries);
    const double mean = entries / static_cast<double>(info.num_samples);
    const std::string filters = cli::joined(info.stored.filters, " + ", cli::escape);
    return "CSR matrix, " + cli::decimals(mean, 1) + " entries a row (" +
           cli::decimals(100 * mean / static_cast<double>(info.sparse->columns), 2) +
           " %), columns " + std::string(to_string(info.sparse->index_dtype)) + "\n" +
           cli::format_bytes(info.stored_bytes) + " in the file" +
           (filters.empty() ? ", unfiltered" : ", filtered by " + filters);
  }
  if (info.encoded) {
    return "encoded images of " + cli::format_bytes(info.encoded->num_bytes / info.num_samples) +
           " on average, up to " + std::to_string(info.encoded->max_height) + "x" +
           std::to_string(info.encoded->max_width) + " pixels" + encoding_text(info) + "\n" +
           cli::format_bytes(info.stored_bytes) + " in the file" +
           (info.has_images() ? "" : "; --decode S delivers them in one size");
  }
  if (!info.stored.chunked) return "contiguous, " + cli::format_bytes(raw_bytes) + " in one run";
  const std::string filters = cli::joined(info.stored.filters, " + ", cli::escape);
  std::string text = cli::counted(info.num_chunks, "chunk") + " of " +
                     info.stored.chunk_shape.to_string() + ", " +
                     cli::format_bytes(report.chunk_bytes) + " each, " +
                     (filters.empty() ? "unfiltered" : "filtered by " + filters);
  text += "\n" + cli::format_bytes(info.stored_bytes) + " in the file";
  if (!filters.empty()) {
    text +=
        " for " + cli::format_bytes(raw_bytes) +
        (info.has_images() ? " of pixels" : " of " + std::string(to_string(info.leading.dtype)));
  }
  return text;
}

std::string numbers_text(const std::vector<double>& values) {
  return "[" + cli::joined(values, ", ", [](double value) { return cli::decimals(value, 4); }) +
         "]";
}

/// "class cat (3), dog (1)": how many there are of each, most first.
std::string classes_text(const std::vector<std::string>& classes) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& name : classes) ++counts[name];
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  std::vector<std::int64_t> samples;
  for (auto& [name, count] : sorted) {
    names.push_back(std::move(name));
    samples.push_back(count);
  }
  return (names.size() == 1 ? "class " : "classes ") + named_counts_text(names, samples);
}

std::string statistics_text(const chunkio::DatasetInfo& info) {
  if (!info.statistics) return "none stored";
  std::string text = "mean " + numbers_text(info.statistics->mean) + ", std " +
                     numbers_text(info.statistics->std) + " (per channel, on the scale 0..1)";
  if (!info.mean_picture_std.empty()) {
    text += "\nstd within an image, on average: " + numbers_text(info.mean_picture_std);
  }
  return text;
}

/// "images of 218x178 (9,000), ...", height first.
std::string source_sizes_text(const chunkio::DatasetInfo& info) {
  constexpr std::size_t kShown = 5;
  const chunkio::SourceSizes& sizes = *info.source_sizes;
  std::string text = sizes.most_frequent.empty() ? "images of many sizes" : "";
  for (std::size_t i = 0; i < std::min(kShown, sizes.most_frequent.size()); ++i) {
    const auto& [height, width, images] = sizes.most_frequent[i];
    text += (i == 0 ? "images of " : ", ") + std::to_string(height) + "x" + std::to_string(width) +
            " (" + cli::format_count(images) + ")";
  }
  if (sizes.most_frequent.size() == 1 && sizes.most_frequent[0].images == info.num_samples) {
    return text;
  }
  return cli::wrap(text + "; heights " + std::to_string(sizes.min_height) + " to " +
                       std::to_string(sizes.max_height) + ", widths " +
                       std::to_string(sizes.min_width) + " to " + std::to_string(sizes.max_width),
                   84);
}

std::string contents_text(const RepackResult& output) {
  if (output.encoded) return cli::counted(output.num_samples, "encoded image");
  return cli::counted(output.num_samples, "image") + " in " +
         cli::counted(output.num_chunks, "chunk") + " of " +
         cli::format_count(output.chunk_samples) + " (" + cli::format_bytes(output.chunk_bytes) +
         ")";
}

std::int64_t damaged_rows(const VerifyReport& report) {
  std::int64_t rows = 0;
  for (const DamageReport& damage : report.damaged) {
    for (const auto& [begin, end] : damage.chunk.damaged_rows) rows += end - begin;
  }
  return rows;
}

}  // namespace

std::string sample_noun(const chunkio::DatasetInfo& info) {
  return info.has_images() ? "image" : "sample";
}

std::string samples_label(const chunkio::DatasetInfo& info) { return sample_noun(info) + "s"; }

std::string samples_text(const chunkio::DatasetInfo& info) {
  const std::string count = cli::format_count(info.num_samples);
  const std::string shape = info.sample_shape().to_string();
  if (info.has_images()) return count + " images of " + shape;
  if (info.encoded) return count + " encoded images";
  return count + " samples of " + cli::escape(info.leading.name) + ", " +
         std::string(to_string(info.leading.dtype)) + " " + shape;
}

std::string info_text(const chunkio::Inspection& report, bool colour) {
  const chunkio::DatasetInfo& info = report.dataset;
  const auto add = [&](const std::string& label, const std::string& text) {
    return cli::labelled(label, text, colour);
  };
  std::string out;
  std::string origin;
  if (info.format_version) {
    origin = "\npacked by " + cli::escape(info.creator) + ", format version " +
             std::to_string(*info.format_version);
    if (!info.split.empty()) origin += ", split " + cli::escape(info.split);
    if (!info.order.empty()) origin += ", order " + cli::escape(info.order);
    if (info.order == "shuffled" && info.seed)
      origin += " (seed " + std::to_string(*info.seed) + ")";
  } else {
    origin =
        "\na third-party file: not packed by h5pack, so it says nothing about classes or "
        "statistics";
  }
  if (info.shard) {
    origin += "\nshard " + std::to_string(info.shard->index) + " of " +
              std::to_string(info.shard->count) + " (counted from 0)";
  }
  if (!info.shards.empty()) {
    origin += "\n" + cli::format_count(static_cast<std::int64_t>(info.shards.size())) + " files";
  }
  out += add("file", cli::escape(info.path) + origin);
  out += add(samples_label(info),
             (info.encoded && !info.has_images()
                  ? cli::format_count(info.num_samples) + " encoded images"
                  : cli::format_count(info.num_samples) + " x " + info.sample_shape().to_string() +
                        " " + std::string(to_string(info.stored.dtype))) +
                 (info.has_images() ? ", layout " + std::string(to_string(info.layout)) : "") +
                 (info.channel_order.empty() ? "" : ", " + cli::escape(info.channel_order)) +
                 " (dataset /" + cli::escape(info.leading.name) +
                 (info.has_images() && !info.encoded && info.stored.shape.rank() == 3
                      ? ", stored as " + info.stored.shape.to_string()
                      : "") +
                 ")");
  out += add("labels",
             info.labels ? field_text(*info.labels) : cli::wrap(cli::no_labels_text(info), 84));
  const bool attributes = !info.attribute_names.empty();
  if (attributes) {
    out += add("attributes",
               cli::wrap(named_counts_text(info.attribute_names, report.class_counts), 84));
  }
  if (!info.class_names.empty() || (!attributes && !report.class_counts.empty())) {
    out +=
        add("classes",
            cli::wrap(named_counts_text(info.class_names, attributes ? std::vector<std::int64_t>()
                                                                     : report.class_counts),
                      84));
  }
  if (!info.fields.empty()) {
    out += add("fields", cli::wrap(cli::joined(info.fields, ", ", field_text), 84));
  }
  if (!info.left_out.empty()) out += add("left out", cli::wrap(left_out_text(info.left_out), 84));
  out += add("storage", storage_text(report));
  if (info.has_images()) out += add("statistics", statistics_text(info));
  if (info.source_sizes) out += add("source", source_sizes_text(info));
  if (!info.shards.empty() && !info.sparse && !info.encoded) {
    out += add("h5py", "h5pack link makes one file of the shards for other programs");
  } else if (info.stored.chunked) {
    out += add("h5py cache",
               cli::h5py_line(info.path, report.cache) + "\n" + std::string(cli::kH5pyCacheNote));
  }
  const std::string advice = cli::joined(report.advice, "\n", [](const std::string& finding) {
    return "- " + cli::wrap(finding, 84);
  });
  out +=
      add("advice", advice.empty() ? "nothing to improve: this chunking suits training" : advice);
  return out;
}

std::string verify_text(const VerifyReport& report) {
  std::string text = cli::escape(report.dataset.path) + ": ";
  if (!report.not_compared.empty()) {
    text += (report.intact() ? "structure is sound" : "DAMAGED") +
            ("; pixels were not compared: " + cli::escape(report.not_compared)) + "\n";
  } else {
    // Rows of different lengths do not lie in chunks, and each has a digest of its own.
    const bool of_rows = report.dataset.sparse || report.dataset.encoded;
    const std::int64_t all = of_rows ? report.dataset.num_samples : report.num_chunks;
    const std::int64_t damaged = of_rows ? damaged_rows(report) : std::ssize(report.damaged);
    text += damaged == 0
                ? "all " + cli::format_count(all)
                : "DAMAGED, " + cli::format_count(all - damaged) + " of " + cli::format_count(all);
    text += std::string(of_rows ? " rows" : " chunks") + " match their digests";
    if (report.seconds > 0) {
      text += ", " + cli::format_bytes(report.bytes_read) + " in " +
              cli::decimals(report.seconds, 1) + " s (" +
              cli::format_bytes(static_cast<std::int64_t>(static_cast<double>(report.bytes_read) /
                                                          report.seconds)) +
              "/s)";
    }
    text += "\n";
  }
  for (const std::string& problem : report.problems) text += "  " + cli::escape(problem) + "\n";
  for (const DamageReport& damage : report.damaged) {
    text += "  " + cli::escape(damage.chunk.reason) + "\n";
    if (!damage.classes.empty()) text += "    of " + classes_text(damage.classes) + "\n";
    if (!damage.files.empty()) {
      text += "    made from " + first_few(damage.files) + "\n";
    } else if (!damage.source_rows.empty()) {
      text +=
          "    made from source rows " +
          cli::listed(damage.source_rows, 3, [](std::int64_t row) { return std::to_string(row); }) +
          "\n";
    }
  }
  if (report.source) {
    const auto different = static_cast<std::int64_t>(report.source->different.size());
    text += "  " + cli::format_count(report.source->compared - different) + " of " +
            cli::format_count(report.source->compared) + " images equal their source\n";
    for (const SourceDifference& difference : report.source->different) {
      text += "    row " + std::to_string(difference.row) + ", " + cli::quote(difference.file) +
              ": " + cli::escape(difference.reason) + "\n";
    }
  }
  if (!report.files_unknown.empty()) {
    text += "  which files these were is unknown: " + cli::escape(report.files_unknown) + "\n";
  }
  return text;
}

std::string export_text(const ExportReport& report) {
  if (!report.matrix.empty()) {
    std::string text = cli::escape(report.output) + ": " + report.matrix + ", " +
                       cli::format_count(report.rows) + " x " + cli::format_count(report.columns) +
                       " with " + cli::format_count(report.entries) +
                       (report.entries == 1 ? " entry" : " entries") + ", " +
                       cli::decimals(report.seconds, 1) + " s\n";
    if (!report.left_out.empty()) {
      text += "  not in rows.csv, too many values a row: " + first_few(report.left_out) + "\n";
    }
    return text;
  }
  const auto folders = static_cast<std::int64_t>(report.folders.size());
  std::string text =
      cli::escape(report.output) + ": " + cli::format_count(report.images) + " images";
  if (folders > 0) {
    text += " in " + cli::counted(folders, "class folder");
  }
  text += ", " + cli::decimals(report.seconds, 1) + " s\n";
  if (!report.left_out.empty()) {
    text += "  not in samples.csv, too many values a sample: " + first_few(report.left_out) + "\n";
  }
  for (const std::string& note : report.notes) text += "  " + cli::escape(note) + "\n";
  return text;
}

std::string repack_text(const RepackReport& report) {
  std::string text;
  for (const RepackResult& output : report.outputs) {
    if (output.complete_already) {
      text += cli::escape(output.path) + ": complete already, " +
              cli::counted(output.num_samples, "image") + "\n";
      continue;
    }
    text += cli::escape(output.path) + ": " + contents_text(output) + ", " +
            (output.at_most   ? "at most "
             : output.planned ? "about "
                              : "") +
            cli::format_bytes(output.file_bytes) +
            (output.filter.deflate_level > 0 ? " with " + output.filter.to_string() : "") +
            (output.num_resumed > 0
                 ? ", " + cli::format_count(output.num_resumed) + " of an earlier run"
                 : "") +
            (output.planned ? "\n" : " in " + cli::decimals(output.seconds, 1) + " s\n");
  }
  for (const std::string& note : report.notes) text += "  " + cli::escape(note) + "\n";
  return text;
}

}  // namespace h5pack
