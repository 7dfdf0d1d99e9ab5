#include "h5/encoded_images.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <hdf5.h>

#include "h5/attributes.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/description_reader.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/library.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"

namespace chunkio::h5 {
namespace {

constexpr const char* kMembers[] = {encoded::kData, encoded::kIndptr, encoded::kSizes,
                                    encoded::kOrientations};

/// A dataset of the group, if it is there and has `shape`.
class Members {
 public:
  Members(const Dataset::Impl& file, const std::string& group, const FileContents& contents)
      : file_(file), group_(group), contents_(contents) {}

  [[nodiscard]] const DatasetSummary* find(const char* name) const {
    return find_path(group_ + "/" + name);
  }
  /// Digests of the bytes of each image, if the file has any.
  [[nodiscard]] std::shared_ptr<const StoredArray> open_digests(std::int64_t rows) const {
    const DatasetSummary* const one = find_path(kSampleDigests);
    if (one == nullptr || !one->refusal.empty() || one->dtype != DType::uint64 ||
        one->shape != Shape{rows}) {
      return nullptr;
    }
    const DatasetId digests = open_dataset(file_.file(), one->name, file_.info.path);
    const std::vector<std::string> covered = read_covered_names(digests.get(), file_.info.path);
    if (covered != std::vector<std::string>{group_ + "/" + encoded::kData}) return nullptr;
    return open_array(file_, one->name, *one->shape, DType::uint64);
  }
  /// \throws Error corrupt_data, refused_by_policy.
  [[nodiscard]] const DatasetSummary& get(const char* name, std::size_t rank) const {
    const DatasetSummary* const one = find(name);
    if (one == nullptr) throw damaged(std::string("it has no ") + name);
    if (!one->refusal.empty()) throw refused(file_.info.path, one->describe());
    if (!one->shape || one->shape->rank() != rank || !one->dtype || !is_integer(*one->dtype)) {
      throw damaged(one->describe() + " is not what it must be");
    }
    return *one;
  }
  [[nodiscard]] Error damaged(const std::string& why) const {
    return {ErrorCode::corrupt_data, file_.info.path + ": " + printable(group_) +
                                         " is damaged: " + why + "; copy or pack the file again"};
  }

 private:
  [[nodiscard]] const DatasetSummary* find_path(const std::string& path) const {
    const auto found = std::find_if(contents_.datasets.begin(), contents_.datasets.end(),
                                    [&](const auto& dataset) { return dataset.name == path; });
    return found == contents_.datasets.end() ? nullptr : &*found;
  }

  const Dataset::Impl& file_;
  const std::string& group_;
  const FileContents& contents_;
};

GroupId open_group(const Dataset::Impl& file, const std::string& group) {
  return GroupId(check_id(H5Gopen2(file.file().get(), group.c_str(), H5P_DEFAULT),
                          "open the group of", file.info.path));
}

template <class Number>
std::span<std::byte> bytes_of(std::vector<Number>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

}  // namespace

std::string EncodedImages::describe(std::int64_t row, const std::string& path) const {
  return "image " + std::to_string(row) + " of " + printable(name) + " in " + path;
}

void EncodedImages::check_offsets(std::int64_t first, std::span<const std::int64_t> of_rows,
                                  const std::string& path) const {
  for (std::size_t i = 0; i + 1 < of_rows.size(); ++i) {
    if (0 <= of_rows[i] && of_rows[i] <= of_rows[i + 1] && of_rows[i + 1] <= num_bytes &&
        of_rows[i + 1] - of_rows[i] <= kMaxSampleBytes) {
      continue;
    }
    throw Error(ErrorCode::corrupt_data,
                describe(first + static_cast<std::int64_t>(i), path) +
                    " is damaged: it lies at bytes " + std::to_string(of_rows[i]) + " to " +
                    std::to_string(of_rows[i + 1]) + " of " + std::to_string(num_bytes) +
                    " (indptr); copy or pack the file again");
  }
}

void EncodedImages::check_size(image::Size stored) const {
  if (stored.height <= max_height && stored.width <= max_width &&
      std::int64_t{stored.height} * stored.width <= max_pixels) {
    return;
  }
  throw Error(ErrorCode::corrupt_data, "it says that it has " + std::to_string(stored.height) +
                                           "x" + std::to_string(stored.width) +
                                           " pixels, more than any image of the file");
}

Error EncodedImages::named(const Error& error, std::int64_t row, const std::string& path) const {
  return {error.code(), describe(row, path) + " cannot be decoded: " + error.what()};
}

bool is_encoded_member(const std::string& group, const std::string& dataset) {
  return std::any_of(std::begin(kMembers), std::end(kMembers),
                     [&](const char* name) { return dataset == group + "/" + name; });
}

bool has_encoded_images(const Dataset::Impl& file, const std::string& group) {
  const GroupId object = open_group(file, group);
  try {
    return AttributeReader(object.get(), printable(group), file.info.path)
               .text(encoded::kEncodingType) == encoded::kType;
  } catch (const Error&) {
    return false;  // another program's attribute
  }
}

std::shared_ptr<const EncodedImages> open_encoded(const Dataset::Impl& file,
                                                  const std::string& group,
                                                  const FileContents& contents,
                                                  const std::optional<DecodeOptions>& decode) {
  const std::string& path = file.info.path;
  const Members members(file, group, contents);
  const GroupId object = open_group(file, group);
  const AttributeReader attributes(object.get(), printable(group), path);
  if (attributes.text(encoded::kEncodingVersion) != encoded::kVersion) {
    throw Error(ErrorCode::unsupported, path + ": " + printable(group) +
                                            " has a version that this library does not know; "
                                            "install a newer one");
  }
  auto images = std::make_shared<EncodedImages>();
  images->name = group;
  const DatasetSummary& data = members.get(encoded::kData, 1);
  const DatasetSummary& offsets = members.get(encoded::kIndptr, 1);
  const DatasetSummary& sizes = members.get(encoded::kSizes, 2);
  images->num_bytes = (*data.shape)[0];
  images->rows = (*offsets.shape)[0] - 1;
  if (data.dtype != DType::uint8) throw members.damaged(data.describe() + " is not uint8");
  if (images->rows < 1 || images->num_bytes < 1) throw members.damaged("it has no images");
  if (*sizes.shape != Shape{images->rows, 2}) {
    throw members.damaged(std::to_string(images->rows) + " images have sizes " +
                          sizes.shape->to_string());
  }
  // The offsets of all are read.
  if (images->rows > kMaxSamples || !may_have_rows(file, images->rows)) {
    throw members.damaged(std::to_string(images->rows) +
                          " images are more than the file has bytes");
  }
  const auto most = [&](const char* name, std::int64_t limit) {
    const auto number = attributes.numbers<std::int64_t>(name, 1);
    if (!number || number->front() < 1 || number->front() > limit) {
      throw attributes.corrupt(name, "is no size of images");
    }
    return number->front();
  };
  images->max_height = most(encoded::kMaxHeight, image::kMaxSide);
  images->max_width = most(encoded::kMaxWidth, image::kMaxSide);
  images->max_pixels = most(encoded::kMaxPixels, images->max_height * images->max_width);

  images->data = open_array(file, data.name, *data.shape, DType::uint8);
  images->offsets = open_array(file, offsets.name, *offsets.shape, DType::int64);
  images->sizes = open_array(file, sizes.name, *sizes.shape, DType::int32);
  images->digests = members.open_digests(images->rows);
  std::array<std::int64_t, 2> ends{};
  const auto read_one = [&](std::int64_t row, std::int64_t& value) {
    read_rows(*images->offsets, row, 1, std::as_writable_bytes(std::span(&value, 1)), path);
  };
  read_one(0, ends[0]);
  read_one(images->rows, ends[1]);
  if (ends[0] != 0 || ends[1] != images->num_bytes) {
    throw members.damaged("its indptr goes from " + std::to_string(ends[0]) + " to " +
                          std::to_string(ends[1]) + ", not from 0 to its " +
                          std::to_string(images->num_bytes) + " bytes");
  }
  if (const DatasetSummary* const turned = members.find(encoded::kOrientations)) {
    if (turned->shape != Shape{images->rows} || turned->dtype != DType::uint8) {
      throw members.damaged(turned->describe() + " is not uint8 [" + std::to_string(images->rows) +
                            "]");
    }
    images->orientations.resize(static_cast<std::size_t>(images->rows));
    const auto array = open_array(file, turned->name, *turned->shape, DType::uint8);
    read_rows(*array, 0, images->rows, bytes_of(images->orientations), path);
    for (const std::uint8_t value : images->orientations) {
      if (value >= 1 && value <= image::Orientation::kMost) continue;
      throw members.damaged("there is no orientation " + std::to_string(value));
    }
  }
  if (decode) {
    if (!image::has_codecs()) {
      throw Error(ErrorCode::unsupported,
                  path + ": " + printable(group) +
                      " cannot be decoded, as this libchunkio was built without image codecs; "
                      "build it with libjpeg-turbo, libpng and libwebp",
                  "decode");
    }
    images->decoding.emplace(*decode);
  }
  return images;
}

EncodedImage read_encoded(const EncodedImages& images, std::int64_t row, const std::string& path) {
  std::array<std::int64_t, 2> ends{};
  read_rows(*images.offsets, row, 2, std::as_writable_bytes(std::span(ends)), path);
  images.check_offsets(row, ends, path);
  if (ends[0] == ends[1]) {
    throw Error(ErrorCode::corrupt_data, images.describe(row, path) +
                                             " is damaged: it has no bytes; copy or pack the file "
                                             "again");
  }
  std::array<std::int32_t, 2> size{};
  read_rows(*images.sizes, row, 1, std::as_writable_bytes(std::span(size)), path);
  if (size[0] < 1 || size[0] > images.max_height || size[1] < 1 || size[1] > images.max_width) {
    throw Error(ErrorCode::corrupt_data,
                images.describe(row, path) + " is damaged: it has " + std::to_string(size[0]) +
                    "x" + std::to_string(size[1]) + " pixels (sizes); copy or pack the file again");
  }
  EncodedImage image{.bytes = std::vector<std::byte>(static_cast<std::size_t>(ends[1] - ends[0])),
                     .height = size[0],
                     .width = size[1]};
  if (!images.orientations.empty()) {
    image.orientation = images.orientations[static_cast<std::size_t>(row)];
  }
  if (images.digests) {
    std::uint64_t digest = 0;
    read_rows(*images.digests, row, 1, std::as_writable_bytes(std::span(&digest, 1)), path);
    image.digest = digest;
  }
  read_rows(*images.data, ends[0], ends[1] - ends[0], image.bytes, path);
  return image;
}

void read_decoded(const EncodedImages& images, std::int64_t first, std::int64_t count,
                  std::span<std::byte> out, const std::string& path) {
  image::SampleDecoder decoder(*images.decoding);
  const auto sample_bytes = static_cast<std::size_t>(images.decoding->sample_bytes());
  check_request(images.rows, first, count, sample_bytes, out.size(), images.name, path);
  for (std::int64_t row = first; row < first + count; ++row) {
    const EncodedImage one = read_encoded(images, row, path);
    try {
      decoder.open(one.bytes, images.orientation(row), std::nullopt);
      images.check_size(decoder.stored());
      decoder.decode(
          out.subspan(static_cast<std::size_t>(row - first) * sample_bytes, sample_bytes));
    } catch (const Error& error) {
      throw images.named(error, row, path);
    }
  }
}

}  // namespace chunkio::h5
