#include "h5pack/sources/stored_rows.hpp"

#include <chunkio/error.hpp>
#include <chunkio/verify.hpp>

#include "cli/escape.hpp"
#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "h5pack/sources/file_stamps.hpp"

namespace h5pack {

using chunkio::Error;
using chunkio::ErrorCode;

void check_digests(const chunkio::Dataset& dataset, const std::stop_token& stop, bool quiet) {
  if (!why_not_verifiable(dataset).empty()) return;
  const chunkio::DatasetInfo& info = dataset.info();
  cli::Progress progress("checking " + info.path, info.sparse || info.encoded ? "pieces" : "chunks",
                         info.num_chunks, quiet);
  const chunkio::VerifyResult result = verify_chunks(
      dataset, {.on_progress = [&](std::int64_t chunks) { progress.add(chunks); }, .stop = stop});
  if (!result.damaged.empty()) {
    throw Error(result.damaged.front().code, result.damaged.front().reason);
  }
}

std::string StoredRows::name(std::int64_t row) const {
  if (!is_stored(row)) return added_->name(row - stored_.size());
  return "row " + std::to_string(row) + " of " + stored_.info().path;
}

void StoredRows::visit_inputs(const std::function<void(const std::string&)>& visit) const {
  added_->visit_inputs(visit);
  visit(stored_.info().path);
  for (const chunkio::ShardFile& shard : stored_.info().shards) visit(shard.path);
}

std::optional<ImageSize> StoredRows::stored_size(const std::optional<ImageSize>& wanted) const {
  const ImageSize stored{stored_.info().height, stored_.info().width};
  if (wanted && *wanted != stored) {
    throw Error(ErrorCode::invalid_argument, "the options give images of " + to_string(*wanted) +
                                                 " pixels, and " + cli::quote(stored_.info().path) +
                                                 " has " + to_string(stored) +
                                                 ": bring them to that size with --resize HxW");
  }
  return stored;
}

void StoredRows::check_stored(const std::stop_token& stop, bool quiet) const {
  check_digests(stored_, stop, quiet);
}

bool StoredRows::add_stored_sizes(ImageSizes& sizes) const {
  const std::optional<chunkio::SourceSizes>& known = stored_.info().source_sizes;
  if (!known) return false;
  std::int64_t left = stored_.size();
  for (const auto& [height, width, images] : known->most_frequent) {
    sizes.add({height, width}, images);
    left -= images;
  }
  return left == 0;
}

void StoredRows::add_fingerprint(Json& fingerprint) const {
  fingerprint["appended to"] = cli::escape(stored_.info().path);
  fingerprint["file appended to"] = file_identity(stored_.info());
}

Images::Json StoredRows::with_stored_options(Json options) const {
  const chunkio::DatasetInfo& info = stored_.info();
  Json stored = Json::parse(info.options_json, nullptr, false);
  if (!stored.is_object() || !stored.contains("source")) {
    stored = {{"command", "append"}, {"source", {{"kind", "hdf5"}, {"path", info.path}}}};
  }
  // These are of the new file as a whole; what remains of `options` is of its new rows.
  for (const char* name : {"layout", "order", "seed", "chunk", "chunk_bytes"}) {
    stored.erase(name);
    if (!options.contains(name)) continue;
    stored[name] = options[name];
    options.erase(name);
  }
  stored.erase("filter");
  options["from"] = info.path;
  if (!info.uuid.empty()) options["uuid"] = info.uuid;
  options["num_samples"] = info.num_samples;
  options["first_source_row"] = source_index(info.num_samples);
  Json& steps = stored["appended"];
  if (!steps.is_array()) steps = Json::array();
  steps.push_back(std::move(options));
  return stored;
}

}  // namespace h5pack
