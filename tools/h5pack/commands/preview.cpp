/// h5pack preview: a contact sheet of a few images of each class.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/atomic_file.hpp"
#include "cli/command.hpp"
#include "cli/escape.hpp"
#include "cli/help.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/progress_text.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/dataset/class_labels.hpp"
#include "h5pack/image/contact_sheet.hpp"
#include "h5pack/pack/row_order.hpp"

namespace h5pack {
namespace {

using Json = nlohmann::ordered_json;

struct PreviewOptions {
  std::string file = {};
  std::string output = {};
  chunkio::OpenOptions open = {};
  std::int64_t rows = 6;
  std::int64_t columns = 0;  // 0: one for each class if that looks well
  std::uint64_t seed = 0;
  bool force = false;
};

constexpr std::int64_t kDefaultColumns = 10;
constexpr std::size_t kMaxColumnsForClasses = 12;
constexpr std::int64_t kMaxImages = 2'500;
constexpr std::size_t kMaxAttributesShown = 3;
/// Labels with more distinct values than this are ids, not classes.
constexpr std::size_t kMaxClasses = 20'000;

using Rows = std::vector<std::int64_t>;

/// At most `most` random rows of each class, in the order of labels; of all rows together if the
/// labels are no classes.
std::vector<Rows> sample_classes(const chunkio::Dataset& dataset, std::size_t most,
                                 std::uint64_t seed) {
  Rows labels;
  bool classified = true;
  for_each_label_block(dataset, [&](const chunkio::LabelBlock& block) {
    classified = classified && !block.classes.empty();
    labels.insert(labels.end(), block.classes.begin(), block.classes.end());
  });
  std::map<std::int64_t, Rows> classes;
  if (!classified || labels.empty() ||
      std::set<std::int64_t>(labels.begin(), labels.end()).size() > kMaxClasses) {
    labels.assign(static_cast<std::size_t>(dataset.size()), 0);
  }
  for (const std::int64_t row : shuffled_order(dataset.size(), seed)) {
    Rows& rows = classes[labels[static_cast<std::size_t>(row)]];
    // A class can be asked for all the images if the others are few.
    if (rows.size() < most) rows.push_back(row);
  }
  std::vector<Rows> chosen;
  for (auto& [label, rows] : classes) chosen.push_back(std::move(rows));
  return chosen;
}

/// Deals the classes out in turn, so that each is shown equally often until it runs out; a random
/// choice of classes if there are more than images.
Rows deal(const std::vector<Rows>& classes, std::size_t images, std::uint64_t seed) {
  Rows places = shuffled_order(std::ssize(classes), seed);
  places.resize(std::min(places.size(), images));
  std::sort(places.begin(), places.end());
  Rows rows;
  for (std::size_t turn = 0; turn < images && rows.size() < images; ++turn) {
    for (const std::int64_t place : places) {
      const Rows& of_class = classes[static_cast<std::size_t>(place)];
      if (turn < of_class.size() && rows.size() < images) rows.push_back(of_class[turn]);
    }
  }
  return rows;
}

/// What to write below an image: its class, or the attributes it has.
std::vector<std::string> captions(const chunkio::Dataset& dataset, std::int64_t row) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.labels) return {};
  const chunkio::FieldInfo& labels = *info.labels;
  if (const std::vector<std::int64_t> classes = read_classes(dataset, {row, row + 1});
      !classes.empty()) {
    return {class_name(info.class_names, classes[0]).value_or(std::to_string(classes[0]))};
  }
  if (labels.dtype != chunkio::DType::uint8 || labels.row_shape.rank() != 1) return {};
  std::vector<std::uint8_t> values(static_cast<std::size_t>(labels.row_shape[0]));
  dataset.read_field(labels.name, row, 1, std::as_writable_bytes(std::span(values)));
  std::vector<std::string> set;
  for (std::size_t i = 0; i < values.size() && i < info.attribute_names.size(); ++i) {
    if (values[i] != 0) set.push_back(info.attribute_names[i]);
  }
  if (set.size() > kMaxAttributesShown + 1) {
    const std::size_t more = set.size() - kMaxAttributesShown;
    set.resize(kMaxAttributesShown);
    set.push_back("+ " + std::to_string(more) + " more");
  }
  return set;
}

/// The extension in lower case, if it is one of those offered.
std::string image_extension(const std::string& output) {
  std::string extension = std::filesystem::path(output).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".png" || extension == ".jpg" || extension == ".jpeg") return extension;
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "the output " + cli::escape(output) + " must end in .png or .jpg");
}

cli::ExitCode preview(const PreviewOptions& options, const cli::GlobalOptions& global) {
  const std::string extension = image_extension(options.output);
  cli::check_atomic_file(options.output, options.force);
  const chunkio::Dataset dataset = chunkio::Dataset::open(options.file, options.open);
  const chunkio::DatasetInfo& info = dataset.info();
  require_images(info);

  const bool class_columns =
      info.class_names.size() >= 2 && info.class_names.size() <= kMaxColumnsForClasses;
  const std::int64_t wanted_columns = options.columns != 0 ? options.columns
                                      : class_columns
                                          ? static_cast<std::int64_t>(info.class_names.size())
                                          : kDefaultColumns;
  if (options.rows > kMaxImages || wanted_columns > kMaxImages ||
      options.rows * wanted_columns > kMaxImages) {
    throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                         "a sheet holds at most " + cli::format_count(kMaxImages) +
                             " images; use smaller --grid-rows and --grid-columns");
  }
  const std::int64_t images = std::min(options.rows * wanted_columns, info.num_samples);
  const auto num_images = static_cast<std::size_t>(images);

  ContactSheet sheet{.title = std::filesystem::path(options.file).filename().string() + "   " +
                              cli::format_count(info.num_samples) + " images of " +
                              info.sample_shape().to_string(),
                     .columns = std::min(wanted_columns, images),
                     .height = info.height,
                     .width = info.width,
                     .channels = info.channels,
                     .layout = info.layout};
  for (const std::int64_t row :
       deal(sample_classes(dataset, num_images, options.seed), num_images, options.seed)) {
    SheetImage image;
    image.pixels.resize(static_cast<std::size_t>(info.sample_bytes()));
    dataset.read_images(row, 1, image.pixels);
    image.captions = captions(dataset, row);
    sheet.images.push_back(std::move(image));
  }
  const EncodedSheet drawn = draw_contact_sheet(sheet, extension);
  cli::write_atomic_file(options.output, drawn.bytes, options.force);
  if (global.json) {
    cli::print(cli::json_text(Json{{"output", options.output},
                                   {"images", images},
                                   {"rows", (images + sheet.columns - 1) / sheet.columns},
                                   {"columns", sheet.columns},
                                   {"width", drawn.width},
                                   {"height", drawn.height}}) +
               "\n");
  } else {
    cli::print(cli::escape(options.output) + ": " + cli::format_count(images) + " images, " +
               std::to_string(drawn.width) + " x " + std::to_string(drawn.height) + " pixels\n");
  }
  return cli::ExitCode::ok;
}

}  // namespace

void add_preview_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command =
      app.add_subcommand("preview", "Draw a contact sheet of random images of each class");
  const auto options = std::make_shared<PreviewOptions>();
  cli::add_required(*command, "FILE", options->file, "An HDF5 file");
  cli::add_required(*command, "-o,--output", options->output,
                    "Contact sheet to write, .png or .jpg", "SHEET");
  cli::add_integer(*command, "--grid-rows", options->rows, 1, "Rows of images");
  cli::add_integer(*command, "--grid-columns", options->columns, 1, "Images in a row")
      ->default_str("one a class, or 10");
  cli::add_seed(*command, "--seed", options->seed, "Seed that picks the images");
  command->add_flag("-f,--force", options->force, "Replace an existing sheet");
  cli::add_open_options(*command, options->open);
  cli::set_help(*command, {"h5pack preview train.h5 -o sheet.png",
                           "h5pack preview train.h5 -o sheet.png --grid-rows 10 --seed 1"});
  command->callback([&global, &action, options] {
    action = [&global, options] { return preview(*options, global); };
  });
}

}  // namespace h5pack
