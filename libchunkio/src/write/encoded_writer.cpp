#include <fcntl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "h5/encoded_structure.hpp"
#include "h5/schema.hpp"
#include "h5/skeleton_writer.hpp"
#include "image/sample_decoder.hpp"
#include "write/final_verification.hpp"
#include "write/partial_file.hpp"
#include "write/sequential_bytes.hpp"

namespace chunkio {
namespace {

using write::SequentialBytes;
using write::WrittenBytes;

template <class Number>
std::span<const std::byte> bytes_of(const std::vector<Number>& numbers) {
  return std::as_bytes(std::span(numbers));
}

}  // namespace

struct EncodedWriter::Impl {
  Impl(std::string target_path, const EncodedSpec& about, const PublishOptions& options);

  void add(const EncodedImage& image);
  void close(std::vector<FieldData> fields, const DatasetStatistics& statistics);
  /// A full disk, or a limit of file sizes, is an error before it is met: beyond the limit the
  /// kernel kills a process that does not expect it. \param end  in the file.
  void reserve(std::int64_t end) {
    if (end <= reserved) return;
    file->reserve(end);
    reserved = end;
  }
  /// Bytes that the rest of the file takes at most behind the images.
  [[nodiscard]] std::int64_t structure_bytes(const std::vector<FieldData>& fields) const;
  void write_all(const std::string& name, const h5::PlacedBytes& place,
                 std::span<const std::byte> bytes);
  void verify(const h5::EncodedPlaces& places);
  [[nodiscard]] Error invalid(const std::string& what) const {
    return {ErrorCode::invalid_argument, target + ": " + what};
  }

  std::string target;
  bool overwrite;
  std::stop_token stop;
  EncodedSpec spec;
  std::optional<write::PartialFile> file;  ///< Absent once closed, well or badly.
  std::optional<SequentialBytes> data;
  std::int64_t reserved = 0;  ///< Up to there in the file.
  h5::EncodedTotals totals;
  std::vector<std::int64_t> indptr = {0};
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> orientations;
  std::vector<std::uint64_t> digests;
  std::vector<WrittenBytes> written;
  bool published = false;
};

EncodedWriter::Impl::Impl(std::string target_path, const EncodedSpec& about,
                          const PublishOptions& options)
    : target(std::move(target_path)),
      overwrite(options.overwrite),
      stop(options.stop),
      spec(about) {
  write::check_target(target, overwrite);
  if (spec.expected_bytes < 0) throw invalid("expected_bytes must be 0 or more");
  file.emplace(write::PartialFile::begin(target, options));
  if (spec.expected_bytes > 0) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() - h5::kEncodedOffset;
    reserve(h5::kEncodedOffset + std::min(spec.expected_bytes, kMost));
  }
  data.emplace(file->fd(), file->path(), h5::kEncodedOffset);
}

void EncodedWriter::Impl::add(const EncodedImage& image) {
  const auto require = [&](bool met, const std::string& what) {
    if (!met) throw invalid("image " + std::to_string(std::ssize(digests)) + what);
  };
  if (!file) throw invalid("an image was added after close");
  const auto is_side = [](std::int64_t side) { return 1 <= side && side <= image::kMaxSide; };
  require(!image.bytes.empty(), " has no bytes");
  require(std::cmp_less_equal(image.bytes.size(), h5::kMaxSampleBytes), " has more than 1 GiB");
  require(is_side(image.height) && is_side(image.width),
          " cannot have " + std::to_string(image.height) + "x" + std::to_string(image.width) +
              " pixels; sides are 1 to 65535");
  require(1 <= image.orientation && image.orientation <= image::Orientation::kMost,
          " cannot have orientation " + std::to_string(image.orientation) + "; there are 1 to 8");
  const std::uint64_t digest = base::digest(image.bytes);
  if (image.digest && *image.digest != digest) {
    throw Error(ErrorCode::digest_mismatch, target + ": image " +
                                                std::to_string(std::ssize(digests)) +
                                                " does not match the digest that it comes with");
  }
  try {
    const std::int64_t end = h5::kEncodedOffset + indptr.back() + std::ssize(image.bytes);
    if (end > reserved) reserve(end + std::int64_t{SequentialBytes::kBlockBytes});
    data->add(image.bytes);
    digests.push_back(digest);
    indptr.push_back(indptr.back() + std::ssize(image.bytes));
    sizes.push_back(static_cast<std::int32_t>(image.height));
    sizes.push_back(static_cast<std::int32_t>(image.width));
    orientations.push_back(image.orientation);
  } catch (...) {
    file.reset();
    throw;
  }
  totals.max_height = std::max(totals.max_height, image.height);
  totals.max_width = std::max(totals.max_width, image.width);
  totals.max_pixels = std::max(totals.max_pixels, image.height * image.width);
  totals.turned = totals.turned || image.orientation != 1;
}

void EncodedWriter::Impl::close(std::vector<FieldData> fields,
                                const DatasetStatistics& statistics) {
  totals.rows = std::ssize(digests);
  totals.num_bytes = indptr.back();
  if (totals.rows == 0) throw invalid("there are no images");
  const DatasetSpec about{.num_samples = totals.rows,
                          .height = 1,
                          .width = 1,
                          .channels = 3,
                          .channel_order = "RGB",
                          .fields = std::move(fields),
                          .class_names = spec.class_names,
                          .attribute_names = spec.attribute_names,
                          .split = spec.split,
                          .order = spec.order,
                          .seed = spec.seed,
                          .options_json = spec.options_json,
                          .shard = spec.shard};
  h5::validate(about);
  try {
    reserve(h5::kEncodedOffset + totals.num_bytes + structure_bytes(about.fields));
    const std::uint64_t digest = data->finish();
    std::vector<std::byte> small;
    if (totals.num_bytes < h5::kAlignedBytes) {
      small.resize(static_cast<std::size_t>(totals.num_bytes));
      base::read_at(file->fd(), h5::kEncodedOffset, small, file->path());
    }
    const h5::EncodedPlaces places =
        h5::write_encoded_structure(file->fd(), file->path(), totals, about, statistics);
    if (!small.empty()) base::write_at(file->fd(), places.data.offset, small, file->path());
    for (const h5::DigestedBytes& one : places.structure) {
      written.push_back({"the structure of the file", one.place, one.digest});
    }
    written.push_back({"images/data", places.data, digest});
    write_all("images/indptr", places.indptr, bytes_of(indptr));
    write_all("images/sizes", places.sizes, bytes_of(sizes));
    if (places.orientations) {
      write_all("images/orientations", *places.orientations, bytes_of(orientations));
    }
    write_all("sample_digests", places.digests, bytes_of(digests));
    for (std::size_t i = 0; i < about.fields.size(); ++i) {
      SequentialBytes out(file->fd(), file->path(), places.fields[i].offset);
      about.fields[i].for_each_block([&](std::span<const std::byte> rows) { out.add(rows); });
      written.push_back({about.fields[i].info.name, places.fields[i], out.finish()});
    }
    file->sync();
    verify(places);
    file->publish(target, overwrite);
  } catch (...) {
    file.reset();
    throw;
  }
  published = true;
  file.reset();
  write::sync_published(target);
}

std::int64_t EncodedWriter::Impl::structure_bytes(const std::vector<FieldData>& fields) const {
  constexpr std::int64_t kDescription = std::int64_t{1} << 20;
  // Offset, size, orientation and digest.
  std::int64_t row_bytes =
      sizeof(std::int64_t) + 2 * sizeof(std::int32_t) + 1 + sizeof(std::uint64_t);
  for (const FieldData& field : fields) {
    row_bytes += static_cast<std::int64_t>(Dataset::row_bytes(field.info));
  }
  return kDescription + totals.rows * row_bytes + std::ssize(spec.options_json);
}

void EncodedWriter::Impl::write_all(const std::string& name, const h5::PlacedBytes& place,
                                    std::span<const std::byte> bytes) {
  base::write_at(file->fd(), place.offset, bytes, file->path());
  written.push_back({name, place, base::digest(bytes)});
}

void EncodedWriter::Impl::verify(const h5::EncodedPlaces& places) {
  // From the disk rather than from memory, as far as the kernel follows.
  ::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
  if (h5::find_encoded_data(file->path()) != places.data) {
    throw write::read_back_otherwise(target, "the structure of the file");
  }
  for (const WrittenBytes& one : written) {
    if (!one.is_in(file->fd(), file->path(), stop)) {
      throw write::read_back_otherwise(target, one.name);
    }
  }
}

EncodedWriter::EncodedWriter(const std::string& path, const EncodedSpec& spec,
                             const PublishOptions& options)
    : impl_(std::make_unique<Impl>(path, spec, options)) {}

EncodedWriter::EncodedWriter(EncodedWriter&&) noexcept = default;
EncodedWriter& EncodedWriter::operator=(EncodedWriter&&) noexcept = default;
EncodedWriter::~EncodedWriter() = default;

std::int64_t EncodedWriter::num_rows() const noexcept { return std::ssize(impl_->digests); }

void EncodedWriter::add(const EncodedImage& image) { impl_->add(image); }

void EncodedWriter::close(std::vector<FieldData> fields, const DatasetStatistics& statistics) {
  if (impl_->published) return;
  if (!impl_->file) {
    throw Error(ErrorCode::invalid_argument, impl_->target + ": an earlier call failed");
  }
  impl_->close(std::move(fields), statistics);
}

}  // namespace chunkio
