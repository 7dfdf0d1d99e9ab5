#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/cuda/dlpack.hpp>

#include "device/device_loader_access.hpp"
#include "device/echo_deal.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/fake_gpu.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"

namespace chunkio::cuda {
namespace {

using test::expect_error;
using test::FakeGpu;

/// What a batch consists of, as bytes.
struct Delivered {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t echo_pass = 0;
  std::vector<std::int64_t> ids = {};
  std::vector<std::byte> images = {};
  std::vector<std::byte> labels = {};
  std::vector<std::byte> weights = {};  ///< The field, if the loader was asked for it.

  friend bool operator==(const Delivered&, const Delivered&) = default;
};

class DeviceLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_.file("train.h5");
    test::write_packed(path_, {.num_samples = 47, .height = 6, .width = 5, .chunk_samples = 6});
    start_gpu();
  }
  void TearDown() override { end_gpu(); }

  void start_gpu() {
    gpu_ = std::make_shared<FakeGpu>();
    gpu_->set_capacity(kSmallGpu);
    stream_ = gpu_->create_stream();
  }
  void end_gpu() const {
    gpu_->destroy_stream(stream_);
    EXPECT_EQ(gpu_->live(), 0) << "something was taken and not given back";
    EXPECT_EQ(gpu_->unlocked_too_early(), 0);
  }

  /// What the dataset takes on a device.
  static constexpr std::int64_t kDatasetBytes = 47 * (6 * 5 * 3 + 8) + 16;
  /// Room for batches, but the dataset takes more than a quarter.
  static constexpr std::int64_t kSmallGpu = 4 * kDatasetBytes - 4;
  static constexpr std::int64_t kLargeGpu = 1 << 20;
  /// What an output batch of 4 images takes, as float32: images, labels and tasks.
  static constexpr std::int64_t kOutputBytes = 4 * (6 * 5 * 3 * 4 + 8 + 16);
  /// What two big batches of `rows` images take.
  [[nodiscard]] static constexpr std::int64_t big_batches_bytes(std::int64_t rows) {
    return 2 * (rows * (6 * 5 * 3 + 8) + 16);
  }

  [[nodiscard]] static LoaderOptions loader_options() {
    return {.batch_size = 4, .seed = 3, .num_threads = 2};
  }
  [[nodiscard]] Loader host_loader(const LoaderOptions& options = loader_options()) const {
    return Loader(Dataset::open(path_), options);
  }
  [[nodiscard]] DeviceLoader device_loader(const DeviceOptions& options,
                                           const LoaderOptions& host = loader_options()) const {
    return internal::DeviceLoaderAccess::make(gpu_, host_loader(host), options);
  }
  [[nodiscard]] static NormalizeOptions augmented() {
    return {.mean = {0.4, 0.5, 0.6},
            .std = {0.25},
            .padding = 2,
            .random_crop = true,
            .flip = true,
            .seed = 11};
  }
  [[nodiscard]] static NormalizeOptions plain() { return {.mean = {0}, .std = {1}}; }

  /// Reads a batch as a consumer on a GPU would: by work of its stream.
  [[nodiscard]] Delivered read(const DeviceBatch& batch, bool has_weights = false) const {
    Delivered delivered{
        .epoch = batch.epoch(), .step = batch.step(), .echo_pass = batch.echo_pass()};
    delivered.ids.assign(batch.sample_ids().begin(), batch.sample_ids().end());
    const auto bytes_of = [](const DeviceTensor& tensor) {
      return tensor.data == nullptr
                 ? std::size_t{0}
                 : static_cast<std::size_t>(tensor.shape.num_elements()) * size_of(tensor.dtype);
    };
    delivered.images.resize(bytes_of(batch.images()));
    delivered.labels.resize(bytes_of(batch.labels()));
    const DeviceTensor weights = has_weights ? batch.field("weights") : DeviceTensor{};
    delivered.weights.resize(bytes_of(weights));
    gpu_->run_on(stream_, [&delivered, weights, images = batch.images(), labels = batch.labels()] {
      const auto copy = [](std::vector<std::byte>& bytes, const DeviceTensor& tensor) {
        if (tensor.data != nullptr) std::memcpy(bytes.data(), tensor.data, bytes.size());
      };
      copy(delivered.images, images);
      copy(delivered.labels, labels);
      copy(delivered.weights, weights);
    });
    gpu_->synchronize(stream_);
    return delivered;
  }

  [[nodiscard]] std::vector<Delivered> drain(DeviceLoader& loader, bool has_weights = false) const {
    std::vector<Delivered> all;
    while (const auto batch = loader.next(stream_)) all.push_back(read(*batch, has_weights));
    return all;
  }
  [[nodiscard]] std::vector<Delivered> epoch_of(DeviceLoader& loader, std::int64_t epoch) const {
    loader.start_epoch(epoch);
    return drain(loader);
  }

  /// The same from Loader, Normalizer and the definition of echoing.
  [[nodiscard]] std::vector<Delivered> expected(
      const DeviceOptions& options, std::int64_t epoch,
      const LoaderOptions& host = loader_options()) const {
    Loader loader = host_loader(host);
    const Normalizer normalize(loader.dataset().info(), options.normalize);
    const auto sample_bytes = static_cast<std::size_t>(loader.dataset().info().sample_bytes());
    struct HostBatch {
      std::vector<std::int64_t> ids, labels;
      std::vector<std::byte> images;
    };
    std::vector<HostBatch> batches;
    for (const Batch& batch : loader.epoch(epoch)) {
      HostBatch& copy = batches.emplace_back();
      copy.ids.assign(batch.sample_ids().begin(), batch.sample_ids().end());
      if (loader.dataset().info().labels) {
        const auto labels = batch.labels().values<std::int64_t>();
        copy.labels.assign(labels.begin(), labels.end());
      }
      const std::byte* const images = batch.images().data();
      copy.images.assign(images, images + batch.images().size_bytes());
    }
    std::vector<Delivered> all;
    const auto m = static_cast<std::size_t>(options.big_batch);
    for (std::size_t first = 0; first < batches.size(); first += m) {
      const std::size_t end = std::min(first + m, batches.size());
      HostBatch big;
      for (std::size_t i = first; i < end; ++i) {
        big.ids.insert(big.ids.end(), batches[i].ids.begin(), batches[i].ids.end());
        big.labels.insert(big.labels.end(), batches[i].labels.begin(), batches[i].labels.end());
        big.images.insert(big.images.end(), batches[i].images.begin(), batches[i].images.end());
      }
      for (std::int64_t pass = 0; pass < options.echo; ++pass) {
        std::vector<std::int32_t> rows(big.ids.size());
        device::deal_rows({host.seed, epoch, host.rank, static_cast<std::int64_t>(first)}, pass,
                          rows);
        auto row = rows.begin();
        for (std::size_t i = first; i < end; ++i) {
          Delivered made{.epoch = epoch, .step = std::ssize(all), .echo_pass = pass};
          std::vector<std::byte> images;
          for (std::size_t k = 0; k < batches[i].ids.size(); ++k, ++row) {
            const auto r = static_cast<std::size_t>(*row);
            made.ids.push_back(big.ids[r]);
            if (!host.fields.empty()) {
              const auto id = static_cast<float>(big.ids[r]);
              const std::vector<std::byte> weights = test::as_bytes<float>({id, -id});
              made.weights.insert(made.weights.end(), weights.begin(), weights.end());
            }
            const auto image = big.images.begin() + static_cast<std::ptrdiff_t>(r * sample_bytes);
            images.insert(images.end(), image, image + static_cast<std::ptrdiff_t>(sample_bytes));
            if (big.labels.empty()) continue;
            const std::vector<std::byte> label =
                options.label_dtype == DType::int64
                    ? test::as_bytes<std::int64_t>({big.labels[r]})
                    : test::as_bytes<float>({static_cast<float>(big.labels[r])});
            made.labels.insert(made.labels.end(), label.begin(), label.end());
          }
          made.images.resize(normalize.output_bytes(std::ssize(made.ids)));
          normalize({images.data(), DType::uint8,
                     loader.dataset().info().sample_shape().with_first_axis(std::ssize(made.ids))},
                    made.ids, epoch, made.images, pass);
          all.push_back(std::move(made));
        }
      }
    }
    return all;
  }

  /// Changes a byte of it in the file.
  void damage_image(std::int64_t row) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::byte> image = test::image(row, 6 * 5 * 3);
    const std::size_t at =
        bytes.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
    ASSERT_NE(at, std::string::npos);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(~bytes[at]));
  }
  /// The state says which rank it is of.
  [[nodiscard]] static std::string without_rank(std::string state) {
    const std::size_t at = state.find("\"rank\":");
    return state.erase(at, std::string("\"rank\":0").size());
  }

  test::ScratchFolder folder_;
  std::string path_;
  std::shared_ptr<FakeGpu> gpu_;
  Stream stream_ = nullptr;
};

TEST_F(DeviceLoaderTest, DeliversWhatLoaderAndNormalizerDo) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const std::int64_t big_batch : {1, 2, 5, 100}) {
      DeviceOptions options{.normalize = augmented(), .big_batch = big_batch};
      options.normalize.dtype = dtype;
      options.label_dtype = dtype == DType::float32 ? DType::int64 : DType::float32;
      DeviceLoader loader = device_loader(options);
      EXPECT_EQ(loader.num_steps(), 12);
      for (const std::int64_t epoch : {0, 1, 2}) {
        EXPECT_EQ(epoch_of(loader, epoch), expected(options, epoch)) << big_batch << " " << epoch;
      }
      EXPECT_FALSE(loader.next(stream_)) << "the epoch is over";
    }
  }
}

TEST_F(DeviceLoaderTest, EveryFormOfInputAndOutputIsTheNormalizers) {
  struct Case {
    std::string name;
    test::PackedFile file = {.num_samples = 47, .height = 6, .width = 5, .chunk_samples = 6};
    NormalizeOptions normalize = augmented();
    Shape shape = {4, 3, 6, 5};
    std::vector<std::int64_t> strides = {90, 30, 5, 1};
  };
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const std::string type = std::string(to_string(dtype));
    cases.push_back({.name = type + ", channels first"});
    cases.push_back(
        {.name = type + ", channels last", .shape = {4, 6, 5, 3}, .strides = {90, 15, 3, 1}});
    cases.back().normalize.layout = Layout::nhwc;
    cases.push_back({.name = type + ", cropped", .shape = {4, 3, 4, 7}, .strides = {84, 28, 7, 1}});
    cases.push_back({.name = type + ", cropped in the middle, channels last",
                     .shape = {4, 4, 7, 3},
                     .strides = {84, 21, 3, 1}});
    cases.back().normalize.layout = Layout::nhwc;
    cases.back().normalize.random_crop = false;
    for (std::size_t i = cases.size() - 2; i < cases.size(); ++i) {
      cases[i].normalize.crop_height = 4;
      cases[i].normalize.crop_width = 7;
    }
    for (std::size_t i = cases.size() - 4; i < cases.size(); ++i) cases[i].normalize.dtype = dtype;
  }
  for (std::size_t i = 0, n = cases.size(); i < n; ++i) {
    cases.push_back(cases[i]);
    cases.back().name += ", of an NCHW file without labels";
    cases.back().file.layout = Layout::nchw;
    cases.back().file.labels = false;
  }
  for (const Case& tried : cases) {
    SCOPED_TRACE(tried.name);
    path_ = folder_.file("form.h5");
    std::filesystem::remove(path_);
    test::write_packed(path_, tried.file);
    for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
      gpu_->set_capacity(kLargeGpu);
      const DeviceOptions options{
          .normalize = tried.normalize, .big_batch = 3, .echo = 2, .resident = resident};
      DeviceLoader loader = device_loader(options);
      EXPECT_EQ(epoch_of(loader, 1), expected(options, 1));
      loader.start_epoch(1);
      const auto batch = loader.next(stream_);
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->images().dtype, tried.normalize.dtype);
      EXPECT_EQ(batch->images().shape, tried.shape);
      const dlpack::ManagedTensor images = to_dlpack(*batch, batch->images());
      EXPECT_EQ(std::vector<std::int64_t>(images->dl_tensor.strides,
                                          images->dl_tensor.strides + images->dl_tensor.ndim),
                tried.strides);
      EXPECT_EQ(batch->labels().data != nullptr, tried.file.labels);
      EXPECT_EQ(batch->labels().shape, tried.file.labels ? Shape{4} : Shape{});
    }
  }
}

TEST_F(DeviceLoaderTest, MeanAndStdAreThoseOfTheFileUnlessGiven) {
  path_ = folder_.file("statistics.h5");
  const DatasetSpec spec = test::small_spec(47);
  DatasetWriter writer(path_, spec);
  test::write_pattern(writer, spec);
  writer.set_statistics({.channels = {.mean = {0.4, 0.5, 0.6}, .std = {0.25, 0.2, 0.3}},
                         .class_counts = {16, 16, 15}});
  writer.close();
  DeviceLoader of_file = device_loader({});
  const std::vector<Delivered> batches = epoch_of(of_file, 0);
  EXPECT_EQ(batches, expected({}, 0));
  const DeviceOptions given{.normalize = {.mean = {0.4, 0.5, 0.6}, .std = {0.25, 0.2, 0.3}}};
  EXPECT_EQ(batches, expected(given, 0));
  EXPECT_NE(batches, expected({.normalize = plain()}, 0));
}

TEST_F(DeviceLoaderTest, EchoDealsTheRowsOfABigBatchAnew) {
  for (const std::int64_t big_batch : {1, 3, 12}) {
    const DeviceOptions options{.normalize = augmented(), .big_batch = big_batch, .echo = 3};
    DeviceLoader loader = device_loader(options);
    EXPECT_EQ(loader.num_steps(), 36);
    const std::vector<Delivered> batches = epoch_of(loader, 1);
    EXPECT_EQ(batches, expected(options, 1));
    // Whatever the reference says: each sample as often as the echo, and batches of later passes
    // differ.
    std::map<std::int64_t, int> uses;
    for (const Delivered& batch : batches) {
      for (const std::int64_t id : batch.ids) ++uses[id];
    }
    EXPECT_EQ(uses.size(), 47U);
    for (const auto& [id, count] : uses) EXPECT_EQ(count, 3) << id;
    const std::size_t first = static_cast<std::size_t>(big_batch);
    EXPECT_NE(batches[0].images, batches[first].images) << "the second pass";
    EXPECT_EQ(batches[first].echo_pass, 1);
  }
}

TEST_F(DeviceLoaderTest, EachRankDealsInItsOwnOrder) {
  LoaderOptions host = loader_options();
  host.world_size = 2;
  for (const std::int64_t capacity : {kSmallGpu, kLargeGpu}) {
    gpu_->set_capacity(capacity);
    const DeviceOptions options{.normalize = augmented(), .big_batch = 3, .echo = 3};
    for (host.rank = 0; host.rank < 2; ++host.rank) {
      DeviceLoader loader = device_loader(options, host);
      ASSERT_EQ(loader.stats().resident, capacity == kLargeGpu);
      EXPECT_EQ(epoch_of(loader, 1), expected(options, 1, host)) << host.rank;
    }
  }
}

TEST_F(DeviceLoaderTest, AResidentDatasetIsReadOnceAndDeliversTheSame) {
  gpu_->set_capacity(kLargeGpu);
  for (const auto& [big_batch, echo] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 2}}) {
    const DeviceOptions options{.normalize = augmented(), .big_batch = big_batch, .echo = echo};
    DeviceLoader loader = device_loader(options);
    EXPECT_TRUE(loader.stats().resident);
    EXPECT_TRUE(loader.stats().pinned);
    const int copied = gpu_->calls("copy_to_device");
    const int fetched = gpu_->calls("fetch");
    int batches = 0;
    for (const std::int64_t epoch : {0, 1, 5}) {
      const std::vector<Delivered> delivered = epoch_of(loader, epoch);
      EXPECT_EQ(delivered, expected(options, epoch)) << big_batch << " " << epoch;
      batches += static_cast<int>(delivered.size());
    }
    EXPECT_EQ(gpu_->calls("fetch") - fetched, batches) << "what says which rows";
    EXPECT_EQ(gpu_->calls("copy_to_device"), copied);
    EXPECT_EQ(loader.stats().bytes_uploaded, 47 * (6 * 5 * 3 + 8));
    EXPECT_EQ(loader.stats().loader.bytes_read, 47 * 6 * 5 * 3);
  }
}

TEST_F(DeviceLoaderTest, ItIsResidentIfItFits) {
  gpu_->set_capacity(kDatasetBytes * 4);
  EXPECT_TRUE(device_loader({.normalize = plain()}).stats().resident);
  EXPECT_FALSE(
      device_loader({.normalize = plain(), .resident = DeviceResident::off}).stats().resident);
  gpu_->set_capacity(kSmallGpu);
  EXPECT_FALSE(device_loader({.normalize = plain()}).stats().resident);
  const DeviceOptions required{.normalize = plain(), .resident = DeviceResident::require};
  expect_error(ErrorCode::out_of_resources,
               {"train.h5", std::to_string(kDatasetBytes), "resident_share", "automatic"},
               [&] { const DeviceLoader loader = device_loader(required); });
  DeviceOptions more = required;
  more.resident_share = 1;
  EXPECT_TRUE(device_loader(more).stats().resident);
}

/// Of a file on the host and on the device: the states of one fit the other.
class DeviceLoaderResumeTest : public DeviceLoaderTest,
                               public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(HostAndResident, DeviceLoaderResumeTest, ::testing::Bool());

TEST_P(DeviceLoaderResumeTest, ContinuesExactlyAfterEveryBatch) {
  gpu_->set_capacity(GetParam() ? kLargeGpu : kSmallGpu);
  for (const auto& [big_batch, echo] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 1}, {1, 2}, {5, 2}}) {
    const DeviceOptions options{.normalize = augmented(), .big_batch = big_batch, .echo = echo};
    DeviceLoader whole = device_loader(options);
    std::vector<Delivered> wanted = epoch_of(whole, 4);
    const std::vector<Delivered> after = epoch_of(whole, 5);
    for (std::size_t stop = 0; stop <= wanted.size(); ++stop) {
      SCOPED_TRACE(std::to_string(big_batch) + " " + std::to_string(echo) + " " +
                   std::to_string(stop));
      std::string state;
      {
        DeviceLoader first = device_loader(options);
        first.start_epoch(4);
        for (std::size_t i = 0; i < stop; ++i) ASSERT_TRUE(first.next(stream_));
        state = first.state();
      }
      if (stop % 2 == 1) gpu_->set_capacity(GetParam() ? kSmallGpu : kLargeGpu);
      DeviceLoader second = device_loader(options);
      gpu_->set_capacity(GetParam() ? kLargeGpu : kSmallGpu);
      second.restore(state);
      EXPECT_EQ(second.state(), state);
      const std::vector<Delivered> rest = drain(second);
      ASSERT_EQ(rest, std::vector<Delivered>(wanted.begin() + static_cast<std::ptrdiff_t>(stop),
                                             wanted.end()));
      ASSERT_EQ(epoch_of(second, 5), after);
    }
  }
}

TEST_F(DeviceLoaderTest, AnEpochThatCouldNotBeStartedIsNotTheRestoredOne) {
  DeviceLoader loader = device_loader({.normalize = plain(), .resident = DeviceResident::off});
  const std::vector<Delivered> wanted = epoch_of(loader, 2);
  loader.start_epoch(2);
  ASSERT_TRUE(loader.next(stream_));
  loader.restore(loader.state());
  gpu_->fail_once("synchronize", gpu_->calls("synchronize") + 1);
  EXPECT_THROW(loader.start_epoch(5), Error);
  expect_error(ErrorCode::invalid_argument, {"no epoch was started"},
               [&] { static_cast<void>(loader.next(stream_)); });
  EXPECT_EQ(epoch_of(loader, 2), wanted) << "whose place is given up";
}

TEST_F(DeviceLoaderTest, StatesOfRanksThatDifferByABatchAreEqual) {
  gpu_->set_capacity(kLargeGpu);
  LoaderOptions host{.batch_size = 4, .seed = 3, .world_size = 2, .uneven = Uneven::exact};
  host.rows = RowSelection({{0, 41}});  // 20 and 21 samples: 5 and 6 batches
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    const DeviceOptions options{.normalize = plain(), .resident = resident, .resident_share = 1};
    std::vector<DeviceLoader> ranks;
    for (host.rank = 0; host.rank < 2; ++host.rank) {
      ranks.push_back(device_loader(options, host));
      ranks.back().start_epoch(0);
    }
    ASSERT_NE(ranks[0].num_steps(), ranks[1].num_steps());
    for (int i = 0; i < 7; ++i) {
      const std::string state = without_rank(ranks[0].state());
      EXPECT_EQ(without_rank(ranks[1].state()), state) << i;
      for (host.rank = 0; host.rank < 2; ++host.rank) {
        DeviceLoader restored = device_loader(options, host);
        restored.restore(ranks[0].state());
        EXPECT_EQ(without_rank(restored.state()), state) << i;
      }
      for (DeviceLoader& rank : ranks) static_cast<void>(rank.next(stream_));
    }
  }
}

TEST_F(DeviceLoaderTest, FieldsComeAlongAsTheyAre) {
  gpu_->set_capacity(kLargeGpu);
  LoaderOptions host = loader_options();
  host.fields = {"weights"};
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    for (const std::int64_t big_batch : {1, 3}) {
      for (const std::int64_t echo : {1, 3}) {
        SCOPED_TRACE(std::to_string(big_batch) + " " + std::to_string(echo));
        const DeviceOptions options{
            .normalize = augmented(), .big_batch = big_batch, .echo = echo, .resident = resident};
        DeviceLoader loader = device_loader(options, host);
        EXPECT_EQ(loader.device_bytes(), gpu_->allocated_bytes());
        const std::vector<Delivered> wanted = expected(options, 1, host);
        loader.start_epoch(1);
        EXPECT_EQ(drain(loader, true), wanted);
        loader.start_epoch(1);
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(loader.next(stream_));
        DeviceLoader second = device_loader(options, host);
        second.restore(loader.state());
        EXPECT_EQ(drain(second, true), std::vector<Delivered>(wanted.begin() + 5, wanted.end()));
        const std::int64_t rows = resident == DeviceResident::require ? 47 : 0;
        if (rows > 0) {
          EXPECT_EQ(loader.stats().bytes_uploaded, rows * (6 * 5 * 3 + 8 + 8));
        }
      }
    }
  }
}

TEST_F(DeviceLoaderTest, FieldsCrossToOtherFrameworksAndCountAsMemory) {
  gpu_->set_capacity(kLargeGpu);
  LoaderOptions host = loader_options();
  host.fields = {"weights"};
  DeviceOptions options{.device = 3, .normalize = plain(), .resident = DeviceResident::off};
  {
    DeviceLoader loader = device_loader(options, host);
    loader.start_epoch(0);
    const auto batch = loader.next(stream_);
    ASSERT_TRUE(batch);
    const DeviceTensor weights = batch->field("weights");
    EXPECT_EQ(weights.dtype, DType::float32);
    EXPECT_EQ(weights.shape, Shape({4, 2}));
    EXPECT_EQ(weights.device, 3);
    EXPECT_EQ(to_dlpack(*batch, weights)->dl_tensor.data, weights.data);
    DeviceTensor elsewhere = weights;
    elsewhere.data = &elsewhere;
    expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                 [&] { static_cast<void>(to_dlpack(*batch, elsewhere)); });
  }
  // Two output batches and two batches of the loader.
  const std::int64_t needed = 2 * (kOutputBytes + 4 * 8) + big_batches_bytes(4) + 2 * 4 * 8;
  gpu_->set_capacity(needed - 1);
  expect_error(ErrorCode::out_of_resources, {std::to_string(needed) + " bytes", "leave out fields"},
               [&] { const DeviceLoader loader = device_loader(options, host); });
  gpu_->set_capacity(needed);
  const DeviceLoader loader = device_loader(options, host);
  EXPECT_EQ(gpu_->memory().free_bytes, 0);
}

TEST_F(DeviceLoaderTest, ALoaderRestoredIntoABigBatchThatEchoesIsRefused) {
  const auto restored = [&](int steps) {
    Loader loader = host_loader();
    loader.start_epoch(0);
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(loader.next());
    return Loader::resume(Dataset::open(path_), loader_options(), loader.state());
  };
  const DeviceOptions options{.normalize = augmented(), .big_batch = 3, .echo = 2};
  expect_error(ErrorCode::invalid_argument, {"batch 4", "middle of a big batch", "echo"}, [&] {
    const DeviceLoader loader = internal::DeviceLoaderAccess::make(gpu_, restored(4), options);
  });
  DeviceLoader loader = internal::DeviceLoaderAccess::make(gpu_, restored(6), options);
  const std::vector<Delivered> wanted = expected(options, 0);
  EXPECT_EQ(drain(loader), std::vector<Delivered>(wanted.begin() + 12, wanted.end()));
}

TEST_F(DeviceLoaderTest, WhatDoesNotFitAfterAllIsFedByTheHost) {
  for (const DeviceResident resident : {DeviceResident::automatic, DeviceResident::require}) {
    const DeviceOptions options{.normalize = plain(), .max_held = 1, .resident = resident};
    gpu_->set_capacity(kLargeGpu);
    // Images, labels and tasks of the one output batch come first.
    gpu_->fail_once("allocate", gpu_->calls("allocate") + 4);
    if (resident == DeviceResident::require) {
      expect_error(ErrorCode::out_of_resources,
                   {"fails at allocate", std::to_string(kDatasetBytes), "resident to automatic"},
                   [&] { const DeviceLoader loader = device_loader(options); });
      continue;
    }
    DeviceLoader loader = device_loader(options);
    EXPECT_FALSE(loader.stats().resident);
    EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  }
}

TEST_F(DeviceLoaderTest, BatchesCrossToOtherFrameworks) {
  DeviceLoader loader =
      device_loader({.normalize = augmented(), .max_held = 1, .release_timeout_seconds = 0});
  loader.start_epoch(0);
  std::optional<DeviceBatch> batch = loader.next(stream_);
  ASSERT_TRUE(batch);
  dlpack::ManagedTensor images = to_dlpack(*batch, batch->images());
  EXPECT_EQ(images->dl_tensor.data, batch->images().data);
  EXPECT_EQ(images->dl_tensor.device.device_type, dlpack::DLDeviceType::cuda);
  EXPECT_EQ(images->dl_tensor.ndim, 4);
  EXPECT_EQ(images->dl_tensor.shape[1], 3);
  EXPECT_EQ(images->dl_tensor.dtype.code, dlpack::DLDataTypeCode::floating_point);
  EXPECT_EQ(to_dlpack(*batch, batch->labels())->dl_tensor.dtype.bits, 64);
  dlpack::LegacyManagedTensor legacy = to_dlpack_legacy(*batch, batch->images());
  EXPECT_EQ(legacy->dl_tensor.data, batch->images().data);
  EXPECT_EQ(legacy->dl_tensor.device.device_type, dlpack::DLDeviceType::cuda);
  EXPECT_EQ(legacy->dl_tensor.dtype, images->dl_tensor.dtype);
  EXPECT_EQ(std::vector(legacy->dl_tensor.strides, legacy->dl_tensor.strides + 4),
            std::vector(images->dl_tensor.strides, images->dl_tensor.strides + 4));

  DeviceTensor elsewhere = batch->images();
  elsewhere.data = &elsewhere;
  DeviceTensor longer = batch->images();
  longer.shape = Shape{2 * longer.shape[0], longer.shape[1], longer.shape[2], longer.shape[3]};
  for (const DeviceTensor& other : {elsewhere, longer}) {
    expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                 [&] { static_cast<void>(to_dlpack(*batch, other)); });
    expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                 [&] { static_cast<void>(to_dlpack_legacy(*batch, other)); });
  }
  batch.reset();
  images.reset();
  // The last tensor still holds it.
  expect_error(ErrorCode::out_of_resources, {"held"},
               [&] { static_cast<void>(loader.next(stream_)); });
  legacy.reset();
  EXPECT_TRUE(loader.next(stream_));
}

TEST_F(DeviceLoaderTest, SkippedRowsAreLeftOutAndCounted) {
  gpu_->set_capacity(kLargeGpu);
  damage_image(12);
  LoaderOptions host = loader_options();
  host.verify = Verify::always;
  host.on_error = OnError::skip;
  host.num_epochs = 1;
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    DeviceLoader loader =
        device_loader({.normalize = plain(), .resident = resident, .resident_share = 1}, host);
    std::int64_t images = 0;
    for (const Delivered& batch : epoch_of(loader, 0)) images += std::ssize(batch.ids);
    EXPECT_EQ(images, 41);
    EXPECT_EQ(loader.stats().loader.skipped_images, 6);
    ASSERT_EQ(loader.skipped().size(), 1U);
    EXPECT_EQ(loader.skipped()[0].first_row, 12);
  }
}

TEST_F(DeviceLoaderTest, WithoutEchoAStateFitsAnyBigBatch) {
  DeviceLoader first = device_loader({.normalize = plain(), .big_batch = 5});
  const std::vector<Delivered> wanted = epoch_of(first, 0);
  first.start_epoch(0);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(first.next(stream_));
  DeviceLoader second = device_loader({.normalize = plain(), .big_batch = 2});
  second.restore(first.state());
  EXPECT_EQ(drain(second), std::vector<Delivered>(wanted.begin() + 7, wanted.end()));
}

TEST_F(DeviceLoaderTest, StatesThatDoNotFitAreRefused) {
  DeviceLoader loader = device_loader({.normalize = plain(), .big_batch = 2, .echo = 2});
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(stream_));
  const std::string state = loader.state();
  const auto refused = [&](const std::vector<std::string>& parts, const DeviceOptions& options,
                           const std::string& text) {
    DeviceLoader other = device_loader(options);
    other.start_epoch(0);
    expect_error(ErrorCode::invalid_argument, parts, [&] { other.restore(text); });
    other.start_epoch(0);
    EXPECT_TRUE(other.next(stream_));
  };
  refused({"echo 2", "has 3"}, {.normalize = plain(), .big_batch = 2, .echo = 3}, state);
  refused({"big_batch 2", "has 4"}, {.normalize = plain(), .big_batch = 4, .echo = 2}, state);
  refused({"one that a DeviceLoader returned"}, {.normalize = plain()}, "");
  refused({"not a JSON object"}, {.normalize = plain()}, "[]");
  refused({"not a JSON object"}, {.normalize = plain()}, std::string(100, '{'));
  refused({"too long"}, {.normalize = plain()}, std::string(10'000, ' '));
  refused({"chunkio_device_state"}, {.normalize = plain()}, host_loader().state());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = state;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  const DeviceOptions same{.normalize = plain(), .big_batch = 2, .echo = 2};
  refused({"no such place"}, same,
          changed("\"step\":1,\"world_size\"", "\"step\":4,\"world_size\""));
  refused({"'step'"}, same, changed("\"step\":1,\"world_size\"", "\"step\":-1,\"world_size\""));
  refused({"'rank'"}, same, changed("\"rank\":0", "\"rank\":0.5"));
  refused({"rank 1", "has 0"}, same, changed("\"rank\":0", "\"rank\":1"));
  refused({"'x' is not known"}, same, changed("{\"big_batch\"", "{\"x\":1,\"big_batch\""));
  // What another parser may take the first or the last of.
  refused({"'echo' is there twice"}, same, changed("{\"big_batch\"", "{\"echo\":2,\"big_batch\""));
  refused({"'seed' is there twice"}, same, changed("\"seed\":3", "\"seed\":3,\"seed\":3"));
  refused({"not a JSON object"}, same, state + std::string(1, '\0') + "more");
  refused({"version"}, same, changed("\"chunkio_device_state\":1", "\"chunkio_device_state\":2"));
  refused({"seed"}, same, changed("\"seed\":3", "\"seed\":4"));
}

TEST_F(DeviceLoaderTest, ABufferIsNotWrittenWhileTheConsumersStreamUsesIt) {
  const DeviceOptions options{.normalize = augmented(), .max_held = 2};
  DeviceLoader loader = device_loader(options);
  const std::vector<Delivered> wanted = expected(options, 0);
  loader.start_epoch(0);
  std::vector<std::vector<std::byte>> seen(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto batch = loader.next(stream_);
    ASSERT_TRUE(batch);
    seen[i].resize(wanted[i].images.size());
    // Training: asynchronous, and slower than the loader. The lease ends long before.
    gpu_->run_on(stream_, [&bytes = seen[i], data = batch->images().data] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::memcpy(bytes.data(), data, bytes.size());
    });
  }
  gpu_->synchronize(stream_);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(seen[i], wanted[i].images) << i;
}

TEST_F(DeviceLoaderTest, HeldBatchesKeepTheirContentsAndOutliveTheLoader) {
  const DeviceOptions options{
      .normalize = augmented(), .max_held = 3, .release_timeout_seconds = 0};
  const std::vector<Delivered> wanted = expected(options, 0);
  std::vector<DeviceBatch> held;
  {
    DeviceLoader loader = device_loader(options);
    loader.start_epoch(0);
    for (int i = 0; i < 3; ++i) held.push_back(*loader.next(stream_));
    expect_error(
        ErrorCode::out_of_resources,
        {"all 3", "batch 0 of epoch 0, batch 1 of epoch 0, batch 2 of epoch 0", "max_held"},
        [&] { static_cast<void>(loader.next(stream_)); });
    held.erase(held.begin() + 1);
    const auto next = loader.next(stream_);
    ASSERT_TRUE(next);
    EXPECT_EQ(read(*next), wanted[3]) << "an error that was mended loses nothing";
  }
  EXPECT_EQ(read(held[0]), wanted[0]);
  EXPECT_EQ(read(held[1]), wanted[2]);
  EXPECT_NE(held[0].images().data, held[1].images().data);
}

TEST_F(DeviceLoaderTest, AddressesAndAllocationsStayTheSame) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    for (const std::int64_t echo : {1, 2}) {
      gpu_->set_capacity(kLargeGpu);
      DeviceLoader loader = device_loader({.normalize = plain(),
                                           .big_batch = echo,
                                           .echo = echo,
                                           .max_held = 2,
                                           .resident = resident});
      const auto taken = [&] {
        int calls = gpu_->calls("pin");
        for (const std::string kind : {"allocate", "allocate_pinned"}) calls += gpu_->calls(kind);
        for (const std::string kind : {"event", "timer", "stream"}) {
          calls += gpu_->calls("create_" + kind);
        }
        return calls;
      };
      const int before = taken();
      std::set<void*> addresses;
      for (const std::int64_t epoch : {0, 1, 2}) {
        loader.start_epoch(epoch);
        while (const auto batch = loader.next(stream_)) addresses.insert(batch->images().data);
      }
      EXPECT_EQ(addresses.size(), 2U);
      EXPECT_EQ(taken(), before);
      EXPECT_EQ(loader.stats().batches, 36 * echo);
      EXPECT_EQ(loader.stats().images, 3 * 47 * echo);
      EXPECT_TRUE(loader.stats().pinned);
    }
  }
}

/// Work that ends when it is told to.
class Blocker {
 public:
  Blocker(FakeGpu& gpu, Stream stream) {
    gpu.run_on(stream, [ended = ended_.get_future().share()] { ended.wait(); });
  }
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;
  ~Blocker() { end(); }
  void end() {
    if (!std::exchange(over_, true)) ended_.set_value();
  }

 private:
  std::promise<void> ended_;
  bool over_ = false;
};

TEST_F(DeviceLoaderTest, ABatchIsMadeWhileTheConsumerUsesTheOneBefore) {
  const DeviceOptions options{.normalize = augmented(), .max_held = 2};
  const std::vector<Delivered> wanted = expected(options, 0);
  DeviceLoader loader = device_loader(options);
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(stream_));
  std::optional<DeviceBatch> used = loader.next(stream_);
  Blocker training(*gpu_, stream_);
  used.reset();
  const Stream other = gpu_->create_stream();
  {
    const auto batch = loader.next(other);
    ASSERT_TRUE(batch);
    std::vector<std::byte> seen(wanted[2].images.size());
    std::promise<void> read;
    gpu_->run_on(other, [&, data = batch->images().data] {
      std::memcpy(seen.data(), data, seen.size());
      read.set_value();
    });
    EXPECT_EQ(read.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready)
        << "its kernel waits for the training on the batch before";
    training.end();
    gpu_->synchronize(other);
    EXPECT_EQ(seen, wanted[2].images);
  }
  gpu_->synchronize(other);
  gpu_->destroy_stream(other);
}

TEST_F(DeviceLoaderTest, ABatchThatAnotherThreadReleasesIsWaitedFor) {
  const DeviceOptions options{
      .normalize = augmented(), .big_batch = 12, .max_held = 1, .release_timeout_seconds = 60};
  const std::vector<Delivered> wanted = expected(options, 0);
  DeviceLoader loader = device_loader(options);
  loader.start_epoch(0);
  std::optional<DeviceBatch> held = loader.next(stream_);
  ASSERT_TRUE(held);
  const double stall = loader.stats().stall_seconds;
  const auto start = std::chrono::steady_clock::now();
  const std::jthread releases([&held] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.reset();
  });
  const auto next = loader.next(stream_);
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(20));
  EXPECT_LT(waited, std::chrono::seconds(30)) << "to the limit";
  ASSERT_TRUE(next);
  EXPECT_EQ(read(*next), wanted[1]);
  EXPECT_EQ(loader.stats().stall_seconds, stall) << "the images were there";
}

TEST_F(DeviceLoaderTest, ABatchThatIsNeverReleasedIsWaitedForToALimit) {
  const DeviceOptions options{
      .normalize = augmented(), .max_held = 1, .release_timeout_seconds = 0.05};
  DeviceLoader loader = device_loader(options);
  loader.start_epoch(2);
  const auto held = loader.next(stream_);
  ASSERT_TRUE(held);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorCode::out_of_resources,
                 {"all 1", "max_held", "0.05 s", "release_timeout_seconds", "batch 0 of epoch 2"},
                 [&] { static_cast<void>(loader.next(stream_)); });
  }
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(2 * 50));
  EXPECT_LT(waited, std::chrono::seconds(5)) << "the limit is not the default";
}

TEST_F(DeviceLoaderTest, AWaitCanBeEndedAndGoesOn) {
  struct Stop {};
  // For storage, for a batch that is held, and for the consumer's stream.
  for (const int what : {0, 1, 2}) {
    int calls = 0;
    DeviceOptions options{.normalize = augmented(), .max_held = 1, .resident = DeviceResident::off};
    options.on_wait = [&calls] {
      if (++calls <= 2) throw Stop{};
    };
    LoaderOptions host = loader_options();
    if (what == 0) {
      host.disk_limit =
          DiskLimit{.bytes_per_second = 1e9, .request_seconds = 0.1, .queue_depth = 1};
    }
    DeviceLoader loader = device_loader(options, host);
    loader.start_epoch(1);
    std::optional<DeviceBatch> held;
    std::optional<Blocker> training;
    if (what != 0) held = loader.next(stream_);
    if (what == 2) {
      gpu_->synchronize(stream_);
      training.emplace(*gpu_, stream_);
      held.reset();
      held = loader.next(stream_);  // its kernel waits for training, and the one after it for that
      held.reset();
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(static_cast<void>(loader.next(stream_)), Stop) << what;
    }
    if (training) training->end();
    held.reset();
    const auto batch = loader.next(stream_);
    ASSERT_TRUE(batch) << what;
    EXPECT_EQ(batch->step(), what);
    EXPECT_GE(calls, 2);
  }
}

/// Training that never ends: an error that says where, whatever is waited for, and nothing is lost.
TEST_F(DeviceLoaderTest, AConsumersStreamThatDoesNotEndIsAnError) {
  for (const PinMemory pin : {PinMemory::require, PinMemory::prefer, PinMemory::off}) {
    for (const auto& [max_held, big_batch, echo] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {2, 1, 1}, {2, 3, 2}, {8, 1, 1}, {3, 12, 1}}) {
      SCOPED_TRACE(std::to_string(max_held) + " " + std::to_string(big_batch) + " " +
                   std::to_string(echo) + ", pin " + std::to_string(static_cast<int>(pin)));
      gpu_->set_capacity(kLargeGpu);
      // Refused for images, not for what says which rows: another thread waits for the device.
      if (pin == PinMemory::prefer) gpu_->fail_once("pin", gpu_->calls("pin") + 1);
      const DeviceOptions options{.normalize = augmented(),
                                  .big_batch = big_batch,
                                  .echo = echo,
                                  .max_held = max_held,
                                  .device_timeout_seconds = 0.05,
                                  .pin_memory = pin,
                                  .resident = DeviceResident::off};
      std::vector<Delivered> wanted;
      for (const std::int64_t epoch : {0, 1, 2}) {
        for (const Delivered& batch : expected(options, epoch)) wanted.push_back(batch);
      }
      // Few, so that the thread that feeds the device waits, too.
      LoaderOptions host = loader_options();
      host.max_held = 2;
      DeviceLoader loader = device_loader(options, host);
      loader.start_epoch(0);
      std::vector<std::vector<std::byte>> seen(wanted.size());
      std::size_t next = 0;
      const auto take = [&] {
        auto batch = loader.next(stream_);
        if (!batch) {
          loader.start_epoch(wanted[next].epoch);
          batch = loader.next(stream_);
        }
        ASSERT_TRUE(batch);
        ASSERT_EQ(batch->step(), wanted[next].step);
        seen[next].resize(wanted[next].images.size());
        gpu_->run_on(stream_, [&bytes = seen[next], data = batch->images().data] {
          std::memcpy(bytes.data(), data, bytes.size());
        });
        ++next;
      };
      // Threads of a busy machine may come late, and then next() is to be called again.
      const auto take_in_the_end = [&] {
        for (int tries = 0;; ++tries) {
          try {
            return take();
          } catch (const Error& error) {
            if (error.code() != ErrorCode::out_of_resources || tries == 200) throw;
          }
        }
      };
      take_in_the_end();
      gpu_->synchronize(stream_);  // batch 0 is done with
      Blocker training(*gpu_, stream_);
      // Who is late delivers in the end; what waits for training gives the same error each time.
      std::string message;
      const auto names_training = [&] {
        return message.find("batch 1 of epoch 0") != std::string::npos;
      };
      int in_a_row = 0;
      for (int tries = 0; in_a_row < 2 && tries < 200 && next < wanted.size(); ++tries) {
        try {
          take();
          in_a_row = 0;
        } catch (const Error& error) {
          message = error.what();
          ASSERT_EQ(error.code(), ErrorCode::out_of_resources) << message;
          in_a_row = names_training() ? in_a_row + 1 : 0;
        }
        if (HasFatalFailure()) return;
      }
      ASSERT_EQ(in_a_row, 2) << next << " batches were delivered; " << message;
      for (const std::string part : {"0.05 s", "device_timeout_seconds"}) {
        EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
      }
      training.end();
      gpu_->synchronize(stream_);
      while (next < wanted.size() && !HasFatalFailure()) take_in_the_end();
      gpu_->synchronize(stream_);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_EQ(seen[i], wanted[i].images) << i;
      }
    }
  }
}

/// Or one that is copied would wait for the kernel of one that is not.
TEST_F(DeviceLoaderTest, WhatSaysWhichRowsIsFetchedForAllBatchesOrForNone) {
  const DeviceOptions options{.normalize = augmented(),
                              .max_held = 2,
                              .pin_memory = PinMemory::prefer,
                              .resident = DeviceResident::off};
  gpu_->fail_from("allocate_pinned", gpu_->calls("allocate_pinned") + 2);
  const int fetched = gpu_->calls("fetch");
  DeviceLoader loader = device_loader(options);
  EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  EXPECT_EQ(gpu_->calls("fetch"), fetched);
}

TEST_F(DeviceLoaderTest, AttributesBecomeNumbers) {
  DatasetSpec spec = test::small_spec(9);
  spec.class_names.clear();
  spec.fields = {test::field("labels", std::vector<std::uint8_t>(27, 1), Shape{3})};
  spec.fields[0].values[4] = std::byte{0};
  path_ = folder_.file("attributes.h5");
  DatasetWriter writer(path_, spec);
  test::write_pattern(writer, spec);
  writer.close();
  DeviceLoader loader = device_loader({.normalize = plain(), .label_dtype = DType::float32},
                                      {.batch_size = 9, .order = OrderMode::sequential});
  loader.start_epoch(0);
  const auto batch = loader.next(stream_);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->labels().shape, (Shape{9, 3}));
  std::vector<float> wanted(27, 1.0F);
  wanted[4] = 0.0F;
  EXPECT_EQ(read(*batch).labels, test::as_bytes(wanted));
}

TEST_F(DeviceLoaderTest, PageLockingThatIsRefusedIsAnErrorOrNot) {
  // The batches of the loader, and what says which row is where.
  for (const std::string member : {"pin", "allocate_pinned"}) {
    for (const bool resident : {false, true}) {
      for (const int call : {1, 2}) {
        SCOPED_TRACE(member + " " + std::to_string(resident) + " " + std::to_string(call));
        end_gpu();
        start_gpu();
        gpu_->set_capacity(kLargeGpu);
        gpu_->fail_from(member, call);
        DeviceOptions options{.normalize = augmented(),
                              .big_batch = 3,
                              .echo = 2,
                              .resident = resident ? DeviceResident::require : DeviceResident::off};
        expect_error(ErrorCode::out_of_resources, {member, "ulimit -l", "pin_memory to prefer"},
                     [&] { const DeviceLoader loader = device_loader(options); });
        gpu_->fail_from(member, gpu_->calls(member) + call);
        options.pin_memory = PinMemory::prefer;
        DeviceLoader loader = device_loader(options);
        EXPECT_EQ(loader.stats().pinned, member != "pin");
        for (const std::int64_t epoch : {0, 1}) {
          EXPECT_EQ(epoch_of(loader, epoch), expected(options, epoch));
        }
      }
    }
  }
}

TEST_F(DeviceLoaderTest, WithoutPageLockingNothingIsLocked) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    gpu_->set_capacity(kLargeGpu);
    const DeviceOptions options{.normalize = augmented(),
                                .big_batch = 3,
                                .echo = 2,
                                .pin_memory = PinMemory::off,
                                .resident = resident};
    DeviceLoader loader = device_loader(options);
    EXPECT_FALSE(loader.stats().pinned);
    for (const std::int64_t epoch : {0, 1}) {
      EXPECT_EQ(epoch_of(loader, epoch), expected(options, epoch));
    }
  }
  EXPECT_EQ(gpu_->calls("pin") + gpu_->calls("allocate_pinned"), 0);
}

TEST_F(DeviceLoaderTest, BuffersThatDoNotFitAreRefusedBeforeAnythingIsAllocated) {
  const auto refused = [&](const std::vector<std::string>& parts, const DeviceOptions& options,
                           const LoaderOptions& host = loader_options()) {
    expect_error(ErrorCode::out_of_resources, parts,
                 [&] { const DeviceLoader loader = device_loader(options, host); });
    EXPECT_EQ(gpu_->calls("allocate") + gpu_->calls("allocate_pinned"), 0);
  };
  const auto text = [](std::int64_t bytes) { return std::to_string(bytes); };

  const std::int64_t outputs = 2 * kOutputBytes;
  const std::int64_t inputs = big_batches_bytes(5 * 4);
  DeviceOptions options{.normalize = plain(), .big_batch = 5, .resident = DeviceResident::off};
  gpu_->set_capacity(outputs + inputs - 1);
  refused({text(outputs + inputs) + " bytes of device memory are needed",
           text(outputs + inputs - 1) + " were free", text(outputs) + " for output batches",
           text(inputs) + " for two big batches", "big_batch = 5", "max_held = 2", "batch_size = 4",
           "lower big_batch"},
          options);

  options = {.normalize = plain(), .resident = DeviceResident::require, .resident_share = 1};
  gpu_->set_capacity(outputs + kDatasetBytes - 1);
  refused({text(outputs + kDatasetBytes) + " bytes", text(kDatasetBytes) + " for the resident",
           "lower max_held or batch_size", "resident to automatic"},
          options);

  options = {.normalize = plain(), .max_held = 1024};
  options.normalize.padding = 1 << 20;
  options.normalize.crop_height = options.normalize.crop_width = 1 << 20;
  refused({text((std::int64_t{4} * 1024) * ((std::int64_t{12} << 40) + 24)) + " for output batches",
           "max_held = 1024", "lower big_batch, max_held or batch_size"},
          options);
  refused({"9223372036854775807 for output batches"}, options, {.batch_size = 1 << 14});
}

TEST_F(DeviceLoaderTest, BuffersThatJustFitDeliver) {
  DeviceOptions options{.normalize = augmented(), .big_batch = 5, .resident = DeviceResident::off};
  gpu_->set_capacity(2 * kOutputBytes + big_batches_bytes(5 * 4));
  {
    DeviceLoader loader = device_loader(options);
    EXPECT_EQ(gpu_->memory().free_bytes, 0);
    EXPECT_EQ(loader.device_bytes(), gpu_->allocated_bytes());
    EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  }
  options.resident = DeviceResident::require;
  options.resident_share = 1;
  gpu_->set_capacity(2 * kOutputBytes + kDatasetBytes);
  {
    DeviceLoader loader = device_loader(options);
    EXPECT_EQ(gpu_->memory().free_bytes, 0);
    EXPECT_EQ(loader.device_bytes(), gpu_->allocated_bytes());
    EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  }
  // The dataset would fit, but not beside the output batches.
  options.big_batch = 1;
  options.resident = DeviceResident::automatic;
  gpu_->set_capacity(2 * kOutputBytes + kDatasetBytes - 1);
  DeviceLoader loader = device_loader(options);
  EXPECT_FALSE(loader.stats().resident);
  EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
}

TEST_F(DeviceLoaderTest, ABigBatchTakesNoMoreThanAnEpochHas) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    gpu_->set_capacity(kLargeGpu);
    const DeviceOptions options{
        .normalize = augmented(), .big_batch = 500'000'000, .echo = 2, .resident = resident};
    DeviceLoader loader = device_loader(options);
    EXPECT_EQ(loader.device_bytes(),
              2 * kOutputBytes +
                  (resident == DeviceResident::off ? big_batches_bytes(12 * 4) : kDatasetBytes));
    const std::vector<Delivered> wanted = expected(options, 1);
    EXPECT_EQ(epoch_of(loader, 1), wanted);
    loader.start_epoch(1);
    for (int i = 0; i < 15; ++i) ASSERT_TRUE(loader.next(stream_));
    DeviceLoader second = device_loader(options);
    second.restore(loader.state());
    EXPECT_EQ(drain(second), std::vector<Delivered>(wanted.begin() + 15, wanted.end()));
  }
}

TEST_F(DeviceLoaderTest, DeviceMemoryThatIsRefusedAllTheSameNamesTheWayOut) {
  const DeviceOptions options{.normalize = plain(), .resident = DeviceResident::off};
  int allocations = 0;
  {
    const DeviceLoader loader = device_loader(options);
    allocations = gpu_->calls("allocate");
  }
  EXPECT_EQ(allocations, 2 * 3 + 2 * 2);
  for (int i = 1; i <= allocations; ++i) {
    gpu_->fail_once("allocate", gpu_->calls("allocate") + i);
    expect_error(ErrorCode::out_of_resources,
                 {"fails at allocate", std::to_string(2 * kOutputBytes), std::to_string(kSmallGpu),
                  "lower big_batch, max_held or batch_size"},
                 [&] { const DeviceLoader loader = device_loader(options); });
  }
  // Beside a dataset that is kept because it fits.
  gpu_->set_capacity(kLargeGpu);
  gpu_->fail_once("allocate", gpu_->calls("allocate") + 1);
  expect_error(ErrorCode::out_of_resources, {"fails at allocate", "set resident to off"},
               [&] { const DeviceLoader loader = device_loader({.normalize = plain()}); });
}

TEST_F(DeviceLoaderTest, WrongOptionsAreRefused) {
  const auto refused = [&](const std::vector<std::string>& parts, const DeviceOptions& options) {
    expect_error(ErrorCode::invalid_argument, parts,
                 [&] { const DeviceLoader loader = device_loader(options); });
  };
  refused({"big_batch"}, {.big_batch = 0});
  refused({"echo"}, {.echo = 0});
  refused({"lower echo"}, {.echo = std::int64_t{1} << 61});
  refused({"max_held"}, {.max_held = 0});
  refused({"release_timeout_seconds", "1e6"}, {.release_timeout_seconds = -1});
  refused({"device_timeout_seconds", "1e6"}, {.device_timeout_seconds = 2e6});
  refused({"device_timeout_seconds"}, {.device_timeout_seconds = std::nan("")});
  refused({"resident_share"}, {.resident_share = 1.5});
  refused({"label_dtype"}, {.label_dtype = DType::uint8});
  refused({"mean has 2"}, {.normalize = {.mean = {0, 0}, .std = {1, 1}}});
  refused({"crop_width"}, {.normalize = {.mean = {0}, .std = {1}, .crop_width = 99}});
  refused({"random_crop", "padding", "crop_height"},
          {.normalize = {.mean = {0}, .std = {1}, .random_crop = true}});
  refused({"padding has no effect", "random_crop"},
          {.normalize = {.mean = {0}, .std = {1}, .padding = 4}});
  expect_error(ErrorCode::invalid_argument, {"2^31", "lower big_batch"}, [&] {
    const DeviceLoader loader =
        device_loader({.normalize = plain()}, {.batch_size = std::int64_t{1} << 31});
  });
}

TEST_F(DeviceLoaderTest, StatisticsNameWhatTheConsumerWaitsFor) {
  using std::chrono::milliseconds;
  struct Pace {
    milliseconds copy = {}, kernel = {}, consumer = {};
  };
  const auto stats_once = [&](const Pace& pace, DeviceOptions options, const LoaderOptions& host) {
    gpu_->slow_down(pace.copy, pace.kernel);
    options.normalize = plain();
    DeviceLoader loader = device_loader(options, host);
    EXPECT_EQ(loader.stats().diagnosis().bound, Bound::none);
    for (const std::int64_t epoch : {0, 1}) {
      loader.start_epoch(epoch);
      while (const auto batch = loader.next(stream_)) {
        if (pace.consumer > milliseconds{}) {
          gpu_->run_on(stream_, [pace] { std::this_thread::sleep_for(pace.consumer); });
        }
      }
    }
    gpu_->slow_down({}, {});
    return loader.stats();
  };
  // A busy machine delays any thread for longer than the pace that is set here. It does not do so
  // every time; a statistic that names something else does.
  const auto stats_at = [&](Bound bound, const Pace& pace, const DeviceOptions& options,
                            const LoaderOptions& host) {
    constexpr int kTries = 8;
    DeviceStats stats;
    for (int i = 0; i < kTries && stats.diagnosis().bound != bound; ++i) {
      stats = stats_once(pace, options, host);
    }
    EXPECT_EQ(to_string(stats.diagnosis().bound), to_string(bound))
        << stats.diagnosis().summary() << " " << stats.stall_seconds << " + "
        << stats.device_stall_seconds << " of " << stats.seconds;
    return stats;
  };
  // Such runs may be too short for advice; what was found is there all the same.
  const auto sentences_of = [](const DeviceStats& stats) {
    const Diagnosis found = stats.diagnosis();
    std::string text;
    for (const std::string& sentence : found.evidence) text += sentence + " ";
    for (const Cure& cure : found.cures) text += cure.text + " ";
    return text;
  };
  const auto cures_of = [](const DeviceStats& stats) {
    std::string text;
    for (const Cure& cure : stats.diagnosis().cures) text += cure.option + "; ";
    return text;
  };
  const DeviceOptions from_host{.resident = DeviceResident::off};
  gpu_->set_capacity(kDatasetBytes - 1);

  // A batch has a copy of images and one of labels.
  const DeviceStats bus =
      stats_at(Bound::bus, {.copy = milliseconds(8)}, from_host, loader_options());
  EXPECT_GT(bus.upload_seconds, 20 * 0.016);
  EXPECT_NE(sentences_of(bus).find("page-locked"), std::string::npos) << sentences_of(bus);
  EXPECT_EQ(cures_of(bus).find("pin_memory"), std::string::npos) << "it is locked";

  const DeviceStats with_work =
      stats_at(Bound::bus, {.copy = milliseconds(8), .consumer = milliseconds(8)}, from_host,
               loader_options());
  EXPECT_EQ(cures_of(with_work).find("echo = "), std::string::npos) << cures_of(with_work);
  EXPECT_EQ(cures_of(with_work).find("resident"), std::string::npos) << "there is no room";

  const DeviceStats pageable =
      stats_at(Bound::bus, {.copy = milliseconds(8)},
               {.pin_memory = PinMemory::off, .resident = DeviceResident::off}, loader_options());
  EXPECT_NE(cures_of(pageable).find("pin_memory"), std::string::npos) << cures_of(pageable);

  const DeviceStats consumer =
      stats_at(Bound::consumer, {.consumer = milliseconds(40)}, from_host, loader_options());
  EXPECT_TRUE(consumer.diagnosis().cures.empty());

  const DeviceStats kernel =
      stats_at(Bound::kernel, {.kernel = milliseconds(15)}, from_host, loader_options());
  EXPECT_GT(kernel.kernel_seconds, 20 * 0.015);
  EXPECT_NE(sentences_of(kernel).find("float16"), std::string::npos) << sentences_of(kernel);

  gpu_->set_capacity(1 << 30);
  static_cast<void>(stats_at(Bound::kernel, {.kernel = milliseconds(15)},
                             {.resident = DeviceResident::require}, loader_options()));

#if !defined(__SANITIZE_THREAD__)  // which makes the simulated kernel slower than any decoding
  // Every image costs that all are decoded: the loader, and of it decoding.
  path_ = folder_.file("deflated.h5");
  test::write_packed(path_, {.num_samples = 47,
                             .height = 200,
                             .width = 200,
                             .chunk_samples = 47,
                             .filter = {.deflate_level = 1}});
  LoaderOptions random = loader_options();
  random.order = OrderMode::random;
  const DeviceStats loader = stats_at(Bound::decode, {}, from_host, random);
  EXPECT_NE(cures_of(loader).find("order = chunk_shuffled"), std::string::npos) << cures_of(loader);
  EXPECT_NE(cures_of(loader).find("resident = require"), std::string::npos)
      << "it would fit: " << cures_of(loader);
#endif
}

TEST_F(DeviceLoaderTest, TheConsumersStreamIsIdleWhileACopyKeepsTheHostWaiting) {
  gpu_->set_capacity(kLargeGpu);
  DeviceLoader loader = device_loader({.normalize = plain(), .pin_memory = PinMemory::off});
  ASSERT_TRUE(loader.stats().resident);
  gpu_->slow_down(std::chrono::milliseconds(8), {});  // What says which rows is copied.
  // The last two of an epoch are not counted yet, and those to which a thread of a busy machine
  // came late are not at all.
  double stalled = 0;
  for (std::int64_t epoch = 0; epoch < 8 && stalled < 10 * 0.004; ++epoch) {
    const double before = loader.stats().device_stall_seconds;
    loader.start_epoch(epoch);
    while (loader.next(stream_)) {
    }
    stalled = std::max(stalled, loader.stats().device_stall_seconds - before);
  }
  EXPECT_GE(stalled, 10 * 0.004);
  gpu_->slow_down({}, {});
}

/// The first failure of any call, at every call: an error, nothing leaks, nothing hangs.
TEST_F(DeviceLoaderTest, AnyCallMayFail) {
  const std::vector<std::string> members{"require_supported",
                                         "pin",
                                         "allocate",
                                         "allocate_pinned",
                                         "create_stream",
                                         "create_event",
                                         "create_timer",
                                         "create_waited_timer",
                                         "record",
                                         "wait",
                                         "is_done",
                                         "synchronize",
                                         "seconds_between",
                                         "copy_to_device",
                                         "fetch",
                                         "clear",
                                         "normalize"};
  for (const std::string& member : members) {
    int failures = 0;
    for (int n = 1; n < 120; ++n) {
      SCOPED_TRACE(member + " " + std::to_string(n));
      end_gpu();
      start_gpu();
      gpu_->set_capacity(n % 2 == 0 ? kLargeGpu : kSmallGpu);
      const int before = gpu_->calls(member);
      gpu_->fail_from(member, before + n / 2 + 1);
      std::optional<DeviceLoader> loader;
      try {
        loader = device_loader({.normalize = plain(), .big_batch = 3, .echo = 2});
        loader->start_epoch(0);
        while (loader->next(stream_)) {
        }
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(member), std::string::npos) << error.what();
        ++failures;
        // A failure that goes away again was one all the same: what came after it is not right.
        gpu_->fail_from(member, 1 << 30);
        if (loader) {
          EXPECT_THROW(
              {
                for (int i = 0; i < 100; ++i) static_cast<void>(loader->next(stream_));
              },
              Error);
        }
      }
      loader.reset();
      gpu_->fail_from(member, 1 << 30);
      gpu_->synchronize(stream_);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(failures, 0) << member;
  }
}

TEST_F(DeviceLoaderTest, WhatTheLoaderMeetsIsThrownEveryTime) {
  DeviceLoader loader = device_loader({.normalize = plain(), .big_batch = 2});
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(stream_));
  test::write_packed(folder_.file("other.h5"), {.num_samples = 50, .height = 6, .width = 5});
  std::filesystem::copy_file(folder_.file("other.h5"), path_,
                             std::filesystem::copy_options::overwrite_existing);
  loader.start_epoch(9);
  std::string first;
  try {
    while (loader.next(stream_)) {
    }
    ADD_FAILURE() << "the file was changed";
  } catch (const Error& error) {
    first = error.what();
  }
  EXPECT_NE(first.find("train.h5"), std::string::npos) << first;
  try {
    static_cast<void>(loader.next(stream_));
    ADD_FAILURE() << "the error is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), first);
  }
}

TEST_F(DeviceLoaderTest, WhereThereIsNoGpuItSaysSo) {
  try {
    static_cast<void>(device::open_gpu(0));
    GTEST_SKIP() << "there is one";
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::cuda_failed || error.code() == ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("on the CPU"), std::string::npos) << error.what();
  }
}

TEST_F(DeviceLoaderTest, ManyComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    DeviceLoader loader =
        device_loader({.normalize = plain(), .big_batch = 1 + i % 4, .echo = 1 + i % 3});
    if (i % 5 == 0) continue;
    loader.start_epoch(i);
    for (int k = 0; k < i % 7; ++k) static_cast<void>(loader.next(stream_));
  }
}

}  // namespace
}  // namespace chunkio::cuda
