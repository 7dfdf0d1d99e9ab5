/// chunkio::Dataset.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

#include "bindings.hpp"
#include "keywords.hpp"
#include "tensor.hpp"

namespace chunkio::python {
namespace {

Dataset open(const std::string& path, const OpenOptions& options) {
  const WithoutGil no_gil;
  return Dataset::open(path, options);
}

DecodeOptions decode_options(const nb::dict& given) {
  DecodeOptions options;
  Keywords keywords(given);
  keywords.read("height", options.height)
      .read("width", options.width)
      .read("crop", options.crop)
      .read("shorter_side", options.shorter_side)
      .read("gray", options.gray)
      .read("exact", options.exact);
  options.ranges = resized_crop_ranges(keywords);
  keywords.require_none_left();
  return options;
}

OpenOptions open_options(const nb::kwargs& given) {
  OpenOptions options;
  Keywords keywords(given);
  keywords.read("images", options.images)
      .read("labels", options.labels)
      .read("columns_as_rows", options.columns_as_rows)
      .read("allow_external", options.allow_external)
      .read("probe", options.probe)
      .read("remote_requests", options.remote.requests)
      .read("remote_timeout", options.remote.timeout_seconds)
      .read("remote_cache", options.remote.cache)
      .read("remote_cache_bytes", options.remote.cache_bytes)
      .read("remote_index", options.remote.index);
  if (const nb::object layout = keywords.take("layout"); !layout.is_none()) {
    nb::dict one;
    one["layout"] = layout;
    options.layout.emplace();
    Keywords(one).read("layout", *options.layout);
  }
  if (const nb::object decode = keywords.take("decode"); !decode.is_none()) {
    options.decode = decode_options(nb::cast<nb::dict>(decode));
  }
  keywords.require_none_left();
  return options;
}

/// Rows [first, first + count) as a tensor of their own.
template <class Read>
PyTensor read_rows(std::int64_t count, DType dtype, const Shape& row_shape, const Read& read) {
  const Shape shape = row_shape.with_first_axis(count);
  const auto bytes = std::make_shared<std::vector<std::byte>>(
      static_cast<std::size_t>(shape.num_elements()) * size_of(dtype));
  if (count > 0) {
    const WithoutGil no_gil;
    read(std::span<std::byte>(*bytes));
  }
  return {bytes, Tensor::writable(bytes->data(), dtype, shape)};
}

PyTensor read_field(const PyDataset& dataset, const std::string& name, std::int64_t first,
                    std::int64_t count) {
  const Dataset& open = dataset.get();
  const std::optional<FieldInfo> field = open.find_field(name);
  if (!field) {
    throw Error(ErrorCode::not_found, open.info().path + " has no field '" + name + "'");
  }
  if (open.info().sparse && name == open.info().leading.name) {
    throw Error(ErrorCode::unsupported, open.info().path + ": " + name +
                                            " is a sparse matrix; read its rows with "
                                            "dataset[first:last]");
  }
  return read_rows(count, field->dtype, field->row_shape,
                   [&](std::span<std::byte> out) { open.read_field(name, first, count, out); });
}

nb::bytes read_encoded(const PyDataset& dataset, std::int64_t row) {
  EncodedImage image;
  {
    const WithoutGil no_gil;
    image = dataset.get().read_encoded(row);
  }
  return nb::bytes(image.bytes.data(), image.bytes.size());
}

PySparse read_sparse(const PyDataset& dataset, std::int64_t first, std::int64_t count) {
  const WithoutGil no_gil;
  const SparseRows rows = dataset.get().read_sparse(first, count);
  return {rows.memory, rows.tensor};
}

std::string info_json(const PyDataset& dataset) {
  const Dataset& open = dataset.get();
  const WithoutGil no_gil;
  return to_json(inspect(open));
}

}  // namespace

PyDataset::PyDataset(const std::string& path, const OpenOptions& options)
    : dataset(open(path, options)), facts(&get().info()) {}

void bind_dataset(nb::module_& module) {
  nb::class_<PyDataset>(module, "Dataset")
      .def(
          "__init__",
          [](PyDataset* self, const std::string& path, const nb::kwargs& keywords) {
            new (self) PyDataset(path, open_options(keywords));
          },
          nb::sig("def __init__(self, path: str, **options: typing.Any) -> None"))
      .def(
          "__len__", [](const PyDataset& dataset) { return dataset.info().num_samples; },
          "Samples in it.")
      .def_prop_ro(
          "path", [](const PyDataset& dataset) { return dataset.info().path; },
          "The name that it was opened by.")
      .def_prop_ro(
          "shape",
          [](const PyDataset& dataset) {
            const DatasetInfo& info = dataset.info();
            return shape_tuple(info.sample_shape().with_first_axis(info.num_samples));
          },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "Of the array that leads. Of images: (N, H, W, C), or (N, C, H, W) where `layout` is "
          "\"nchw\".")
      .def_prop_ro(
          "dtype",
          [](const PyDataset& dataset) { return python_dtype(dataset.info().leading.dtype); },
          nb::sig("def dtype(self) -> typing.Any"), "Of the array that leads; of images uint8.")
      .def_prop_ro(
          "leading_name", [](const PyDataset& dataset) { return dataset.info().leading.name; },
          "Name of the array that leads: of the images, or of other numbers.")
      .def_prop_ro(
          "layout",
          [](const PyDataset& dataset) -> std::optional<std::string> {
            if (!dataset.info().has_images()) return std::nullopt;
            return std::string(to_string(dataset.info().layout));
          },
          "Axis order of the images: \"nhwc\" or \"nchw\"; None where other numbers lead.")
      .def_prop_ro(
          "class_names", [](const PyDataset& dataset) { return dataset.info().class_names; },
          "Names of the labels 0, 1, ...; empty if the file names none.")
      .def(
          "categories",
          [](const PyDataset& dataset, const std::string& field) {
            const WithoutGil no_gil;
            return dataset.get().categories(field);
          },
          nb::arg("field"),
          "The texts that the numbers of a field stand for, from 0 on, as anndata has them: of "
          "\"obs/kind/codes\" those are \"obs/kind/categories\"; -1 stands for none. None: they "
          "are just numbers.\n\n"
          "Raises LookupError if there is no such field, chunkio.Error if several files number "
          "them differently.")
      .def_prop_ro(
          "attribute_names",
          [](const PyDataset& dataset) { return dataset.info().attribute_names; },
          "Names of the columns of labels that are a table of attributes; else empty.")
      .def_prop_ro(
          "mean",
          [](const PyDataset& dataset) {
            const auto& found = dataset.info().statistics;
            return found ? std::optional(found->mean) : std::nullopt;
          },
          "Of value / 255, a number for each channel; None if the file does not hold it.")
      .def_prop_ro(
          "std",
          [](const PyDataset& dataset) {
            const auto& found = dataset.info().statistics;
            return found ? std::optional(found->std) : std::nullopt;
          },
          "Standard deviation of value / 255, a number for each channel; None if the file does "
          "not hold it.")
      .def_prop_ro(
          "field_names",
          [](const PyDataset& dataset) {
            std::vector<std::string> names;
            for (const FieldInfo& field : dataset.info().fields) {
              names.push_back(field.name);
            }
            return names;
          },
          "Further datasets that run parallel, which `fields` of a Loader delivers.")
      .def_prop_ro(
          "label_name",
          [](const PyDataset& dataset) {
            const auto& labels = dataset.info().labels;
            return labels ? std::optional(labels->name) : std::nullopt;
          },
          "Name of the label dataset; None without labels.")
      .def_prop_ro(
          "sparse", [](const PyDataset& dataset) { return dataset.info().sparse.has_value(); },
          "Whether a CSR matrix leads.")
      .def_prop_ro(
          "encoded", [](const PyDataset& dataset) { return dataset.info().encoded.has_value(); },
          "Whether encoded images lead.")
      .def("read_encoded", &read_encoded, nb::arg("row"),
           "The bytes of an encoded image, as its file had them: JPEG, PNG or WebP. Raises "
           "ValueError if there is no such row.")
      .def("_read_sparse", &read_sparse, nb::arg("first"), nb::arg("count"))
      .def("_read_field", &read_field, nb::arg("name"), nb::arg("first"), nb::arg("count"))
      .def("_info_json", &info_json);
}

}  // namespace chunkio::python
