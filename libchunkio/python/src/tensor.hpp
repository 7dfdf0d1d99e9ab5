/// Memory of a batch as Python sees it: NumPy's array interface and DLPack, both without a copy.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include <chunkio/dlpack.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio::python {

/// A tensor in host memory, which its owner keeps.
struct PyTensor {
  std::shared_ptr<const void> owner;
  Tensor view;
};

[[nodiscard]] inline PyTensor tensor_of(const Batch& batch, const Tensor& view) {
  return {std::make_shared<Batch>(batch), view};
}

/// Rows of a CSR matrix in host memory.
struct PySparse {
  PyTensor indptr;
  PyTensor indices;
  PyTensor values;
  std::int64_t columns = 0;

  PySparse(const std::shared_ptr<const void>& owner, const SparseTensor& view)
      : indptr{owner, view.indptr},
        indices{owner, view.indices},
        values{owner, view.values},
        columns(view.columns) {}
  [[nodiscard]] SparseTensor view() const {
    return {indptr.view, indices.view, values.view, columns};
  }
};

/// Hands a managed tensor to Python. The framework that takes it renames the capsule; else it is
/// freed with it.
template <class Managed>
[[nodiscard]] nanobind::object to_capsule(
    std::unique_ptr<Managed, chunkio::dlpack::CallDeleter> tensor) {
  constexpr bool kVersioned = std::is_same_v<Managed, chunkio::dlpack::DLManagedTensorVersioned>;
  static constexpr const char* kName = kVersioned ? "dltensor_versioned" : "dltensor";
  PyObject* const capsule = PyCapsule_New(tensor.get(), kName, [](PyObject* self) {
    if (PyCapsule_IsValid(self, kName) == 0) return;  // taken
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(self, kName));
    managed->deleter(managed);
  });
  if (capsule == nullptr) throw nanobind::python_error();
  static_cast<void>(tensor.release());
  return nanobind::steal(capsule);
}

/// numpy.dtype, which other libraries ask for by this attribute; bfloat16 by its name.
[[nodiscard]] nanobind::object python_dtype(DType dtype);

/// Whether `max_version` of __dlpack__ asks for DLPack 1.x.
[[nodiscard]] bool wants_versioned(const nanobind::object& max_version);

}  // namespace chunkio::python
