/// Packing end to end: images in, files out, read back through the public Dataset.
#include "h5pack/pack/packer.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/stop_signal.hpp"
#include "h5pack/pack/chunk_record.hpp"
#include "h5pack/pack/row_order.hpp"
#include "h5pack/sources/file_stamps.hpp"
#include "h5pack/sources/folder_source.hpp"
#include "h5pack/sources/planar_images.hpp"
#include "support/pillow_pictures.hpp"
#include "support/source_files.hpp"
#include "write/journal.hpp"

namespace h5pack {
namespace {

namespace fs = std::filesystem;
using chunkio::Dataset;
using chunkio::test::PillowImages;
using chunkio::test::read_bytes;
using chunkio::test::write_bytes;
using Bytes = std::vector<std::uint8_t>;

std::vector<std::int64_t> read_int64(const Dataset& dataset, const std::string& name) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(dataset.size()));
  dataset.read_field(name, 0, dataset.size(), std::as_writable_bytes(std::span(values)));
  return values;
}

Bytes read_images(const Dataset& dataset) {
  Bytes pixels(static_cast<std::size_t>(dataset.size() * dataset.info().sample_bytes()));
  dataset.read_images(0, dataset.size(), std::as_writable_bytes(std::span(pixels)));
  return pixels;
}

/// A listing of ten 37x51 images of two classes, and Pillow's pixels of each.
class Packer : public ::testing::Test {
 protected:
  static constexpr ImageSize kSize{37, 51};

  static void SetUpTestSuite() { pillow_ = new PillowImages(); }
  static void TearDownTestSuite() {
    delete pillow_;
    pillow_ = nullptr;
  }

  Packer() {
    const std::vector<std::string> names = {
        "jpeg_420",  "jpeg_422",  "jpeg_444", "jpeg_low",    "jpeg_progressive",
        "jpeg_gray", "jpeg_cmyk", "png_rgb",  "png_palette", "bmp"};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string extension = names[i].starts_with("jpeg")  ? ".jpg"
                                    : names[i].starts_with("png") ? ".png"
                                                                  : ".bmp";
      const fs::path folder = scratch_.path() / "in" / (i % 3 == 0 ? "zebra" : "ant");
      fs::create_directories(folder);
      fs::copy_file(
          pillow_->file(names[i] + extension),
          folder / (std::string(1, static_cast<char>('a' + i)) + "_" + names[i] + extension));
    }
    listing_ = list_folder(scratch_.file("in"));
    for (const std::string& path : paths()) {
      pixels_.push_back(
          read_bytes(pillow_->file(fs::path(path).stem().string().substr(2) + ".rgb")));
    }
    options_.quiet = true;
  }

  [[nodiscard]] const std::vector<std::string>& paths() const {
    return listing_.splits[0].images->files().paths;
  }
  [[nodiscard]] std::string output() const { return scratch_.file("out.h5"); }
  PackResult run(const PackOptions& options) {
    const Split& split = listing_.splits[0];
    ErrorBudget budget(options.on_error, {}, scratch_.file("in"));
    return pack(listing_, split, plan_pack(split, options), output(), options, budget);
  }
  /// Names in the scratch folder, but for the input.
  [[nodiscard]] std::set<std::string> left_behind() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch_.path()))
      names.insert(entry.path().filename());
    names.erase("in");
    return names;
  }

  chunkio::test::ScratchFolder scratch_;
  Listing listing_;
  std::vector<Bytes> pixels_;  // Of each source row.
  PackOptions options_;
  static PillowImages* pillow_;
};

PillowImages* Packer::pillow_ = nullptr;

TEST_F(Packer, RowsOfEverythingFollowSourceIndex) {
  options_.seed = 5;
  options_.writer.chunk_samples = 3;
  const PackResult result = run(options_);
  const Dataset dataset = Dataset::open(output());
  const auto& info = dataset.info();
  EXPECT_EQ(info.stored.shape, (chunkio::Shape{10, 37, 51, 3}));
  EXPECT_EQ(info.stored.chunk_shape, (chunkio::Shape{3, 37, 51, 3}));
  EXPECT_EQ(info.class_names, (std::vector<std::string>{"ant", "zebra"}));
  EXPECT_EQ(info.order, "shuffled");
  EXPECT_EQ(info.class_counts, (std::vector<std::int64_t>{6, 4}));
  const auto source = read_int64(dataset, "source_index");
  EXPECT_EQ(source, shuffled_order(10, 5));
  const auto labels = read_int64(dataset, "labels");
  const auto source_labels = field_values<std::int64_t>(listing_.splits[0], "labels");
  Bytes expected;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto row = static_cast<std::size_t>(source[i]);
    EXPECT_EQ(labels[i], source_labels[row]);
    expected.insert(expected.end(), pixels_[row].begin(), pixels_[row].end());
  }
  EXPECT_EQ(read_images(dataset), expected);
  ASSERT_TRUE(info.statistics.has_value());
  EXPECT_EQ(info.statistics->mean, result.statistics.channels.mean);
  EXPECT_EQ(left_behind(), (std::set<std::string>{"out.h5"}));
}

TEST_F(Packer, ThreadsAndChunksDoNotChangeTheImages) {
  options_.threads = 1;
  const auto reference = run(options_).statistics;
  const Bytes pixels = read_images(Dataset::open(output()));
  options_.writer.overwrite = true;
  for (const std::int64_t chunk : {1, 4, 10, 100}) {
    options_.threads = 4;
    options_.writer.chunk_samples = chunk;
    const auto statistics = run(options_).statistics;
    EXPECT_EQ(read_images(Dataset::open(output())), pixels) << chunk;
    EXPECT_EQ(statistics.channels.mean, reference.channels.mean);
    EXPECT_EQ(statistics.channels.std, reference.channels.std);
  }
}

TEST_F(Packer, SourceOrderGrayAndNchw) {
  options_.shuffled = false;
  options_.image.color = ColorMode::gray;
  run(options_);
  const Dataset gray = Dataset::open(output());
  EXPECT_EQ(gray.info().channels, 1);
  EXPECT_EQ(gray.info().channel_order, "gray");
  EXPECT_EQ(read_int64(gray, "source_index"), source_order(10));
  const Bytes first = read_images(gray);
  for (std::size_t i = 0; i < 37U * 51U; ++i) {
    ASSERT_EQ(first[i], luma(pixels_[0][3 * i], pixels_[0][3 * i + 1], pixels_[0][3 * i + 2]));
  }

  options_.writer.overwrite = true;
  options_.image.color = ColorMode::rgb;
  options_.image.layout = chunkio::Layout::nchw;
  run(options_);
  const Dataset planar = Dataset::open(output());
  EXPECT_EQ(planar.info().layout, chunkio::Layout::nchw);
  EXPECT_EQ(planar.info().stored.shape, (chunkio::Shape{10, 3, 37, 51}));
  const Bytes planes = read_images(planar);
  for (std::size_t i = 0; i < 37U * 51U; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(planes[c * 37 * 51 + i], pixels_[0][3 * i + c]);
  }
}

TEST_F(Packer, PlanarImagesAreInterleavedOrGray) {
  const std::string path = scratch_.file("batch.bin");
  write_bytes(path, Bytes{7, 10, 11, 20, 21, 30, 31, 8, 110, 111, 120, 121, 130, 131});
  auto planar = std::make_unique<PlanarImages>(ImageSize{1, 2});
  planar->add(std::make_shared<RecordFile>(path, 7));
  Listing listing;
  Split split;
  split.images = std::move(planar);
  options_.shuffled = false;
  ErrorBudget budget(OnError::fail, {}, "");
  pack(listing, split, plan_pack(split, options_), output(), options_, budget);
  EXPECT_EQ(read_images(Dataset::open(output())),
            (Bytes{10, 20, 30, 11, 21, 31, 110, 120, 130, 111, 121, 131}));
  options_.writer.overwrite = true;
  options_.image.color = ColorMode::gray;
  pack(listing, split, plan_pack(split, options_), output(), options_, budget);
  EXPECT_EQ(read_images(Dataset::open(output())),
            (Bytes{luma(10, 20, 30), luma(11, 21, 31), luma(110, 120, 130), luma(111, 121, 131)}));
}

TEST_F(Packer, ARecordFileThatChangedEndsThePack) {
  const std::string path = scratch_.file("in/batch.bin");
  const Bytes records = {7, 10, 11, 20, 21, 30, 31, 8, 110, 111, 120, 121, 130, 131};
  const std::vector<std::function<void()>> changes = {
      [&] { fs::resize_file(path, records.size() - 1); },
      [&] { fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1)); }};
  for (const auto& change : changes) {
    write_bytes(path, records);
    auto planar = std::make_unique<PlanarImages>(ImageSize{1, 2});
    planar->add(std::make_shared<RecordFile>(path, 7));
    Split split;
    split.images = std::move(planar);
    change();
    ErrorBudget budget(OnError::fail, {}, "");
    expect_error(ErrorCode::io_failed, {path},
                 [&] { pack({}, split, plan_pack(split, options_), output(), options_, budget); });
    EXPECT_TRUE(left_behind().empty());
  }
}

TEST_F(Packer, ABrokenImageEndsThePackAndLeavesNothing) {
  const std::string broken = paths()[7];
  const Bytes whole = read_bytes(broken);
  write_bytes(broken, std::span(whole).first(whole.size() / 2));
  expect_error(ErrorCode::corrupt_data, {broken}, [&] { run(options_); });
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(Packer, AJournalWithTheSumsOfOtherImagesIsRefused) {
  options_.shuffled = false;
  options_.threads = 1;
  options_.writer.chunk_samples = 1;
  options_.writer.commit_bytes = 1;
  options_.writer.identity = R"({"run":"of this test"})";
  const std::string last = paths().back();
  const Bytes whole = read_bytes(last);
  write_bytes(last, std::span(whole).first(whole.size() / 2));
  expect_error(ErrorCode::corrupt_data, {last, "--resume"}, [&] { run(options_); });
  std::int64_t chunk = 0;  // The first to be written is any of the first two.
  {
    auto journal = chunkio::write::Journal::take_up(output() + ".partial.journal");
    ASSERT_TRUE(journal);
    const std::vector<chunkio::write::ChunkRecord> chunks = journal->take_chunks();
    ASSERT_FALSE(chunks.empty());
    chunkio::write::ChunkRecord record = chunks.front();
    const ChunkRecord noted = from_note(record.note, 3, chunkio::Layout::nhwc);
    record.note = to_note({.first_place = noted.first_place,
                           .end_place = noted.end_place,
                           .pixels = chunkio::PixelStatistics(3, chunkio::Layout::nhwc)});
    journal->append({&record, 1});
    chunk = record.chunk;
  }
  write_bytes(last, whole);
  options_.writer.resume = true;
  expect_error(ErrorCode::corrupt_data,
               {"sums of 0 images", "chunk " + std::to_string(chunk) + ",", "--force"},
               [&] { run(options_); });
}

TEST_F(Packer, AImageThatVanishedEndsThePack) {
  const std::string gone = paths()[4];
  fs::remove(gone);
  expect_error(ErrorCode::not_found, {gone}, [&] { run(options_); });
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(Packer, AImageThatChangedAfterItWasListedEndsThePack) {
  stamp_files(listing_, OnError::fail);
  const Bytes whole = read_bytes(paths()[4]);
  const auto listed = fs::last_write_time(paths()[4]);
  const std::vector<std::function<void(const std::string&)>> changes = {
      [&](const auto& path) { write_bytes(path, std::span(whole).first(whole.size() - 1)); },
      [&](const auto& path) { fs::resize_file(path, whole.size() + 1); },
      [&](const auto& path) { fs::last_write_time(path, listed + std::chrono::nanoseconds(1)); }};
  for (const auto& change : changes) {
    change(paths()[4]);
    expect_error(ErrorCode::io_failed, {paths()[4], "changed"}, [&] { run(options_); });
    EXPECT_TRUE(left_behind().empty());
    write_bytes(paths()[4], whole);
    fs::last_write_time(paths()[4], listed);
  }
  run(options_);  // As it was.
}

TEST_F(Packer, AChangedImageIsSkippedLikeABadOne) {
  stamp_files(listing_, OnError::skip);
  fs::last_write_time(paths()[0], fs::file_time_type::clock::now());
  fs::remove(paths()[9]);
  options_.on_error = OnError::skip;
  const PackResult result = run(options_);
  ASSERT_EQ(result.skipped.size(), 2U);
  EXPECT_EQ(result.num_samples, 8);
  const Dataset dataset = Dataset::open(output());
  auto source = read_int64(dataset, "source_index");
  std::sort(source.begin(), source.end());
  EXPECT_EQ(source, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(Packer, DifferentSizesNameTwoFilesAndTheOption) {
  const std::string turned = (fs::path(paths()[0]).parent_path() / "turned.jpg").string();
  fs::copy_file(pillow_->file("oriented_jpg_6.jpg"), turned);
  listing_ = list_folder(scratch_.file("in"));
  options_.image.orientation = OrientationMode::apply;  // 51x37 now.
  expect_error(ErrorCode::unsupported, {paths()[0], "37x51", turned, "51x37", "--resize"},
               [&] { run(options_); });
  EXPECT_TRUE(left_behind().empty());
  options_.image.resize = parse_resize("20x30");
  run(options_);
  EXPECT_EQ(Dataset::open(output()).info().stored.shape, (chunkio::Shape{11, 20, 30, 3}));
}

TEST_F(Packer, AnExistingOutputStaysWithoutForce) {
  write_bytes(output(), Bytes{1, 2, 3});
  expect_error(ErrorCode::output_exists, {output()}, [&] { run(options_); });
  EXPECT_EQ(read_bytes(output()), (Bytes{1, 2, 3}));
  options_.writer.overwrite = true;
  write_bytes(scratch_.file("in/ant/zz.jpg"), Bytes{1, 2, 3});
  listing_ = list_folder(scratch_.file("in"));
  expect_error(ErrorCode::unsupported, {"zz.jpg"}, [&] { run(options_); });
  EXPECT_EQ(read_bytes(output()), (Bytes{1, 2, 3}));
}

TEST_F(Packer, ASignalStopsThePackAndLeavesNothing) {
  const cli::StopSignal stop("");
  ::raise(SIGTERM);
  expect_error(ErrorCode::cancelled, {"SIGTERM"}, [&] { run(options_); });
  EXPECT_EQ(cli::StopSignal::received(), SIGTERM);
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(Packer, PlanBoundsMemory) {
  const PackPlan plan = plan_pack(listing_.splits[0], options_);
  EXPECT_EQ(plan.size, kSize);
  EXPECT_EQ(plan.num_chunks, 1);
  EXPECT_EQ(plan.memory_bytes(), plan.chunk_bytes);
  PackOptions large = options_;
  large.image.resize = parse_resize("20000x20000");  // 1.2 GB an image.
  large.threads = 16;
  EXPECT_EQ(plan_pack(listing_.splits[0], large).chunks_in_flight, 1);
  // And one that waits, one that is being filled up, and two that are written.
  EXPECT_EQ(plan_pack(listing_.splits[0], large).buffers, 5);
  large.image.resize = parse_resize("65535x65535");
  expect_error(ErrorCode::invalid_argument, {"4 GiB"},
               [&] { (void)plan_pack(listing_.splits[0], large); });
}

TEST(CountClasses, CountsNamesAndSmallNumbers) {
  Split split;
  EXPECT_TRUE(chunkio::count_classes(split.fields, {}).empty());
  split.fields = {make_field("labels", std::vector<std::int64_t>{2, 0, 2})};
  EXPECT_EQ(chunkio::count_classes(split.fields, {"a", "b", "c", "d"}),
            (std::vector<std::int64_t>{1, 0, 2, 0}));
  EXPECT_EQ(chunkio::count_classes(split.fields, {}), (std::vector<std::int64_t>{1, 0, 2}));
  split.fields = {make_field("labels", std::vector<std::int64_t>{-1})};
  EXPECT_TRUE(chunkio::count_classes(split.fields, {}).empty());
  split.fields = {make_field("labels", std::vector<std::uint8_t>{1}, chunkio::Shape{1})};
  EXPECT_TRUE(chunkio::count_classes(split.fields, {}).empty());
}

}  // namespace
}  // namespace h5pack
