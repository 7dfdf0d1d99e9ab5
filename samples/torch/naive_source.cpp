#include "naive_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <chunkio/error.hpp>

namespace trainer {

NaiveSource::NaiveSource(chunkio::Dataset dataset, chunkio::LoaderOptions options,
                         chunkio::NormalizeOptions normalize, const BatchRequest& request)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      normalize_(std::move(normalize)),
      request_(request),
      order_(order_of(0)) {}

chunkio::EpochOrder NaiveSource::order_of(std::int64_t epoch) const {
  const chunkio::DatasetInfo& info = dataset_.info();
  const std::int64_t group = info.stored.chunked ? info.stored.chunk_shape[0] : 1;
  chunkio::OrderOptions order;
  order.mode = options_.order.mode;
  order.seed = options_.seed;
  order.batch_size = options_.batch_size;
  order.drop_last = options_.order.drop_last;
  order.window_groups =
      std::max<std::int64_t>(1, options_.order.window_bytes / (group * info.sample_bytes()));
  const auto groups = options_.rows ? chunkio::RowGroups(group, dataset_.size(), *options_.rows)
                                    : chunkio::RowGroups(group, dataset_.size());
  return {groups, order, epoch};
}

void NaiveSource::start_epoch(std::int64_t epoch) {
  if (ahead_.valid()) ahead_.wait();  // Of an epoch that was left.
  order_ = order_of(epoch);
  step_ = 0;
  random_.seed(options_.seed * 1'000'003 + static_cast<std::uint64_t>(epoch));
  ahead_ = read_ahead();
}

std::optional<TrainingBatch> NaiveSource::next() {
  if (!ahead_.valid()) return {};
  const TrainingBatch batch = ahead_.get();
  ahead_ = read_ahead();
  // Waits for the copy, as copies from pageable memory do.
  return TrainingBatch{batch.images.to(request_.device), batch.labels.to(request_.device)};
}

std::future<TrainingBatch> NaiveSource::read_ahead() {
  if (step_ == num_steps()) return {};
  return std::async(std::launch::async,
                    [this, rows = order_.batch(step_++)] { return read(rows); });
}

TrainingBatch NaiveSource::read(const std::vector<std::int64_t>& rows) {
  const chunkio::DatasetInfo& info = dataset_.info();
  const std::int64_t height = info.height;
  const std::int64_t width = info.width;
  const std::int64_t channels = info.channels;
  const bool nchw = info.layout == chunkio::Layout::nchw;
  const std::int64_t channel_stride = nchw ? height * width : 1;
  const std::int64_t pixel_stride = nchw ? 1 : channels;
  const std::vector<double>& mean = info.statistics ? info.statistics->mean : normalize_.mean;
  const std::vector<double>& deviation = info.statistics ? info.statistics->std : normalize_.std;
  const auto of_channel = [](const std::vector<double>& values, std::int64_t c) {
    return static_cast<float>(values.size() == 1 ? values[0] : values[static_cast<std::size_t>(c)]);
  };

  std::vector<std::uint8_t> image(static_cast<std::size_t>(info.sample_bytes()));
  const auto count = static_cast<std::int64_t>(rows.size());
  torch::Tensor images = torch::zeros({count, height, width, channels});
  const chunkio::FieldInfo& field = *info.labels;
  const std::size_t label_bytes = chunkio::Dataset::row_bytes(field);
  std::vector<std::byte> labels(rows.size() * label_bytes);
  auto* out = images.data_ptr<float>();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    dataset_.read_images(rows[i], 1, std::as_writable_bytes(std::span(image)));
    dataset_.read_field(field.name, rows[i], 1,
                        std::span(labels).subspan(i * label_bytes, label_bytes));
    std::int64_t down = 0;
    std::int64_t right = 0;
    bool flip = false;
    if (normalize_.random_crop) {
      const auto places = static_cast<std::uint64_t>(2 * normalize_.padding + 1);
      down = static_cast<std::int64_t>(random_() % places) - normalize_.padding;
      right = static_cast<std::int64_t>(random_() % places) - normalize_.padding;
      flip = random_() % 2 == 1;
    }
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x, out += channels) {
        const std::int64_t from_y = y + down;
        const std::int64_t from_x = (flip ? width - 1 - x : x) + right;
        const bool outside = from_y < 0 || from_y >= height || from_x < 0 || from_x >= width;
        for (std::int64_t c = 0; c < channels; ++c) {
          const float value =
              outside ? 0.0F
                      : static_cast<float>(image[static_cast<std::size_t>(
                            (from_y * width + from_x) * pixel_stride + c * channel_stride)]);
          out[c] = (value / 255.0F - of_channel(mean, c)) / of_channel(deviation, c);
        }
      }
    }
  }

  std::vector<std::int64_t> label_shape{count};
  for (const std::int64_t dim : field.row_shape.dims()) label_shape.push_back(dim);
  const auto dtype = field.dtype == chunkio::DType::int64 ? torch::kInt64 : torch::kUInt8;
  torch::Tensor label_tensor = torch::empty(label_shape, dtype);
  std::memcpy(label_tensor.data_ptr(), labels.data(), labels.size());
  return {images.permute({0, 3, 1, 2}), label_tensor.to(request_.label_dtype)};
}

}  // namespace trainer
