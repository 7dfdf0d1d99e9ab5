// h5pack folder, the whole command, against loops that only do what cannot be left out: decode
// files that are in memory, or open, read and decode them. Files are in the page cache. Before each
// turn what was written earlier is brought to disk.
//
// "Read-back excluded" leaves out the time in which h5pack only waited for what it read back of its
// file; what it read while it still decoded is in both.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "figures/packing_case.hpp"
#include "harness/in_parallel.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

struct Comparison {
  std::string row;
  std::string loop_name;
  ImageSize size;
  std::function<void()> loop;
};

void compare(PackingCase& packing, Report& report, const Comparison& comparison) {
  const JpegFolder& images = packing.images(comparison.size);
  const std::string output = packing.scratch.file("folder.h5");
  static_cast<void>(packing.pack_folder(images, output));
  check_packed(output, images, packing.options.threads);
  comparison.loop();

  const auto count = static_cast<double>(images.count());
  std::vector<double> ratios;
  std::vector<double> without_read_back;
  std::vector<double> of_limit;
  std::vector<double> packed;
  std::vector<double> decoded;
  nlohmann::ordered_json runs;
  for (std::int64_t round = 0; round < packing.options.rounds; ++round) {
    settle(packing.scratch.file(""));
    chunkio::base::Stopwatch watch;
    comparison.loop();
    const double loop_seconds = watch.lap();
    const PackRun run = packing.pack_folder(images, output);
    const double limit_seconds = std::max(loop_seconds, copy_files(packing, {output}));
    ratios.push_back(loop_seconds / run.seconds);
    without_read_back.push_back(loop_seconds / run.without_read_back());
    of_limit.push_back(limit_seconds / run.without_read_back());
    packed.push_back(count / run.seconds);
    decoded.push_back(count / loop_seconds);
    runs.push_back({{"loop_seconds", loop_seconds},
                    {"h5pack_seconds", run.seconds},
                    {"outputs", run.report.at("outputs")}});
  }
  std::filesystem::remove(output);
  const std::string size = comparison.size.name;
  report.add({comparison.row, size, ratios, at_least(0.9)});
  report.add({comparison.row + ", read-back excluded", size, without_read_back});
  report.add({"the same / the slower of that loop and cp + fsync of the result", size, of_limit});
  report.add({"h5pack folder, images/s", size, packed});
  report.add({comparison.loop_name + ", images/s", size, decoded});
  report.add_detail(size, comparison.loop_name, runs);
}

}  // namespace

void measure_decode_only(PackingCase& packing, Report& report) {
  const JpegFolder& images = packing.images(kLarge);
  std::vector<std::vector<std::byte>> contents;
  FileReader reader;
  for (const std::string& file : images.files) {
    const auto bytes = reader.read(file);
    contents.emplace_back(bytes.begin(), bytes.end());
  }
  compare(packing, report,
          {"h5pack folder / decode-only loop", "decode-only loop", kLarge, [&] {
             in_parallel(images.count(), packing.options.threads, [&] {
               return [&, decoder = JpegReader()](std::int64_t i) mutable {
                 static_cast<void>(decoder.decode(contents[static_cast<std::size_t>(i)]));
               };
             });
           }});
}

void measure_open_read_decode(PackingCase& packing, Report& report) {
  const JpegFolder& images = packing.images(kSmall);
  compare(packing, report,
          {"h5pack folder / open, read and decode loop", "open, read and decode loop", kSmall, [&] {
             in_parallel(images.count(), packing.options.threads, [&] {
               return [&, files = FileReader(), decoder = JpegReader()](std::int64_t i) mutable {
                 const std::string& file = images.files[static_cast<std::size_t>(i)];
                 static_cast<void>(decoder.decode(files.read(file)));
               };
             });
           }});
}

}  // namespace bench
