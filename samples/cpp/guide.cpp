// The listings of libchunkio/doc/cpp.md, a function for each section. What stands between two equal
// marks is shown.
//
//     guide [THIRD_PARTY.h5 [CELLS.h5ad [ENCODED.h5]]]    writes train.h5 into the current folder,
//     and reads it in every way

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/dlpack.hpp>

namespace {

std::int64_t images_seen = 0;

// Stands for a training step.
void train(const chunkio::Tensor& images, const chunkio::Tensor& /*labels*/,
           chunkio::cuda::Stream /*stream*/ = nullptr) {
  images_seen += images.shape()[0];
}

// Stands for another framework.
void consumer(chunkio::dlpack::DLManagedTensorVersioned* tensor) { tensor->deleter(tensor); }

std::vector<std::byte> draw_images(std::int64_t first, std::int64_t count) {
  std::vector<std::byte> pixels(static_cast<std::size_t>(count) * 32 * 32 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::byte>(static_cast<std::size_t>(first) * 31 + i * i % 251);
  }
  return pixels;
}

std::vector<std::int64_t> draw_classes() {
  std::vector<std::int64_t> classes;
  for (std::int64_t row = 0; row < 1000; ++row) classes.push_back(row % 10);
  return classes;
}

void write(const std::string& path) {
  // [write]
  const std::vector<std::int64_t> classes = draw_classes();
  const auto class_bytes = std::as_bytes(std::span(classes));
  const chunkio::FieldData labels{.info = {"labels", chunkio::DType::int64, {}},
                                  .values = {class_bytes.begin(), class_bytes.end()}};
  const chunkio::FieldData masks{.info = {"mask", chunkio::DType::uint8, {32, 32}},
                                 .values = std::vector<std::byte>(1000 * 32 * 32)};
  chunkio::DatasetWriter writer(
      path,
      {.num_samples = 1000, .height = 32, .width = 32, .channels = 3, .fields = {labels, masks}},
      {.overwrite = true});
  // In any order, from any thread:
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    const std::int64_t first = chunk * writer.chunk_samples();
    writer.write_chunk(chunk, draw_images(first, std::min(writer.chunk_samples(), 1000 - first)));
  }
  writer.close();  // `path` appears now
  // [write]
}

void read_batches(const std::string& path) {
  // [batches]
  chunkio::Dataset dataset = chunkio::Dataset::open(path);
  chunkio::Loader loader(dataset, {.batch_size = 256, .seed = 7});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const chunkio::Batch& batch : loader.epoch(epoch)) {
      train(batch["images"], batch["labels"]);  // uint8 [B,H,W,C], int64 [B]
    }
  }
  // [batches]
  // [values]
  const chunkio::Batch batch = *loader.epoch(0).begin();
  const chunkio::Tensor images = batch["images"];
  const std::span<const std::uint8_t> pixels = images.values<std::uint8_t>();  // row-major
  const std::span<const std::int64_t> labels = batch["labels"].values<std::int64_t>();
  const std::span<const std::int64_t> rows = batch.sample_ids();  // their numbers in the file
  std::printf("%s %s\n", images.shape().to_string().c_str(), to_string(images.dtype()).data());
  // [values]
  std::printf("%zu pixels, first label %lld of row %lld\n", pixels.size(),
              static_cast<long long>(labels[0]), static_cast<long long>(rows[0]));
}

// Batches one by one.
void take_batches(chunkio::Loader& loader, const std::stop_token& stop) {
  // [next]
  loader.start_epoch(0);
  while (const std::optional<chunkio::Batch> batch = loader.next(stop, std::chrono::seconds(30))) {
    train((*batch)["images"], (*batch)["labels"]);
  }
  // [next]
}

void read_as_one_of_several(const chunkio::Dataset& dataset) {
  // [ranks]
  // Of torchrun, Open MPI, PMI or Slurm; one process without them.
  const auto ranks = chunkio::Ranks::find_in_environment().value_or(chunkio::Ranks{});
  const chunkio::LoaderOptions options{
      .batch_size = 64, .seed = 7, .order = {.lanes = 4}, .ranks = ranks};
  chunkio::Loader loader(dataset, options);
  // [ranks]
  train(loader.epoch(0).begin()->images(), {});
  // [resume]
  const std::string state = loader.state();  // a short JSON text, for your checkpoint

  chunkio::Loader resumed = chunkio::Loader::resume(dataset, options, state);
  for (std::int64_t epoch = resumed.position().epoch; epoch < 2; ++epoch) {
    for (const chunkio::Batch& batch : resumed.epoch(epoch)) {  // continues with the next batch
      train(batch["images"], batch["labels"]);
    }
  }
  // [resume]
}

void open_third_party_file(const std::string& path) {
  // [open]
  const chunkio::Dataset scans = chunkio::Dataset::open(
      path, {.images = "scans",
             .labels = "diagnosis",
             .scale = chunkio::PixelScale{.black = -1000, .white = 400, .clip = true},
             .allow_external = true});
  // [open]
  chunkio::Loader loader(scans, {});
  train(loader.epoch(0).begin()->images(), {});
}

void read_sparse_rows(const std::string& path) {
  // [sparse]
  const chunkio::Dataset cells = chunkio::Dataset::open(path);  // the CSR matrix X leads
  chunkio::Loader loader(cells, {.batch_size = 512});
  const chunkio::Densifier densify(cells.info().sparse->columns, {.row_sum = 1e4, .log1p = true});
  std::vector<std::byte> input(densify.output_bytes(512));
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    const chunkio::SparseTensor rows = batch.sparse();  // indptr, indices, values
    densify(rows, std::span(input).first(densify.output_bytes(rows.rows())));  // float32
  }
  // [sparse]
}

void read_encoded_images(const std::string& path) {
  // [encoded]
  const chunkio::Dataset photos = chunkio::Dataset::open(
      path, {.decode = chunkio::DecodeOptions{
                 .height = 224, .width = 224, .crop = chunkio::CropMode::random_resized}});
  chunkio::Loader loader(photos, {.batch_size = 64, .seed = 7});
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    train(batch.images(), batch.labels());  // uint8 [64,224,224,3]
  }
  // [encoded]
  // [encoder]
  chunkio::EncodedWriter writer("few.h5", {.split = "few"}, {.overwrite = true});
  for (const std::int64_t row : {0, 2}) writer.add(photos.read_encoded(row));
  writer.close({});  // labels and other fields of both images
  // [encoder]
}

// [source]
// An HDF5 file in memory.
class InMemory final : public chunkio::ByteSource {
 public:
  explicit InMemory(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  const std::string& name() const noexcept override { return name_; }
  std::int64_t size() const noexcept override { return std::ssize(bytes_); }
  std::uint64_t version() const override { return 0; }  // it never changes
  chunkio::ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                            const std::stop_token& /*stop*/) const override {
    if (offset + std::ssize(out) > size()) {
      throw chunkio::Error(chunkio::ErrorCode::corrupt_data, name_ + " ends early");
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  std::string name_ = "memory:train.h5";  // for messages
  std::vector<char> bytes_;
};
// [source]

void read_from_memory(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  // [open source]
  const auto dataset = chunkio::Dataset::open(std::make_shared<InMemory>(std::move(bytes)));
  // [open source]
  if (dataset.size() != 1000) throw std::runtime_error("samples were lost in memory");
}

void normalize_on_cpu(const chunkio::Dataset& dataset, chunkio::Loader& loader) {
  // [normalize]
  const chunkio::Normalizer normalize(dataset.info(),
                                      {.padding = 4, .random_crop = true, .flip = true});
  std::vector<std::byte> input;
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    input.resize(normalize.output_bytes(batch.size()));
    normalize(batch, input);  // float32 [B,C,H,W]
  }
  // [normalize]
}

void zoom_on_cpu(const chunkio::Dataset& dataset, chunkio::Loader& loader) {
  // [zoom]
  const chunkio::Normalizer zoom(
      dataset.info(), {.crop_height = 24,
                       .crop_width = 24,
                       .random_resized_crop = chunkio::ResizedCropRanges{.min_scale = 0.3},
                       .flip = true});
  // [zoom]
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    std::vector<std::byte> input(zoom.output_bytes(batch.size()));
    zoom(batch, input);
  }
}

void load_to_gpu(const chunkio::Dataset& dataset, chunkio::cuda::Stream stream) {
  // [gpu]
  chunkio::cuda::DeviceLoader loader(
      chunkio::Loader(dataset, {.batch_size = 256, .seed = 7}),
      {.normalize = {.dtype = chunkio::DType::float16, .flip = true}});
  for (const chunkio::cuda::DeviceBatch& batch : loader.epoch(0, stream)) {
    train(batch["images"], batch["labels"], stream);  // data() is device memory
  }
  // [gpu]
}

void export_batches(chunkio::Loader& loader) {
  // [dlpack]
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    auto images = chunkio::to_dlpack(batch, batch["images"]);
    consumer(images.release());  // the consumer calls the deleter when it is done
  }
  // [dlpack]
}

void print_bottleneck(const chunkio::Loader& loader) {
  // [report]
  const chunkio::BottleneckReport report = loader.stats().bottleneck();
  std::puts(report.summary().c_str());  // the bottleneck, and the best suggestion
  for (const chunkio::Suggestion& suggestion : report.suggestions) {
    std::printf("%s: %.0f images/s\n", suggestion.text.c_str(), suggestion.images_per_second);
  }
  // [report]
}

void handle_errors() {
  // [errors]
  try {
    chunkio::Dataset::open("missing.h5");
  } catch (const chunkio::Error& error) {
    if (error.code() != chunkio::ErrorCode::not_found) throw;
    std::printf("%s\n", error.what());  // one line: the file, the cause, and what would help
  }
  // [errors]
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string path = "train.h5";
    write(path);
    read_batches(path);
    const chunkio::Dataset dataset = chunkio::Dataset::open(path);
    read_as_one_of_several(dataset);
    if (argc > 1) open_third_party_file(argv[1]);
    if (argc > 2) read_sparse_rows(argv[2]);
    if (argc > 3) read_encoded_images(argv[3]);
    read_from_memory(path);
    chunkio::Loader loader(dataset, {.fields = {"mask"}});
    take_batches(loader, {});
    normalize_on_cpu(dataset, loader);
    zoom_on_cpu(dataset, loader);
    export_batches(loader);
    print_bottleneck(loader);
    handle_errors();
    try {
      load_to_gpu(dataset, nullptr);
    } catch (const chunkio::Error& error) {
      if (error.code() != chunkio::ErrorCode::cuda_failed &&
          error.code() != chunkio::ErrorCode::unsupported)
        throw;
      std::printf("no GPU: %s\n", error.what());
    }
    std::printf("%lld images\n", static_cast<long long>(images_seen));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guide: %s\n", error.what());
    return 1;
  }
}
