/// chunkio::Batch.
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "bindings.hpp"
#include "tensor.hpp"

namespace chunkio::python {
namespace {

PyTensor images(const Batch& batch) {
  if (batch.is_sparse()) {
    throw Error(ErrorCode::unsupported,
                "the batch has no images, but rows of a sparse matrix; take them as `leading`");
  }
  return tensor_of(batch, batch.images());
}

/// A Tensor, or of a CSR matrix a SparseTensor.
nb::object leading(const Batch& batch) {
  if (batch.is_sparse()) return nb::cast(PySparse(std::make_shared<Batch>(batch), batch.sparse()));
  return nb::cast(tensor_of(batch, batch.leading()));
}

std::optional<PyTensor> labels(const Batch& batch) {
  const Tensor view = batch.labels();
  if (view.empty()) return std::nullopt;
  return tensor_of(batch, view);
}

PyTensor sample_ids(const Batch& batch) {
  return tensor_of(batch, Tensor(batch.sample_ids().data(), DType::int64, Shape{batch.size()}));
}

nb::object field(const Batch& batch, const std::string& name) {
  try {
    return nb::cast(tensor_of(batch, batch[name]));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) return leading(batch);  // a CSR matrix
    throw nb::key_error(error.what());
  }
}

}  // namespace

void bind_batch(nb::module_& module) {
  nb::class_<Batch>(module, "Batch",
                    "A batch of a Loader. Its memory is valid, and never overwritten, while it or "
                    "one of its tensors exists, also after the Loader is gone.\n\n"
                    "`images, labels = batch` unpacks it: what leads, and the labels. May be used "
                    "on any thread.")
      .def_prop_ro("images", &images,
                   "uint8 [B,H,W,C] or [B,C,H,W], as the file has it (Dataset.layout). Raises "
                   "chunkio.Error where other numbers lead.")
      .def_prop_ro("leading", &leading, nb::sig("def leading(self) -> typing.Any"),
                   "The array that leads the dataset, [B,...]: the images, other numbers, or a "
                   "SparseTensor of the rows of a CSR matrix.")
      .def_prop_ro("labels", &labels,
                   "int64 [B], or uint8 [B,A] of a table of attributes; None without labels.")
      .def_prop_ro("sample_ids", &sample_ids, "int64 [B]: row numbers in the file.")
      .def("__getitem__", &field, nb::arg("name"),
           nb::sig("def __getitem__(self, name: str) -> typing.Any"),
           "\"images\", \"labels\", a field that `fields` of the Loader names, or the array that "
           "leads by its name in the file; [B,...]. Raises KeyError.")
      .def(
          "__iter__",
          [](const Batch& batch) {
            return nb::iter(nb::make_tuple(leading(batch), labels(batch)));
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[typing.Any]"))
      .def_prop_ro("size", &Batch::size,
                   "Samples in it: batch_size, or less at the end of an epoch and where damaged "
                   "ones were skipped.")
      .def_prop_ro("epoch", &Batch::epoch, "The epoch that it belongs to, from 0.")
      .def_prop_ro("step", &Batch::step, "Position in its epoch, from 0.")
      .def_prop_ro("copied", &Batch::copied,
                   "Whether it lies in memory of its own, since `max_held` batches were held.")
      .def("__repr__", [](const Batch& batch) {
        return "<chunkio.Batch " +
               (batch.is_sparse() ? Shape{batch.size(), batch.sparse().columns}
                                  : batch.leading().shape())
                   .to_string() +
               ", epoch " + std::to_string(batch.epoch()) + ", step " +
               std::to_string(batch.step()) + ">";
      });
}

}  // namespace chunkio::python
