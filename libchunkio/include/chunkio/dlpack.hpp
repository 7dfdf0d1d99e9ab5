/// Hands batches to other frameworks through DLPack, without a copy.
///
///     auto images = chunkio::to_dlpack(batch, batch["images"]);
///     consumer(images.release());  // The consumer calls the deleter when it is done.
///
/// Opt-in: not part of <chunkio/chunkio.hpp>. Data flow: Batch or DeviceBatch -> managed tensor ->
/// NumPy, PyTorch, JAX, CuPy, ... A managed tensor holds a lease of its batch until its deleter is
/// called, which any thread may do, also when the loader is gone. Until then the lease counts for
/// max_held. Those of a Batch are read-only, those of a DeviceBatch may be written. They name no
/// stream: read device memory on the stream that was given to DeviceLoader::next(), or on one that
/// was named with DeviceBatch::use_on().
///
/// The types in chunkio::dlpack have the binary layout of those of the same name in
/// <dlpack/dlpack.h>, which may be included as well: reinterpret_cast one pointer to the other. In
/// Python the pointer goes into a PyCapsule called "dltensor_versioned" or, for to_dlpack_legacy(),
/// "dltensor".
///
/// All functions may be called concurrently. None of them blocks or does I/O.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <chunkio/error.hpp>
#include <chunkio/tensor.hpp>

/// The binary interface of DLPack 1.x (https://dmlc.github.io/dlpack/latest/c_api.html). Values and
/// layouts are DLPack's: never renumber, never reorder.
namespace chunkio::dlpack {

/// What managed tensors say they are. Nothing newer than 1.0 is used, so that every consumer of 1.x
/// takes them; strides are always given, as 1.2 demands.
struct DLPackVersion {
  std::uint32_t major = 1;
  std::uint32_t minor = 0;
};

enum class DLDeviceType : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,      ///< Page-locked host memory.
  cuda_managed = 13,  ///< Unified memory.
};

struct DLDevice {
  DLDeviceType device_type = DLDeviceType::cpu;
  std::int32_t device_id = 0;  ///< 0 for host and unified memory.
};

enum class DLDataTypeCode : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating_point = 2,
  bfloat = 4,
};

struct DLDataType {
  DLDataTypeCode code = DLDataTypeCode::unsigned_integer;
  std::uint8_t bits = 8;
  std::uint16_t lanes = 1;

  friend bool operator==(const DLDataType&, const DLDataType&) = default;
};

struct DLTensor {
  void* data = nullptr;  ///< Null if there are no elements.
  DLDevice device = {};
  std::int32_t ndim = 0;
  DLDataType dtype = {};
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< In elements.
  std::uint64_t byte_offset = 0;
};

/// The form before DLPack 1.0. It has no way to say that memory is read-only.
struct DLManagedTensor {
  DLTensor dl_tensor = {};
  void* manager_ctx = nullptr;
  /// Ends the tensor, `self` included. Called once.
  void (*deleter)(DLManagedTensor* self) = nullptr;
};

struct DLManagedTensorVersioned {
  DLPackVersion version = {};
  void* manager_ctx = nullptr;
  /// Ends the tensor, `self` included. Called once.
  void (*deleter)(DLManagedTensorVersioned* self) = nullptr;
  std::uint64_t flags = 0;
  DLTensor dl_tensor = {};
};

/// Bit of DLManagedTensorVersioned::flags: the consumer must not write.
inline constexpr std::uint64_t kReadOnly = 1;

// What consumers were compiled for, where pointers have 64 bits.
static_assert(sizeof(DLPackVersion) == 8 && sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4);
static_assert(sizeof(void*) != 8 ||
              (offsetof(DLTensor, data) == 0 && offsetof(DLTensor, device) == 8 &&
               offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
               offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
               offsetof(DLTensor, byte_offset) == 40 && sizeof(DLTensor) == 48));
static_assert(sizeof(void*) != 8 ||
              (offsetof(DLManagedTensor, dl_tensor) == 0 &&
               offsetof(DLManagedTensor, manager_ctx) == 48 &&
               offsetof(DLManagedTensor, deleter) == 56 && sizeof(DLManagedTensor) == 64));
static_assert(sizeof(void*) != 8 || (offsetof(DLManagedTensorVersioned, version) == 0 &&
                                     offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
                                     offsetof(DLManagedTensorVersioned, deleter) == 16 &&
                                     offsetof(DLManagedTensorVersioned, flags) == 24 &&
                                     offsetof(DLManagedTensorVersioned, dl_tensor) == 32 &&
                                     sizeof(DLManagedTensorVersioned) == 80));

/// Calls the deleter that a managed tensor carries.
struct CallDeleter {
  template <class Managed>
  void operator()(Managed* tensor) const noexcept {
    tensor->deleter(tensor);
  }
};

/// A managed tensor until a consumer takes it with release(), and with it the duty to call the
/// deleter.
using ManagedTensor = std::unique_ptr<DLManagedTensorVersioned, CallDeleter>;
using LegacyManagedTensor = std::unique_ptr<DLManagedTensor, CallDeleter>;

/// The DLDataType of an element type.
/// \throws Error unsupported for a value that is no DType.
inline DLDataType data_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
      return {.code = DLDataTypeCode::unsigned_integer, .bits = bits};
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      return {.code = DLDataTypeCode::signed_integer, .bits = bits};
    case DType::float16:
    case DType::float32:
    case DType::float64:
      return {.code = DLDataTypeCode::floating_point, .bits = bits};
    case DType::bfloat16:
      return {.code = DLDataTypeCode::bfloat, .bits = bits};
  }
  throw Error(ErrorCode::unsupported,
              "DLPack has no element type for DType " + std::to_string(static_cast<int>(dtype)));
}

}  // namespace chunkio::dlpack

namespace chunkio::internal {

/// A managed tensor with all that it points to, in one allocation that its deleter frees.
template <class Managed, class Owner>
struct ExportedTensor {
  explicit ExportedTensor(Owner&& moved) : owner(std::move(moved)) {}

  Managed managed = {};
  std::array<std::int64_t, Shape::kMaxRank> shape = {};
  std::array<std::int64_t, Shape::kMaxRank> strides = {};
  Owner owner;
};

template <class Managed, class Owner>
std::unique_ptr<Managed, dlpack::CallDeleter> export_tensor(Owner&& owner, const Tensor& tensor) {
  static_assert(std::is_nothrow_destructible_v<Owner>, "a deleter has no way to report an error");
  internal::require_exportable(owner, tensor);
  const bool has_elements = tensor.shape().num_elements() > 0;
  auto exported = std::make_unique<ExportedTensor<Managed, Owner>>(std::move(owner));
  std::copy(tensor.shape().dims().begin(), tensor.shape().dims().end(), exported->shape.begin());
  exported->strides = tensor.strides();
  Managed& managed = exported->managed;
  managed.dl_tensor = {
      // DLPack has no pointer to const; kReadOnly stands for it.
      .data = has_elements ? const_cast<std::byte*>(tensor.data()) : nullptr,
      .device = {.device_type = static_cast<dlpack::DLDeviceType>(tensor.device().type),
                 .device_id = tensor.device().index},
      .ndim = static_cast<std::int32_t>(tensor.shape().rank()),
      .dtype = dlpack::data_type(tensor.dtype()),
      .shape = exported->shape.data(),
      .strides = exported->strides.data(),
  };
  if constexpr (std::is_same_v<Managed, dlpack::DLManagedTensorVersioned>) {
    managed.flags = tensor.read_only() ? dlpack::kReadOnly : 0;
  }
  managed.deleter = [](Managed* self) noexcept {
    delete static_cast<ExportedTensor<Managed, Owner>*>(self->manager_ctx);
  };
  managed.manager_ctx = exported.release();
  return std::unique_ptr<Managed, dlpack::CallDeleter>(&managed);
}

}  // namespace chunkio::internal

namespace chunkio {

/// Exports `tensor`, any shape and any DType, as a managed tensor (row-major, strides given,
/// byte_offset 0), which is read-only if the tensor is.
///
/// \param owner  keeps the memory valid and unchanged while it exists: the Batch or DeviceBatch
///               of the tensor, or anything of the caller's. It is moved into the managed tensor
///               and destroyed by the deleter, on the thread that calls it.
///
/// A batch of no rows becomes a tensor of no elements. DLPack asks for data aligned to 256 bytes
/// and no producer or consumer that we know keeps to that: `tensor.data()` is passed on as it is.
/// Images of a Batch are aligned to 4096 bytes, everything else to 64.
/// \throws Error invalid_argument (the tensor is empty, as that of labels which a file does not
///         have, or does not lie in the batch), out_of_resources (the dimensions multiply to more
///         than 63 bits), unsupported (no such DType), std::bad_alloc. `owner` is destroyed then.
template <class Owner>
[[nodiscard]] dlpack::ManagedTensor to_dlpack(Owner owner, const Tensor& tensor) {
  return internal::export_tensor<dlpack::DLManagedTensorVersioned>(std::move(owner), tensor);
}

/// The same for consumers older than DLPack 1.0. They are not told that the memory of a Batch is
/// read-only, but it is: a batch is a shared lease, and writing changes what others read.
/// \throws Error as to_dlpack().
template <class Owner>
[[nodiscard]] dlpack::LegacyManagedTensor to_dlpack_legacy(Owner owner, const Tensor& tensor) {
  return internal::export_tensor<dlpack::DLManagedTensor>(std::move(owner), tensor);
}

}  // namespace chunkio
