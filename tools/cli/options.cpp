#include "cli/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

#include "cli/byte_size.hpp"
#include "cli/row_list.hpp"

namespace cli {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& wanted,
                         const std::string& text) {
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       name + " must be " + wanted + ", not '" + escape(text) + "'");
}

template <class T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Without zeros at the end.
std::string shortest(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

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
    try {
      target = parse_byte_size(text);
    } catch (const chunkio::Error& error) {
      throw error.with_message(name + ": " + error.what());
    }
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
  const std::string long_name = name.substr(name.find("--"));
  const auto set = [&target, long_name, smallest](const std::string& text) {
    const std::optional<std::int64_t> value = parse_number<std::int64_t>(text);
    if (!value || *value < smallest) {
      refuse(long_name, "a whole number, " + std::to_string(smallest) + " or more", text);
    }
    target = *value;
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name("N")
      ->default_str(std::to_string(target));
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& description) {
  const auto set = [&target, name](const std::string& text) {
    const std::optional<std::uint64_t> value = parse_number<std::uint64_t>(text);
    if (!value) refuse(name, "a whole number from 0 to 2^64 - 1", text);
    target = *value;
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name("N")
      ->default_str(std::to_string(target));
}

CLI::Option* add_milliseconds(CLI::App& app, const std::string& name, double& target,
                              const std::string& description) {
  const auto set = [&target, name](const std::string& text) {
    constexpr double kHour = 3'600'000;
    const std::optional<double> value = parse_number<double>(text);
    // Written so that NaN is refused, too.
    if (!value || !(*value >= 0 && *value <= kHour)) {
      refuse(name, "a number of milliseconds from 0 to 3600000", text);
    }
    target = *value;
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name("MS")
      ->default_str("0");
}

CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& target,
                         const std::string& description, double lowest) {
  const auto set = [&target, name, lowest](const std::string& text) {
    const std::optional<double> value = parse_number<double>(text);
    if (!value || !(*value >= lowest && *value <= 60)) {
      refuse(name, "a number of seconds from " + shortest(lowest) + " to 60", text);
    }
    target = *value;
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name("S")
      ->default_str(shortest(target));
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
    try {
      target = parse_row_list(text);
    } catch (const chunkio::Error& error) {
      throw error.with_message(std::string("--rows: ") + error.what());
    }
  };
  return app
      .add_option_function<std::string>("--rows", set,
                                        "Only these rows of the file, such as 0:1000,2000 (a range "
                                        "ends before its second number)")
      ->type_name("LIST");
}

void add_open_options(CLI::App& app, chunkio::OpenOptions& target, const std::string& heading) {
  const Heading under(app, heading);
  app.add_option("--images", target.images,
                 "Path of the image dataset in the file (default: images, or the only one)")
      ->type_name("PATH");
  app.add_option("--label-field", target.labels,
                 "Path of the label dataset in the file (default: labels or label)")
      ->type_name("PATH");
  using Choice = std::optional<chunkio::Layout>;
  add_choice<Choice>(app, "--layout", target.layout,
                     {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
                     "Axis order of the images, if the file does not say");
  app.add_flag("--allow-external", target.allow_external,
               "Follow links, external storage and virtual datasets into other files; only for "
               "files that you trust");
}

}  // namespace cli
