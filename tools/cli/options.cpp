#include "cli/options.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <system_error>

#include "cli/byte_size.hpp"
#include "cli/escape.hpp"
#include "cli/parse_number.hpp"
#include "cli/row_list.hpp"

namespace cli {
namespace {

/// Without zeros at the end.
std::string shortest(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// A number from `lowest` to `highest`, which `wanted` says in words.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& target,
                        const std::string& description, const char* type_name, T lowest, T highest,
                        const std::string& wanted, const std::string& shown_default) {
  const std::string long_name = name.substr(name.find("--"));
  const auto set = [&target, long_name, lowest, highest, wanted](const std::string& text) {
    const std::optional<T> value = parse_number<T>(text);
    // Written so that NaN is refused, too.
    if (!value || !(*value >= lowest && *value <= highest)) refuse(long_name, wanted, text);
    target = *value;
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name(type_name)
      ->default_str(shown_default);
}

/// The one that was built or installed with this program; empty if there is none.
std::string probe_program() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto probe = program.parent_path() / "chunkio-probe";
  return !error && std::filesystem::exists(probe, error) ? probe.string() : "";
}

}  // namespace

void refuse(const std::string& name, const std::string& wanted, const std::string& text) {
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       name + " must be " + wanted + ", not '" + escape(text) + "'");
}

CLI::Option* add_required(CLI::App& app, const std::string& name, std::string& target,
                          const std::string& description, const std::string& type_name) {
  return app.add_option(name, target, description)->required()->type_name(type_name);
}

CLI::Option* add_file_or_shards(CLI::App& app, std::string& target) {
  return add_required(app, "FILE", target, "An HDF5 file, or shards: 'train-*-of-00008.h5'");
}

void check_output(const std::string& output) {
  if (!output.empty()) return;
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument, "-o must not be empty");
}

CLI::Option* add_byte_size(CLI::App& app, const std::string& name, std::int64_t& target,
                           const std::string& description, std::int64_t smallest) {
  const auto set = [&target, name, smallest](const std::string& text) {
    target = of_option(name, [&] { return parse_byte_size(text); });
    if (target < smallest) refuse(name, "at least " + format_bytes(smallest), text);
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name("SIZE")
      ->default_str(format_bytes(target));
}

CLI::Option* add_memory_budget(CLI::App& app, std::int64_t& target) {
  return add_byte_size(app, "--memory-budget", target, "Memory for reading");
}

void check_threads(std::int64_t threads) {
  if (threads <= kMaxThreads) return;
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "--threads must be at most " + std::to_string(kMaxThreads));
}

CLI::Option* add_integer(CLI::App& app, const std::string& name, std::int64_t& target,
                         std::int64_t smallest, const std::string& description) {
  return add_number(
      app, name, target, description, "N", smallest, std::numeric_limits<std::int64_t>::max(),
      "a whole number, " + std::to_string(smallest) + " or more", std::to_string(target));
}

CLI::Option* add_jpeg_quality(CLI::App& app, int& target) {
  return add_number(app, "--quality", target, "Quality of the JPEG files, 1 to 100", "Q", 1, 100,
                    "a whole number from 1 to 100", std::to_string(target));
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& description) {
  return add_number(app, name, target, description, "N", std::uint64_t{0},
                    std::numeric_limits<std::uint64_t>::max(), "a whole number from 0 to 2^64 - 1",
                    std::to_string(target));
}

CLI::Option* add_milliseconds(CLI::App& app, const std::string& name, double& target,
                              const std::string& description) {
  return add_number(app, name, target, description, "MS", 0.0, 3'600'000.0,
                    "a number of milliseconds from 0 to 3600000", "0");
}

CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& target,
                         const std::string& description, double lowest) {
  return add_number(app, name, target, description, "S", lowest, 60.0,
                    "a number of seconds from " + shortest(lowest) + " to 60", shortest(target));
}

CLI::Option* add_names(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description, const std::string& type_name) {
  const auto set = [&target, name](const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      if (end == at) refuse(name, "names separated by commas", text);
      target.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  };
  return app.add_option_function<std::string>(name, set, description)->type_name(type_name);
}

CLI::Option* add_rows(CLI::App& app, std::optional<chunkio::RowSelection>& target) {
  const auto set = [&target](const std::string& text) {
    target = of_option("--rows", [&] { return parse_row_list(text); });
  };
  return app
      .add_option_function<std::string>("--rows", set,
                                        "Only these rows of the file, such as 0:1000,2000 (a range "
                                        "ends before its second number)")
      ->type_name("LIST");
}

void add_trust(CLI::App& app, std::string& probe) {
  probe = probe_program();
  app.add_flag_callback(
      "--trust", [&probe] { probe.clear(); },
      "Open the file without having another process look at it first, which finds files that "
      "libhdf5 crashes on");
}

void add_open_options(CLI::App& app, chunkio::OpenOptions& target, const std::string& heading) {
  const Heading under(app, heading);
  app.add_option(
         "--images", target.images,
         "Path of the images, or of other numbers that lead (default: images, or the only one)")
      ->type_name("PATH");
  app.add_option("--label-field", target.labels,
                 "Path of the label dataset in the file (default: labels or label)")
      ->type_name("PATH");
  using Choice = std::optional<chunkio::Layout>;
  add_choice<Choice>(app, "--layout", target.layout,
                     {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
                     "Axis order of the images, if the file does not say");
  const auto decoding = [&target]() -> chunkio::DecodeOptions& {
    if (!target.decode) target.decode.emplace();
    return *target.decode;
  };
  auto* const decode =
      app.add_option_function<std::string>(
             "--decode",
             [decoding](const std::string& text) {
               const std::size_t x = std::min(text.find('x'), text.size());
               const auto height = parse_number<std::int64_t>(text.substr(0, x));
               const auto width =
                   x < text.size() ? parse_number<std::int64_t>(text.substr(x + 1)) : height;
               if (!height || !width) refuse("--decode", "a size such as 224 or 224x320", text);
               decoding().height = *height;
               decoding().width = *width;
             },
             "Decode encoded images to this size while reading")
          ->type_name("S|HxW");
  app.add_option_function<std::string>(
         "--crop",
         [decoding](const std::string& text) {
           using Crop = chunkio::CropMode;
           if (text == "random-resized") {
             decoding().crop = Crop::random_resized;
           } else if (text == "center" || text == "whole") {
             decoding().crop = text == "whole" ? Crop::whole : Crop::center;
           } else {
             refuse("--crop", "center, random-resized or whole", text);
           }
         },
         "What of each image: its centre, a random part (random-resized), or all of it (whole)")
      ->type_name("center|random-resized|whole")
      ->default_str("center")
      ->needs(decode);
  app.add_flag("--allow-external", target.allow_external,
               "Follow links, external storage and virtual datasets into other files; only for "
               "files that you trust");
  add_trust(app, target.probe);
  add_integer(app, "--remote-requests", target.remote.requests, 1,
              "Of https:// and s3://: requests that are under way at the same time");
  app.add_option("--remote-timeout", target.remote.timeout_seconds,
                 "Of https:// and s3://: seconds for which a request that brings nothing is tried "
                 "again")
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--remote-cache", target.remote.cache,
                 "Of https:// and s3://: a folder on a local disk that keeps what comes, for later "
                 "epochs and runs")
      ->type_name("DIR");
  add_byte_size(app, "--remote-cache-bytes", target.remote.cache_bytes,
                "What all files in that folder may take");
  app.add_option("--remote-index", target.remote.index,
                 "Of https:// and s3://: what h5pack index wrote of these files, so that they open "
                 "by one request each")
      ->type_name("FILE");
}

}  // namespace cli
