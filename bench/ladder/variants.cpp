#include "ladder/variants.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <future>
#include <iterator>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <utility>

#include <hdf5.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "h5/handle.hpp"
#include "harness/h5dread_baseline.hpp"
#include "harness/metered_driver.hpp"
#include "io/disk_limiter.hpp"
#include "plan/epoch_rows.hpp"

namespace bench {
namespace {

using chunkio::OrderMode;
using chunkio::SourceKind;
using chunkio::io::DiskLimiter;
using chunkio::plan::EpochRows;

// libhdf5's own defaults, and the settings that the usual advice ends with.
constexpr chunkio::ChunkCacheSettings kDefaultCache{
    .rdcc_nslots = 521, .rdcc_nbytes = std::size_t{1} << 20, .rdcc_w0 = 0.75};
constexpr chunkio::ChunkCacheSettings kLargeCache{
    .rdcc_nslots = 11213, .rdcc_nbytes = std::size_t{1} << 30, .rdcc_w0 = 1};

/// All rows of the epoch, before it is timed.
EpochRows order_of(const LadderImages& images, const LadderSettings& settings, OrderMode mode) {
  const std::int64_t group_bytes =
      images.chunk_samples * static_cast<std::int64_t>(images.image_bytes());
  return EpochRows(chunkio::EpochOrder(
      chunkio::RowGroups(images.chunk_samples, images.count()),
      {.mode = mode,
       .seed = settings.seed,
       .batch_size = settings.batch_size,
       .window_groups = std::max<std::int64_t>(settings.window_bytes / group_bytes, 1)},
      0));
}

std::vector<std::int64_t> batch_of(const EpochRows& order, std::int64_t step) {
  std::vector<std::int64_t> rows;
  order.append_batch(step, rows);
  return rows;
}

std::unique_ptr<DiskLimiter> disk_of(const LadderSettings& settings) {
  return settings.limit ? std::make_unique<DiskLimiter>(*settings.limit) : nullptr;
}

/// What is delivered, and its memory.
struct Delivery {
  std::vector<std::int64_t> rows;
  std::vector<std::byte> pixels;
  std::vector<float> values;
  std::int64_t bytes_read = 0;

  [[nodiscard]] LadderBatch batch() const { return {rows, pixels, values}; }
};

/// Reads image files into a batch. One for each thread.
class FileBatches {
 public:
  FileBatches(const LadderImages& images, DiskLimiter* disk, bool as_float)
      : images_(images), disk_(disk), as_float_(as_float) {}

  Delivery read(std::vector<std::int64_t> rows, const std::stop_token& stop) {
    const std::size_t image = images_.image_bytes();
    Delivery out;
    if (as_float_) {
      out.values.resize(rows.size() * image);
    } else {
      out.pixels.resize(rows.size() * image);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto jpeg = file_.read(images_.files.files[static_cast<std::size_t>(rows[i])]);
      const auto bytes = static_cast<std::int64_t>(jpeg.size());
      if (disk_ != nullptr && !disk_->transfer(bytes, stop)) break;
      out.bytes_read += bytes;
      const auto pixels = reader_.decode(jpeg);
      if (as_float_) {
        normalize_image(images_.files.size, pixels.data(), out.values.data() + i * image);
      } else {
        std::memcpy(out.pixels.data() + i * image, pixels.data(), image);
      }
    }
    out.rows = std::move(rows);
    return out;
  }

 private:
  const LadderImages& images_;
  DiskLimiter* disk_;
  bool as_float_;
  JpegReader reader_;
  FileReader file_;
};

/// Opened, read and decoded by the consumer when it asks.
class FilesOnDemand final : public Epoch {
 public:
  FilesOnDemand(const LadderImages& images, const LadderSettings& settings)
      : order_(order_of(images, settings, OrderMode::random)),
        disk_(disk_of(settings)),
        files_(images, disk_.get(), true) {}

  std::optional<LadderBatch> next() override {
    if (step_ == order_.num_steps()) return std::nullopt;
    now_ = files_.read(batch_of(order_, step_++), {});
    bytes_read_ += now_.bytes_read;
    return now_.batch();
  }
  [[nodiscard]] std::optional<std::int64_t> bytes_read() const override { return bytes_read_; }

 private:
  EpochRows order_;
  std::unique_ptr<DiskLimiter> disk_;
  FileBatches files_;
  std::int64_t step_ = 0;
  std::int64_t bytes_read_ = 0;
  Delivery now_;
};

/// Gathered and normalised by the consumer.
class InMemory final : public Epoch {
 public:
  InMemory(const LadderImages& images, const LadderSettings& settings)
      : images_(images), order_(order_of(images, settings, OrderMode::random)) {}

  std::optional<LadderBatch> next() override {
    if (step_ == order_.num_steps()) return std::nullopt;
    now_.rows = batch_of(order_, step_++);
    const std::size_t image = images_.image_bytes();
    now_.values.resize(now_.rows.size() * image);
    for (std::size_t i = 0; i < now_.rows.size(); ++i) {
      normalize_image(images_.files.size, images_.image(now_.rows[i]),
                      now_.values.data() + i * image);
    }
    return now_.batch();
  }
  [[nodiscard]] std::optional<std::int64_t> bytes_read() const override { return std::nullopt; }

 private:
  const LadderImages& images_;
  EpochRows order_;
  std::int64_t step_ = 0;
  Delivery now_;
};

/// Workers that make whole batches ahead of the consumer, as a PyTorch DataLoader's do: each batch
/// by one worker, delivered in order.
class FilesWithWorkers final : public Epoch {
 public:
  FilesWithWorkers(const LadderImages& images, const LadderSettings& settings, bool as_float)
      : order_(order_of(images, settings, OrderMode::random)),
        images_(images),
        as_float_(as_float),
        num_workers_(settings.threads),
        disk_(disk_of(settings)),
        room_(settings.threads + settings.prefetch_depth),
        made_(static_cast<std::size_t>(order_.num_steps())) {}
  ~FilesWithWorkers() override {
    for (std::jthread& worker : workers_) worker.request_stop();
    room_.release(num_workers_);
  }

  std::optional<LadderBatch> next() override {
    for (std::int64_t i = std::ssize(workers_); i < num_workers_; ++i) {
      workers_.emplace_back([this](const std::stop_token& stop) {
        work(FileBatches(images_, disk_.get(), as_float_), stop);
      });
    }
    if (delivered_ == made_.size()) return std::nullopt;
    now_ = made_[delivered_++].get_future().get();
    room_.release();
    bytes_read_ += now_.bytes_read;
    return now_.batch();
  }
  [[nodiscard]] std::optional<std::int64_t> bytes_read() const override { return bytes_read_; }

 private:
  void work(FileBatches files, const std::stop_token& stop) {
    for (;;) {
      room_.acquire();
      const std::size_t step = next_++;
      if (stop.stop_requested() || step >= made_.size()) return;
      try {
        made_[step].set_value(files.read(batch_of(order_, static_cast<std::int64_t>(step)), stop));
      } catch (...) {
        made_[step].set_exception(std::current_exception());
      }
    }
  }

  const EpochRows order_;
  const LadderImages& images_;
  const bool as_float_;
  const std::int64_t num_workers_;
  std::unique_ptr<DiskLimiter> disk_;
  Delivery now_;                 // the consumer's
  std::int64_t bytes_read_ = 0;  // the consumer's
  std::size_t delivered_ = 0;    // the consumer's

  std::counting_semaphore<> room_;  // for batches that are made or to be delivered
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::promise<Delivery>> made_;  // all of the epoch
  std::vector<std::jthread> workers_;         // last: joined before anything they use is gone
};

/// One H5Dread an image by the consumer, as h5py does it.
class ByLibhdf5 final : public Epoch {
 public:
  ByLibhdf5(const LadderImages& images, const LadderSettings& settings, OrderMode mode,
            bool chunked, const chunkio::ChunkCacheSettings& cache)
      : image_bytes_(images.image_bytes()),
        order_(order_of(images, settings, mode)),
        disk_(disk_of(settings)),
        reads_([this](const MeteredRead& read) {
          bytes_read_ += read.bytes;
          if (disk_) disk_->transfer(read.bytes, {}, read.file_offset);
        }),
        access_(H5Pcreate(H5P_FILE_ACCESS)) {
    const std::string& path = chunked ? images.chunked : images.contiguous;
    reads_.install(access_, path);
    images_.emplace(path, cache, access_.get());
    bytes_read_ = 0;
  }

  std::optional<LadderBatch> next() override {
    if (step_ == order_.num_steps()) return std::nullopt;
    now_.rows = batch_of(order_, step_++);
    now_.pixels.resize(now_.rows.size() * image_bytes_);
    for (std::size_t i = 0; i < now_.rows.size(); ++i) {
      images_->read(now_.rows[i], now_.pixels.data() + i * image_bytes_);
    }
    return now_.batch();
  }
  [[nodiscard]] std::optional<std::int64_t> bytes_read() const override { return bytes_read_; }

 private:
  std::size_t image_bytes_;
  EpochRows order_;
  std::int64_t step_ = 0;
  std::int64_t bytes_read_ = 0;
  Delivery now_;
  std::unique_ptr<DiskLimiter> disk_;
  MeteredReads reads_;
  chunkio::h5::ListId access_;
  std::optional<H5DreadBaseline> images_;  // closed first
};

/// As they are stored.
chunkio::Dataset open_chunked(const LadderImages& images) {
  return chunkio::Dataset::open(images.chunked);
}

/// Decoded whole while they are read.
chunkio::Dataset open_encoded(const LadderImages& images) {
  return chunkio::Dataset::open(
      images.encoded, {.decode = chunkio::DecodeOptions{.height = images.files.size.height,
                                                        .width = images.files.size.width,
                                                        .crop = chunkio::CropMode::whole}});
}

/// The library's Loader with its scatter source, or with the one of encoded images.
class ByLoader final : public Epoch {
 public:
  using Open = chunkio::Dataset (*)(const LadderImages&);

  /// \param echo  how often each batch is used.
  ByLoader(const LadderImages& images, const LadderSettings& settings, Open open, SourceKind source,
           int echo)
      : loader_(open(images), {.batch_size = settings.batch_size,
                               .seed = settings.seed,
                               .order = {.window_bytes = settings.window_bytes},
                               .memory = {.budget = std::int64_t{8} << 30,
                                          .prefetch_depth = settings.prefetch_depth},
                               .io = {.num_threads = settings.threads,
                                      .source = source,
                                      .num_epochs = 1,
                                      .disk_limit = settings.limit}}),
        echo_(echo) {}

  std::optional<LadderBatch> next() override {
    if (!started_) loader_.start_epoch(0);
    started_ = true;
    if (used_ % echo_ == 0) {
      batch_.reset();
      batch_ = loader_.next();
      if (!batch_) {
        ended_ = true;
        return std::nullopt;
      }
    }
    ++used_;
    const chunkio::Tensor images = batch_->images();
    return LadderBatch{.rows = batch_->sample_ids(),
                       .pixels = {images.data(), images.size_bytes()}};
  }
  /// Before the end of the epoch it has read ahead.
  [[nodiscard]] std::optional<std::int64_t> bytes_read() const override {
    return ended_ ? std::optional(loader_.epoch_stats(0).bytes_read) : std::nullopt;
  }

 private:
  chunkio::Loader loader_;
  int echo_;
  std::int64_t used_ = 0;
  bool started_ = false;
  bool ended_ = false;
  std::optional<chunkio::Batch> batch_;
};

template <class Way, class... More>
auto start(More... more) {
  return [=](const LadderImages& images, const LadderSettings& settings) {
    return std::make_unique<Way>(images, settings, more...);
  };
}

}  // namespace

const std::vector<Variant>& variants() {
  constexpr bool kAsFloat = true;
  constexpr bool kChunked = true;
  static const std::vector<Variant> all = {
      {"one file per image, read on demand, float32", start<FilesOnDemand>()},
      {"all images in memory, float32", start<InMemory>()},
      {"files with workers and prefetch, float32", start<FilesWithWorkers>(kAsFloat)},
      {"the same, uint8 instead of float32", start<FilesWithWorkers>(!kAsFloat)},
      {"contiguous HDF5, random reads",
       start<ByLibhdf5>(OrderMode::random, !kChunked, kDefaultCache)},
      {"chunked HDF5, default cache, random reads",
       start<ByLibhdf5>(OrderMode::random, kChunked, kDefaultCache)},
      {"the same, rdcc 11213 slots, 1 GiB, w0 = 1",
       start<ByLibhdf5>(OrderMode::random, kChunked, kLargeCache)},
      {"the same, chunk-ordered shuffle",
       start<ByLibhdf5>(OrderMode::chunk_shuffled, kChunked, kLargeCache)},
      {"chunk-ordered shuffle, scatter reads",
       start<ByLoader>(open_chunked, SourceKind::scatter, 1)},
      {"the same, echo factor 2", start<ByLoader>(open_chunked, SourceKind::scatter, 2)},
#ifdef LADDER_WITH_CODECS
      {"the JPEG files' bytes in one file, decoded while read",
       start<ByLoader>(open_encoded, SourceKind::direct, 1)},
#endif
  };
  return all;
}

void normalize_image(const ImageSize& size, const std::byte* pixels, float* values) {
  constexpr std::array<float, 3> kMean{0.485F, 0.456F, 0.406F};
  constexpr std::array<float, 3> kStd{0.229F, 0.224F, 0.225F};
  const auto area = static_cast<std::size_t>(size.height * size.width);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const float scale = 1 / (255 * kStd[channel]);
    const float shift = kMean[channel] / kStd[channel];
    float* const plane = values + channel * area;
    for (std::size_t i = 0; i < area; ++i) {
      plane[i] = static_cast<float>(pixels[i * 3 + channel]) * scale - shift;
    }
  }
}

}  // namespace bench
