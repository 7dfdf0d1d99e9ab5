/// The rows of a packed file, and the images of another source behind them: what h5pack append
/// packs.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/dataset.hpp>

#include "h5pack/sources/image_files.hpp"
#include "h5pack/sources/images.hpp"

namespace h5pack {

/// Compares all samples with their digests: a copy of damaged ones would get digests that match.
/// Does nothing if a file has none, or one of several. Shows progress unless `quiet`; blocks on
/// I/O. \throws chunkio::Error as the first DamagedChunk says; and as chunkio::verify_chunks().
void check_digests(const chunkio::Dataset& dataset, const std::stop_token& stop, bool quiet);

class StoredRows : public Images {
 public:
  /// Nothing behind them, and each row is its own source.
  explicit StoredRows(chunkio::Dataset stored)
      : stored_(std::move(stored)),
        added_(std::make_unique<ImageFiles>(std::vector<std::string>())) {}
  /// \param source_indices  of all rows.
  StoredRows(chunkio::Dataset stored, std::vector<std::int64_t> source_indices,
             std::unique_ptr<Images> added)
      : stored_(std::move(stored)),
        source_indices_(std::move(source_indices)),
        added_(std::move(added)) {}

  [[nodiscard]] std::int64_t count() const override { return stored_.size() + added_->count(); }
  [[nodiscard]] std::string name(std::int64_t row) const override;
  [[nodiscard]] std::int64_t source_index(std::int64_t row) const override {
    return source_indices_.empty() ? row : source_indices_[static_cast<std::size_t>(row)];
  }
  /// Of the images behind the rows.
  [[nodiscard]] const SourceFiles& files() const override { return added_->files(); }
  void set_stamps(std::vector<cli::FileStamp> stamps) override {
    added_->set_stamps(std::move(stamps));
  }
  void visit_inputs(const std::function<void(const std::string&)>& visit) const override;

  ImageSize open(std::int64_t row, ImageDecoder& decoder) const override {
    return added_->open(row - stored_.size(), decoder);
  }
  void check_unchanged() const override { added_->check_unchanged(); }

  [[nodiscard]] bool is_stored(std::int64_t row) const override { return row < stored_.size(); }
  [[nodiscard]] std::optional<ImageSize> stored_size(
      const std::optional<ImageSize>& wanted) const override;
  void read_stored(std::int64_t first, std::int64_t count,
                   std::span<std::byte> pixels) const override {
    stored_.read_images(first, count, pixels);
  }
  [[nodiscard]] chunkio::EncodedImage read_stored_encoded(std::int64_t row) const override {
    return stored_.read_encoded(row);
  }
  [[nodiscard]] std::int64_t stored_bytes() const override {
    return stored_.info().sample_bytes() * stored_.size();
  }
  void check_stored(const std::stop_token& stop, bool quiet) const override;
  [[nodiscard]] bool add_stored_sizes(ImageSizes& sizes) const override;
  void add_fingerprint(Json& fingerprint) const override;
  [[nodiscard]] Json with_stored_options(Json options) const override;

 private:
  chunkio::Dataset stored_;
  std::vector<std::int64_t> source_indices_;  // empty: those of the rows
  std::unique_ptr<Images> added_;
};

}  // namespace h5pack
