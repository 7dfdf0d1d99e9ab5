#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "cli/byte_size.hpp"
#include "cli/escape.hpp"
#include "cli/interruptible.hpp"
#include "cli/json_text.hpp"
#include "cli/output.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/commands/old_spellings.hpp"
#include "h5pack/commands/pack_options.hpp"
#include "h5pack/image/decode.hpp"
#include "h5pack/pack/encoded_packer.hpp"
#include "h5pack/pack/output_files.hpp"
#include "h5pack/pack/packer.hpp"
#include "h5pack/pack/run_fingerprint.hpp"
#include "h5pack/pack/skip_report.hpp"
#include "h5pack/sources/file_stamps.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using json = nlohmann::ordered_json;

std::string shape_text(const PackPlan& plan) {
  return to_string(plan.size) + "x" + std::to_string(plan.channels);
}

std::string counted(std::int64_t count, const std::string& singular, const std::string& plural) {
  return std::to_string(count) + " " + (count == 1 ? singular : plural);
}

std::string contents_text(const std::string& path, const PackPlan& plan, std::int64_t num_samples,
                          std::int64_t num_chunks) {
  if (plan.store == Store::encoded) {
    return cli::escape(path) + ": " + counted(num_samples, "encoded image", "encoded images");
  }
  return cli::escape(path) + ": " + counted(num_samples, "image", "images") + " of " +
         shape_text(plan) + " in " + counted(num_chunks, "chunk", "chunks") + " of " +
         std::to_string(plan.chunk_samples) + " (" + cli::format_bytes(plan.chunk_bytes) + ")";
}

std::string plan_text(const std::string& path, const PackPlan& plan) {
  return contents_text(path, plan, plan.num_samples, plan.num_chunks);
}

json plan_json(const std::string& path, const Split& split, const PackPlan& plan,
               const std::optional<Shard>& shard) {
  return {{"path", path},
          {"split", split.name},
          {"shard", shard ? json(shard->text()) : json(nullptr)},
          {"found", plan.num_samples},
          {"images", plan.num_samples},
          {"store", plan.store == Store::encoded ? "encoded" : "raw"},
          {"height", plan.size.height},
          {"width", plan.size.width},
          {"channels", plan.channels},
          {"chunk_samples", plan.chunk_samples},
          {"chunk_bytes", plan.chunk_bytes},
          {"chunks", plan.num_chunks},
          {"threads", plan.threads},
          {"buffer_bytes", plan.memory_bytes()}};
}

/// "  airplane: 5000" for each class.
std::string classes_text(const std::vector<std::string>& names,
                         const std::vector<std::int64_t>& counts) {
  constexpr std::size_t kShown = 50;
  std::string text;
  for (std::size_t i = 0; i < counts.size() && i < kShown; ++i) {
    text += "  " + (i < names.size() ? cli::escape(names[i]) : "label " + std::to_string(i)) +
            ": " + std::to_string(counts[i]) + "\n";
  }
  if (counts.size() > kShown) text += "  and " + std::to_string(counts.size() - kShown) + " more\n";
  return text;
}

json skipped_json(const Split& split, const std::vector<SkippedImage>& skipped) {
  json list = json::array();
  for (const SkippedImage& image : skipped) {
    list.push_back({{"path", split.images->name(image.row)},
                    {"code", to_string(image.code)},
                    {"reason", image.reason}});
  }
  return list;
}

/// "  3 of 100 images were skipped: ..., the first because ..."; empty if none was.
std::string skipped_text(const Split& split, const PackResult& packed, bool reported) {
  if (packed.skipped.empty()) return "";
  std::vector<std::string> names;
  for (const SkippedImage& image : packed.skipped) {
    names.push_back(split.images->name(image.row));
  }
  const std::size_t found = packed.skipped.size() + static_cast<std::size_t>(packed.num_samples);
  return "  skipped " + std::to_string(names.size()) + " of " + std::to_string(found) +
         " images: " + first_few(names) + (reported ? "" : " (--report FILE lists them all)") +
         "; the first: " + cli::escape(packed.skipped.front().reason) + "\n";
}

/// Shards write one each.
std::string report_path(const PackRequest& command) {
  const std::optional<Shard>& shard = command.options.shard;
  if (!shard || command.report.empty()) return command.report;
  return chunkio::shard_path(command.report, shard->index, shard->count);
}

class PackRun {
 public:
  PackRun(PackRequest& command, const cli::GlobalOptions& global)
      : command_(command),
        global_(global),
        options_(command.options),
        listing_(command.list(command)),
        budget_(options_.on_error,
                command.max_errors < 0 ? std::nullopt : std::optional(command.max_errors),
                listing_.source.at("path").get<std::string>()),
        report_(report_path(command), options_.writer.overwrite || options_.writer.resume) {
    options_.quiet = global.quiet;
    paths_ = output_paths(listing_, command_.output, options_.shard);
    result_ = {{"command", command_.name},
               {"dry_run", command_.dry_run},
               {"class_names", listing_.class_names},
               {"attribute_names", listing_.attribute_names},
               {"notes", listing_.notes},
               {"outputs", json::array()}};
    for (const std::string& note : listing_.notes) say("note: " + note);
  }

  cli::ExitCode run() {
    const cli::StopSignalToken stopping;
    options_.writer.stop = stopping.token();
    if (!command_.dry_run) {
      check_outputs(listing_, command_.output, report_path(command_),
                    options_.writer.overwrite || options_.writer.resume, options_.shard);
    }
    stamp_files(listing_, options_.on_error);
    // All plans first: what is wrong with the last split should not show after hours of packing the
    // first.
    std::vector<std::optional<PackPlan>> plans;
    for (std::size_t i = 0; i < listing_.splits.size(); ++i) {
      if (is_done(i)) {
        // Before any other split replaces the report.
        report_.keep(paths_[i]);
        plans.emplace_back();
      } else {
        plans.emplace_back(plan_pack(listing_.splits[i], options_));
      }
    }
    std::optional<OutputFolder> folder;
    if (listing_.output_is_folder && !command_.dry_run) folder.emplace(command_.output);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!plans[i]) {
        add_complete(i);
      } else if (command_.dry_run) {
        add_dry(i, *plans[i]);
      } else {
        pack_split(i, *plans[i]);
      }
    }
    if (!command_.dry_run) report_.write();
    cli::print(global_.json ? cli::json_text(result_) + "\n" : text_);
    return num_skipped_ > 0 ? cli::ExitCode::skipped : cli::ExitCode::ok;
  }

  /// What has been written before a failure.
  [[nodiscard]] std::string written() const {
    if (command_.dry_run) return "";
    std::vector<std::string> done;
    for (const json& output : result_["outputs"]) done.push_back(output["path"]);
    return done.empty() ? "" : "; already finished: " + first_few(done);
  }

 private:
  void say(const std::string& text) const {
    if (!global_.quiet) std::fputs(("h5pack: " + cli::escape(text) + "\n").c_str(), stderr);
  }

  /// Whether there is nothing to do for this output. An identity takes a while, so it is only found
  /// out when it matters.
  [[nodiscard]] bool is_done(std::size_t index) const {
    return options_.writer.resume &&
           is_complete(paths_[index], options_.writer.overwrite,
                       run_fingerprint(command_, listing_, listing_.splits[index]));
  }

  /// What an earlier run skipped counts as if this one had.
  void add_complete(std::size_t index) {
    const std::string& path = paths_[index];
    const std::int64_t images = chunkio::Dataset::open(path).size();
    const std::int64_t skipped = plan_pack(listing_.splits[index], options_).num_samples - images;
    num_skipped_ += skipped;
    result_["outputs"].push_back({{"path", path},
                                  {"split", listing_.splits[index].name},
                                  {"images", images},
                                  {"skipped_images", skipped},
                                  {"complete_already", true}});
    text_ += cli::escape(path) + ": complete already, " + counted(images, "image", "images") +
             (skipped > 0 ? ", " + std::to_string(skipped) + " skipped" : "") + "\n";
  }

  void add_dry(std::size_t index, const PackPlan& plan) {
    const Split& split = listing_.splits[index];
    // Which images a shard has is known once they are shuffled.
    const auto counts = options_.shard ? std::vector<std::int64_t>()
                                       : chunkio::count_classes(split.fields, listing_.class_names);
    json output = plan_json(paths_[index], split, plan, options_.shard);
    output["estimated_bytes"] = plan.file_bytes;
    output["class_counts"] = counts;
    result_["outputs"].push_back(std::move(output));
    text_ += plan_text(paths_[index], plan) +
             (options_.limit.max_side > 0 ? ", at most " : ", about ") +
             cli::format_bytes(plan.file_bytes) + "\n" + classes_text(listing_.class_names, counts);
  }

  void pack_split(std::size_t index, const PackPlan& plan) {
    const Split& split = listing_.splits[index];
    const std::string& path = paths_[index];
    const std::string buffers = plan.store == Store::encoded
                                    ? ""
                                    : counted(plan.buffers, "chunk", "chunks") +
                                          " in flight = " + cli::format_bytes(plan.memory_bytes()) +
                                          " of buffers, ";
    say(plan_text(path, plan) + ", " + buffers + counted(plan.threads, "thread", "threads"));
    const json identity = run_fingerprint(command_, listing_, split);
    options_.writer.identity = cli::json_text(identity);
    options_.options_json = options_json(command_, listing_, identity);
    if (options_.shard) options_.shard_set = shard_set(identity);
    // Before the file appears: a run that is killed then finds it complete, and decodes nothing.
    options_.before_publishing = [&](const std::vector<SkippedImage>& skipped) {
      budget_.take_spent();
      report_.add(path, listing_, split, skipped);
      report_.write();
    };
    PackResult packed;
    try {
      const auto pack_it = plan.store == Store::encoded ? pack_encoded : pack;
      packed = pack_it(listing_, split, plan, path, options_, budget_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled) write_report_of_failure(path, split);
      throw;
    }
    add_packed(path, split, plan, packed);
  }

  /// A run that failed for too many skipped images still reports them.
  void write_report_of_failure(const std::string& path, const Split& split) {
    report_.add(path, listing_, split, budget_.take_spent());
    try {
      report_.write();
    } catch (const Error&) {
      // The reason why the pack failed matters more.
    }
  }

  void warn_of_misnamed(const Split& split, const PackResult& packed) const {
    if (!packed.misnamed) return;
    const auto& [count, row, format] = *packed.misnamed;
    say("warning: " + counted(count, "image is", "images are") +
        " not what the extension says; decoded as what they hold, the first: " +
        cli::quote(split.images->name(row)) + " holds " + std::string(to_string(format)));
  }

  void add_packed(const std::string& path, const Split& split, const PackPlan& plan,
                  const PackResult& packed) {
    num_skipped_ += static_cast<std::int64_t>(packed.skipped.size());
    warn_of_misnamed(split, packed);
    const std::int64_t now = packed.num_samples - packed.num_resumed;
    const double rate = packed.seconds > 0 ? static_cast<double>(now) / packed.seconds : 0;
    json output = plan_json(path, split, plan, options_.shard);
    output["images"] = packed.num_samples;
    output["chunks"] = packed.num_chunks;
    output["resumed_images"] = packed.num_resumed;
    output["skipped_images"] = packed.skipped.size();
    output["skipped"] = skipped_json(split, packed.skipped);
    if (options_.limit.max_side > 0) output["resized_images"] = packed.num_limited;
    output["misnamed_images"] = packed.misnamed ? packed.misnamed->count : 0;
    output["bytes"] = packed.file_bytes;
    output["class_counts"] = packed.statistics.class_counts;
    output["mean"] = packed.statistics.channels.mean;
    output["std"] = packed.statistics.channels.std;
    output["mean_picture_std"] = packed.statistics.mean_picture_std;
    output["seconds"] = packed.seconds;
    output["read_back_seconds"] = packed.read_back_seconds;
    output["images_per_second"] = rate;
    result_["outputs"].push_back(std::move(output));
    char timing[64];
    std::snprintf(timing, sizeof timing, " in %.1f s (%.0f images/s)\n", packed.seconds, rate);
    text_ += contents_text(path, plan, packed.num_samples, packed.num_chunks) + ", " +
             cli::format_bytes(packed.file_bytes);
    if (packed.num_resumed > 0) {
      text_ += ", " + std::to_string(packed.num_resumed) + " images of an earlier run and " +
               std::to_string(now);
    }
    text_ += timing;
    if (packed.num_limited > 0) {
      text_ += "  resized " + counted(packed.num_limited, "image", "images") + " to at most " +
               std::to_string(options_.limit.max_side) + " pixels a side (JPEG, quality " +
               std::to_string(options_.limit.quality) + ")\n";
    }
    text_ += skipped_text(split, packed, !command_.report.empty());
  }

  PackRequest& command_;
  const cli::GlobalOptions& global_;
  PackOptions options_;
  Listing listing_;
  ErrorBudget budget_;
  SkipReport report_;
  std::vector<std::string> paths_;
  std::int64_t num_skipped_ = 0;
  json result_;
  std::string text_;
};

}  // namespace

cli::ExitCode run_pack(PackRequest& command, const cli::GlobalOptions& global) {
  PackRun pack_run(command, global);
  const OpenCvSilence silence;
  return cli::run_interruptible(global, cli::leaves_partial_file(), [&] {
    try {
      return pack_run.run();
    } catch (const Error& error) {
      throw error.with_message(with_todays_names(error.what()) + pack_run.written());
    }
  });
}

}  // namespace h5pack
