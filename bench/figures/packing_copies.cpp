// h5pack cifar and repack against cp of the same bytes. Both sides bring every file they wrote and
// its folder to disk (fsync); what they read is in the page cache.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "figures/packing_case.hpp"
#include "harness/h5dread_baseline.hpp"
#include "harness/noise.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRecordBytes = 3073;
constexpr std::int64_t kPlane = 1024;

std::int64_t bytes_of(const std::vector<std::string>& files) {
  std::int64_t bytes = 0;
  for (const std::string& file : files) bytes += static_cast<std::int64_t>(fs::file_size(file));
  return bytes;
}

struct Comparison {
  std::string row;
  ImageSize size;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::function<PackRun()> run;  ///< With no outputs there.
};

void compare(PackingCase& packing, Report& report, const Comparison& comparison) {
  std::vector<double> ratios;
  std::vector<double> with_read_back;
  std::vector<double> packed;
  std::vector<double> copied;
  nlohmann::ordered_json runs;
  for (std::int64_t round = 0; round < packing.options.rounds; ++round) {
    const double copy_seconds = copy_files(packing, comparison.inputs);
    const double copy_rate = static_cast<double>(bytes_of(comparison.inputs)) / copy_seconds;
    for (const std::string& output : comparison.outputs) fs::remove(output);
    const PackRun run = comparison.run();
    const auto bytes = static_cast<double>(bytes_of(comparison.outputs));
    ratios.push_back(bytes / run.without_read_back() / copy_rate);
    with_read_back.push_back(bytes / run.seconds / copy_rate);
    packed.push_back(bytes / run.without_read_back() / 1e9);
    copied.push_back(copy_rate / 1e9);
    runs.push_back({{"cp_seconds", copy_seconds},
                    {"h5pack_seconds", run.seconds},
                    {"outputs", run.report.at("outputs")}});
  }
  for (const std::string& output : comparison.outputs) fs::remove(output);
  const std::string size = comparison.size.name;
  report.add({comparison.row + " / cp + fsync, read-back excluded", size, ratios, at_least(0.7)});
  report.add({comparison.row + " / cp + fsync, with read-back", size, with_read_back});
  report.add({comparison.row + ", read-back excluded, GB/s", size, packed});
  report.add({comparison.row + ": cp + fsync, GB/s", size, copied});
  report.add_detail(size, comparison.row, runs);
}

/// The binary version of CIFAR-10 with noise for images.
/// \returns its batch files.
std::vector<std::string> write_cifar(const std::string& folder, std::int64_t records) {
  fs::create_directories(folder);
  std::vector<std::string> files;
  std::vector<std::byte> bytes(static_cast<std::size_t>(records * kRecordBytes));
  for (int batch = 1; batch <= 6; ++batch) {
    fill_with_noise(bytes, static_cast<std::uint64_t>(batch));
    for (std::int64_t i = 0; i < records; ++i) {
      bytes[static_cast<std::size_t>(i * kRecordBytes)] = static_cast<std::byte>(i % 10);
    }
    const std::string name =
        batch == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(batch) + ".bin";
    files.push_back(folder + "/" + name);
    std::ofstream file(files.back(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + files.back());
  }
  std::ofstream names(folder + "/batches.meta.txt");
  for (int i = 0; i < 10; ++i) names << "class" << i << "\n";
  return files;
}

std::vector<std::byte> all_images(const chunkio::Dataset& dataset) {
  const auto sample_bytes = static_cast<std::size_t>(dataset.info().sample_bytes());
  std::vector<std::byte> pixels(static_cast<std::size_t>(dataset.size()) * sample_bytes);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(dataset.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  read_one_by_one(dataset.info().path, {}, rows, pixels, sample_bytes);
  return pixels;
}

/// Every sample is the record that source_index names.
void check_cifar(const std::string& packed, const std::vector<std::string>& batches) {
  std::vector<std::byte> records;
  FileReader reader;
  for (const std::string& batch : batches) {
    const auto bytes = reader.read(batch);
    records.insert(records.end(), bytes.begin(), bytes.end());
  }
  const chunkio::Dataset dataset = chunkio::Dataset::open(packed);
  if (dataset.size() * kRecordBytes != static_cast<std::int64_t>(records.size())) {
    throw std::runtime_error(packed + " does not hold all images");
  }
  std::vector<std::int64_t> source(static_cast<std::size_t>(dataset.size()));
  dataset.read_field("source_index", 0, dataset.size(), std::as_writable_bytes(std::span(source)));
  const std::vector<std::byte> pixels = all_images(dataset);
  for (std::size_t row = 0; row < source.size(); ++row) {
    const std::byte* const planes = records.data() + source[row] * kRecordBytes + 1;
    const std::byte* const pixel = pixels.data() + row * 3 * kPlane;
    for (std::int64_t i = 0; i < 3 * kPlane; ++i) {
      if (pixel[i] != planes[i % 3 * kPlane + i / 3]) {
        throw std::runtime_error(packed + " holds other pixels in row " + std::to_string(row));
      }
    }
  }
}

}  // namespace

void measure_cifar(PackingCase& packing, Report& report) {
  const std::string folder = packing.scratch.file("cifar-10-batches-bin");
  const std::vector<std::string> batches = write_cifar(folder, packing.options.cifar_records);
  const std::string output = packing.scratch.file("cifar");
  const auto run = [&] { return packing.run_h5pack({"cifar", folder, "-o", output, "--force"}); };
  static_cast<void>(run());
  check_cifar(output + "/train.h5", {batches.begin(), batches.end() - 1});
  check_cifar(output + "/test.h5", {batches.back()});
  compare(packing, report,
          {"h5pack cifar", kSmall, batches, {output + "/train.h5", output + "/test.h5"}, run});
  fs::remove_all(folder);
}

void measure_repack(PackingCase& packing, Report& report) {
  const std::int64_t count =
      std::max<std::int64_t>(packing.options.repack_bytes / kLarge.bytes(), 1);
  const std::string input = packing.scratch.file("in.h5");
  const std::string output = packing.scratch.file("repacked.h5");
  write_noise_file(input, kLarge, count);
  const auto run = [&] { return packing.run_h5pack({"repack", input, "-o", output}); };
  static_cast<void>(run());
  if (all_images(chunkio::Dataset::open(input)) != all_images(chunkio::Dataset::open(output))) {
    throw std::runtime_error(output + " does not hold the images of " + input);
  }
  compare(packing, report, {"h5pack repack", kLarge, {input}, {output}, run});
  fs::remove(input);
}

}  // namespace bench
