#include "tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace chunkio::python {
namespace {

constexpr int kCpu = static_cast<int>(dlpack::DLDeviceType::cpu);

/// As NumPy writes it: "|u1", "<f4".
std::string typestr(DType dtype) {
  const std::size_t bytes = size_of(dtype);
  char kind = 'f';
  switch (dlpack::data_type(dtype).code) {
    case dlpack::DLDataTypeCode::signed_integer:
      kind = 'i';
      break;
    case dlpack::DLDataTypeCode::unsigned_integer:
      kind = 'u';
      break;
    case dlpack::DLDataTypeCode::floating_point:
      break;
    case dlpack::DLDataTypeCode::bfloat:
      throw nb::attribute_error("NumPy has no bfloat16; take the tensor through DLPack");
  }
  return (bytes == 1 ? "|" : "<") + (kind + std::to_string(bytes));
}

nb::dict array_interface(const PyTensor& tensor) {
  nb::dict description;
  description["version"] = 3;
  description["shape"] = shape_tuple(tensor.view.shape());
  description["typestr"] = typestr(tensor.view.dtype());
  // NumPy before 2.1 takes no null pointer, not even for no elements.
  static constexpr std::byte kNothing{};
  const std::byte* const data = tensor.view.data() != nullptr ? tensor.view.data() : &kNothing;
  description["data"] =
      nb::make_tuple(reinterpret_cast<std::uintptr_t>(data), tensor.view.read_only());
  return description;
}

PyTensor copy_of(const PyTensor& tensor) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(
      tensor.view.data(), tensor.view.data() + tensor.view.size_bytes());
  return {bytes, Tensor::writable(bytes->data(), tensor.view.dtype(), tensor.view.shape())};
}

nb::object to_dlpack_capsule(const PyTensor& given, const nb::object& stream,
                             const nb::object& max_version, const nb::object& dl_device,
                             const nb::object& copy) {
  static_cast<void>(stream);  // host memory is ready
  if (!dl_device.is_none() && !dl_device.equal(nb::make_tuple(kCpu, 0))) {
    throw nb::buffer_error("this tensor is in host memory; copy it to the device there");
  }
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  const PyTensor tensor = copies ? copy_of(given) : given;
  if (!wants_versioned(max_version)) {
    return to_capsule(to_dlpack_legacy(tensor.owner, tensor.view));
  }
  auto managed = to_dlpack(tensor.owner, tensor.view);
  constexpr std::uint64_t kIsCopied = 2;
  if (copies) managed->flags |= kIsCopied;
  return to_capsule(std::move(managed));
}

}  // namespace

nb::tuple shape_tuple(const Shape& shape) {
  nb::list dims;
  for (const std::int64_t dim : shape.dims()) dims.append(dim);
  return nb::tuple(dims);
}

nb::object python_dtype(DType dtype) {
  const nb::object name = nb::cast(std::string(to_string(dtype)));
  if (dtype == DType::bfloat16) return name;
  return nb::module_::import_("numpy").attr("dtype")(name);
}

bool wants_versioned(const nb::object& max_version) {
  return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

void bind_tensor(nb::module_& module) {
  nb::class_<PyTensor>(module, "Tensor",
                       "Memory of a batch, without a copy: numpy.asarray(tensor), "
                       "torch.from_dlpack(tensor), jax.dlpack.from_dlpack(tensor).\n\n"
                       "Row-major. Valid while it, or an array made of it, exists; what belongs to "
                       "a batch is not to be written to. May be used on any thread.")
      .def_prop_ro(
          "shape", [](const PyTensor& tensor) { return shape_tuple(tensor.view.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Lengths of its axes.")
      .def_prop_ro(
          "ndim", [](const PyTensor& tensor) { return tensor.view.shape().rank(); },
          "Number of its axes.")
      .def_prop_ro(
          "dtype", [](const PyTensor& tensor) { return python_dtype(tensor.view.dtype()); },
          nb::sig("def dtype(self) -> typing.Any"),
          "A numpy.dtype; the name 'bfloat16' of what NumPy does not have.")
      .def_prop_ro(
          "nbytes", [](const PyTensor& tensor) { return tensor.view.size_bytes(); },
          "Bytes of all elements.")
      .def("__len__",
           [](const PyTensor& tensor) {
             return tensor.view.shape().rank() == 0 ? 0 : tensor.view.shape()[0];
           })
      .def("__repr__",
           [](const PyTensor& tensor) {
             return "<chunkio.Tensor " + std::string(to_string(tensor.view.dtype())) + " " +
                    tensor.view.shape().to_string() + ">";
           })
      .def_prop_ro("__array_interface__", &array_interface,
                   nb::sig("def __array_interface__(self) -> dict[str, typing.Any]"))
      .def(
          "__dlpack_device__", [](const PyTensor&) { return nb::make_tuple(kCpu, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "__dlpack__", &to_dlpack_capsule, nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
          nb::arg("copy") = nb::none(),
          nb::sig(
              "def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | "
              "None = None, "
              "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"));

  nb::class_<PySparse>(
      module, "SparseTensor",
      "Rows of a CSR matrix, without a copy: those of row i are indptr[i] to "
      "indptr[i + 1] of `indices` (columns) and `values`. May be used on any thread.")
      .def_ro("indptr", &PySparse::indptr, "int32 or int64 [B + 1], as `indices`.")
      .def_ro("indices", &PySparse::indices, "int32 or int64 [n]: the column of each value.")
      .def_ro("values", &PySparse::values, "[n], of the file's dtype.")
      .def_prop_ro(
          "shape",
          [](const PySparse& rows) { return nb::make_tuple(rows.view().rows(), rows.columns); },
          nb::sig("def shape(self) -> tuple[int, int]"), "Rows and columns.")
      .def("__len__", [](const PySparse& rows) { return rows.view().rows(); })
      .def("__repr__",
           [](const PySparse& rows) {
             return "<chunkio.SparseTensor " + std::string(to_string(rows.values.view.dtype())) +
                    " " + Shape{rows.view().rows(), rows.columns}.to_string() + ", " +
                    std::to_string(rows.values.view.shape().num_elements()) + " values>";
           })
      .def(
          "to_scipy",
          [](const PySparse& rows) {
            const nb::object asarray = nb::module_::import_("numpy").attr("asarray");
            const nb::tuple parts =
                nb::make_tuple(asarray(rows.values), asarray(rows.indices), asarray(rows.indptr));
            return nb::module_::import_("scipy.sparse")
                .attr("csr_matrix")(
                    parts, nb::arg("shape") = nb::make_tuple(rows.view().rows(), rows.columns),
                    nb::arg("copy") = false);
          },
          nb::sig("def to_scipy(self) -> typing.Any"),
          "A scipy.sparse.csr_matrix over the same memory.")
      .def(
          "to_torch",
          [](const PySparse& rows) {
            const nb::module_ torch = nb::module_::import_("torch");
            const nb::object take = torch.attr("from_dlpack");
            return torch.attr("sparse_csr_tensor")(
                take(rows.indptr), take(rows.indices), take(rows.values),
                nb::arg("size") = nb::make_tuple(rows.view().rows(), rows.columns));
          },
          nb::sig("def to_torch(self) -> typing.Any"),
          "A torch.Tensor of layout torch.sparse_csr over the same memory.");
}

}  // namespace chunkio::python
