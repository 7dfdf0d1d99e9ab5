/// chunkio::Normalizer.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <nanobind/stl/vector.h>

#include <chunkio/normalizer.hpp>

#include "bindings.hpp"
#include "keywords.hpp"
#include "output_pool.hpp"
#include "tensor.hpp"

namespace chunkio::python {
namespace {

class PyNormalizer {
 public:
  PyNormalizer(const DatasetInfo& info, NormalizeOptions options)
      : normalizer_(Normalizer(info, std::move(options))) {}

  PyTensor operator()(const Batch& batch, std::int64_t echo_pass) {
    const Normalizer& normalize = normalizer_.get("the Normalizer");
    const Shape shape = normalize.output_shape(batch.size());
    const std::size_t bytes = normalize.output_bytes(batch.size());
    const std::shared_ptr<std::byte> memory = pool_.take(bytes);
    {
      const nb::gil_scoped_release no_gil;
      normalize(batch, std::span(memory.get(), bytes), echo_pass);
    }
    return {memory, TensorView(memory.get(), normalize.options().dtype, shape), true};
  }

 private:
  OutputPool pool_;
  Owned<Normalizer> normalizer_;
};

}  // namespace

NormalizeOptions normalize_options(Keywords& keywords) {
  NormalizeOptions options;
  keywords.read("dtype", options.dtype)
      .read("layout", options.layout)
      .read("mean", options.mean)
      .read("std", options.std)
      .read("crop_height", options.crop_height)
      .read("crop_width", options.crop_width)
      .read("padding", options.padding)
      .read("random_crop", options.random_crop)
      .read("flip", options.flip)
      .read("seed", options.seed)
      .read("num_threads", options.num_threads);
  return options;
}

void bind_normalizer(nb::module_& module) {
  nb::class_<PyNormalizer>(module, "Normalizer")
      .def(
          "__init__",
          [](PyNormalizer* self, const PyDataset& dataset, const nb::kwargs& given) {
            Keywords keywords(given);
            NormalizeOptions options = normalize_options(keywords);
            keywords.require_none_left();
            new (self) PyNormalizer(dataset.info(), std::move(options));
          },
          nb::sig("def __init__(self, dataset: Dataset, **options: typing.Any) -> None"))
      .def("__call__", &PyNormalizer::operator(), nb::arg("batch"), nb::kw_only(),
           nb::arg("echo_pass") = 0,
           "The images of a batch of the same dataset, [B,C,H,W] or [B,H,W,C] by `layout`, in "
           "memory "
           "of their own.\n\n`echo_pass` says how often the batch was used before: other crops and "
           "flips for each. Raises ValueError for images of another shape.");
}

}  // namespace chunkio::python
