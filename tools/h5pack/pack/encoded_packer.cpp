#include "h5pack/pack/encoded_packer.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/resume_hint.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/image/image_codecs.hpp"
#include "h5pack/image/jpeg_limiter.hpp"
#include "h5pack/pack/image_reader.hpp"
#include "h5pack/pack/noted_writer.hpp"
#include "h5pack/pack/pack_order.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::int64_t kChannels = 3;

/// An image on its way to the file.
struct Checked {
  chunkio::EncodedImage image = {};
  ImageSize upright = {};  ///< In the source. Says nothing of a stored row.
  bool limited = false;    ///< It is smaller than there.
  chunkio::PixelStatistics pixels{kChannels, chunkio::Layout::nhwc};
  std::optional<ImageFormat> misnamed = {};  ///< What it holds if its name says something else.
};

std::vector<std::byte> copied(std::span<const std::uint8_t> bytes) {
  const auto all = std::as_bytes(bytes);
  return {all.begin(), all.end()};
}

/// What one thread needs to check images. Not thread-safe.
class Checker {
 public:
  Checker(const Images& images, const PackOptions& options)
      : images_(&images),
        limit_(options.limit),
        decoder_(ColorMode::rgb, options.image.orientation, options.image.max_pixels,
                 ImageDecoder::Bytes::kept),
        stored_decoder_(ColorMode::rgb, OrientationMode::ignore, kHighestMaxPixels),
        limiter_(options.limit) {}

  /// A row that a packed file holds, byte by byte. It is decoded for the statistics.
  /// \throws Error as Dataset::read_encoded() and ImageDecoder.
  Checked copied_row(std::int64_t row) {
    Checked result{.image = images_->read_stored_encoded(row)};
    const ImageSize size = stored_decoder_.open_encoded(result.image.bytes, images_->name(row));
    pixels_.resize(static_cast<std::size_t>(size.pixels() * kChannels));
    stored_decoder_.decode(pixels_.data());
    result.pixels.add(pixels_);
    return result;
  }

  /// \throws Error as ImageDecoder; unsupported: it cannot be stored encoded.
  Checked checked(std::int64_t row) {
    Checked result{.upright = images_->open(row, decoder_)};
    const std::optional<ImageFormat> format = decoder_.format();
    const bool kept =
        format == ImageFormat::jpeg || format == ImageFormat::png || format == ImageFormat::webp;
    if (!kept) {
      throw Error(ErrorCode::unsupported,
                  cli::quote(images_->name(row)) + " is " +
                      (format ? std::string(to_string(*format)) : "not encoded") +
                      ": JPEG, PNG and WebP can be stored encoded; use --store raw, or convert it");
    }
    constexpr std::int64_t kMaxSide = 65535;
    result.limited = limit_.exceeded_by(result.upright);
    if (!result.limited && std::max(result.upright.height, result.upright.width) > kMaxSide) {
      throw Error(ErrorCode::unsupported, cli::quote(images_->name(row)) + " has " +
                                              to_string(result.upright) +
                                              " pixels; sides of encoded images are at most 65535, "
                                              "and --max-side makes larger ones smaller");
    }
    pixels_.resize(static_cast<std::size_t>(result.upright.pixels() * kChannels));
    decoder_.decode(pixels_.data());
    result.misnamed = decoder_.misnamed();
    if (result.limited) {
      const JpegLimiter::Result made =
          limiter_.limited(pixels_, result.upright, images_->name(row));
      result.pixels.add(made.pixels);
      result.image = {
          .bytes = copied(made.file), .height = made.size.height, .width = made.size.width};
    } else {
      const ImageSize stored = decoder_.stored_size();
      result.pixels.add(pixels_);
      result.image = {.bytes = copied(decoder_.encoded()),
                      .height = stored.height,
                      .width = stored.width,
                      .orientation = static_cast<std::uint8_t>(decoder_.orientation())};
    }
    return result;
  }

 private:
  const Images* images_;
  SizeLimit limit_;
  ImageDecoder decoder_;
  ImageDecoder stored_decoder_;
  JpegLimiter limiter_;
  std::vector<std::uint8_t> pixels_;
};

void add_all(const Split& split, const std::vector<std::int64_t>& order, const PackPlan& plan,
             const PackOptions& options, NotedWriter& writer, ErrorBudget& budget,
             std::optional<MisnamedImages>& misnamed) {
  struct Item {
    std::int64_t place = 0;
    std::optional<std::variant<Checked, SkippedImage>> outcome = {};
  };
  // The pipeline gets pointers: what TBB holds itself when an exception ends it is never destroyed.
  std::vector<Item> items(4 * static_cast<std::size_t>(plan.threads));
  const Images& images = *split.images;
  cli::Progress progress(split.name.empty() ? "packing" : "packing " + split.name, "images",
                         plan.num_samples - writer.next_place(), options.quiet);
  tbb::enumerable_thread_specific<Checker> checkers([&] { return Checker(images, options); });
  const auto add = [&](Item& item) {
    if (auto* const skipped = std::get_if<SkippedImage>(&*item.outcome)) {
      budget.spend(*skipped);
      progress.add_skipped(1);
      writer.skip(*skipped);
      return;
    }
    const Checked checked = std::get<Checked>(*std::exchange(item.outcome, std::nullopt));
    const std::int64_t row = order[static_cast<std::size_t>(item.place)];
    const auto size = images.is_stored(row) ? std::nullopt : std::optional(checked.upright);
    writer.add(checked.image, cli::quote(images.name(row)),
               {.pixels = checked.pixels, .source_size = size, .limited = checked.limited});
    if (checked.misnamed) count_misnamed(misnamed, row, *checked.misnamed);
  };
  // Without this, TBB starts no more threads than there are CPUs, whatever the arena asks for.
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(plan.threads));
  tbb::task_arena arena(plan.threads);
  std::int64_t next = writer.next_place();
  arena.execute([&] {
    tbb::parallel_pipeline(
        items.size(),
        tbb::make_filter<void, Item*>(tbb::filter_mode::serial_in_order,
                                      [&](tbb::flow_control& control) -> Item* {
                                        if (next == plan.num_samples) {
                                          control.stop();
                                          return nullptr;
                                        }
                                        Item& item =
                                            items[static_cast<std::size_t>(next) % items.size()];
                                        item.place = next++;
                                        return &item;
                                      }) &
            tbb::make_filter<Item*, Item*>(
                tbb::filter_mode::parallel,
                [&](Item* item) {
                  cli::StopSignal::check();
                  const std::int64_t row = order[static_cast<std::size_t>(item->place)];
                  if (images.is_stored(row)) {
                    // Damage here is no fault of a source, and is never skipped.
                    item->outcome = checkers.local().copied_row(row);
                  } else {
                    item->outcome = or_skipped(images, row, item->place,
                                               [&] { return checkers.local().checked(row); });
                  }
                  progress.add(1);
                  return item;
                }) &
            tbb::make_filter<Item*, void>(tbb::filter_mode::serial_in_order,
                                          [&](Item* item) { add(*item); }));
  });
}

chunkio::EncodedSpec make_spec(const Listing& listing, const Split& split, const PackPlan& plan,
                               const PackOptions& options) {
  chunkio::EncodedSpec spec{.split = split.name,
                            .order = options.shuffled ? "shuffled" : "source",
                            .seed = options.shuffled ? options.seed : 0,
                            .options_json = options.options_json,
                            // How much less a limit makes of them is not known.
                            .expected_bytes = options.limit.max_side > 0 ? 0 : plan.file_bytes,
                            .shard = shard_info(plan, options)};
  if (find_field(split.fields, "labels") != nullptr) {
    spec.class_names = listing.class_names;
    spec.attribute_names = listing.attribute_names;
  }
  return spec;
}

void pack_it(const Listing& listing, const Split& split, const PackPlan& plan,
             const PackOptions& options, NotedWriter& writer, ErrorBudget& budget,
             PackResult& result) {
  const std::vector<std::int64_t> order = pack_order(plan, options);
  result.num_resumed = writer.num_rows();
  for (const SkippedImage& skipped : writer.so_far().skipped) budget.spend(skipped);
  add_all(split, order, plan, options, writer, budget, result.misnamed);
  cli::StopSignal::check();
  split.images->check_unchanged();
  ChunkRecord all = writer.so_far();
  result.skipped = std::move(all.skipped);
  result.num_limited = all.num_limited;
  result.num_samples = writer.num_rows();
  if (result.num_samples == 0) {
    throw Error(ErrorCode::corrupt_data,
                "none of the " + std::to_string(plan.num_samples) +
                    " images can be packed; the first: " + result.skipped.front().reason);
  }
  std::vector<chunkio::FieldData> fields = fields_of(split, without(order, result.skipped));
  const bool known = split.images->add_stored_sizes(all.sizes);
  result.statistics = {all.pixels.result(), chunkio::count_classes(fields, listing.class_names),
                       all.pixels.mean_picture_std(),
                       known ? std::optional(all.sizes.summary()) : std::nullopt};
  if (options.before_publishing) options.before_publishing(result.skipped);
  writer.close(std::move(fields), result.statistics);
}

}  // namespace

PackResult pack_encoded(const Listing& listing, const Split& split, const PackPlan& plan,
                        const std::string& path, const PackOptions& options, ErrorBudget& budget) {
  const auto start = std::chrono::steady_clock::now();
  // Images are decoded in parallel; threads inside one would only get in the way.
  use_one_thread_an_image();
  NotedWriter writer(path, make_spec(listing, split, plan, options), plan.num_samples,
                     options.writer);
  PackResult result;
  cli::run_with_resume_hint(cli::resumable(writer), path, [&] {
    pack_it(listing, split, plan, options, writer, budget, result);
  });
  result.path = path;
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
