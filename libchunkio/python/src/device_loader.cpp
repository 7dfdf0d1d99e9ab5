/// chunkio::cuda::DeviceLoader.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/dlpack.hpp>

#include "bindings.hpp"
#include "keywords.hpp"
#include "tensor.hpp"

namespace chunkio::python {
namespace {

constexpr int kCuda = static_cast<int>(dlpack::DLDeviceType::cuda);

/// Lives as long as anything of a batch does.
using Token = std::shared_ptr<const char>;

/// Memory of a device batch, and the stream on which it is ready.
struct PyDeviceTensor {
  cuda::DeviceBatch batch;
  Token token;
  Tensor tensor;
  std::uintptr_t stream = 0;
};

/// DLPack's number of a stream: 1 is the legacy default stream, which CUDA calls 0.
std::uintptr_t dlpack_stream(std::uintptr_t stream) { return stream == 0 ? 1 : stream; }

nb::object to_dlpack_capsule(const PyDeviceTensor& given, const nb::object& stream,
                             const nb::object& max_version, const nb::object& dl_device,
                             const nb::object& copy) {
  if (!dl_device.is_none() &&
      !dl_device.equal(nb::make_tuple(kCuda, given.tensor.device().index))) {
    throw nb::buffer_error("this tensor is on its CUDA device; copy it elsewhere there");
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    throw nb::buffer_error("this tensor is not copied; copy it where it is taken");
  }
  // None is the legacy default stream, -1 asks for no synchronisation.
  const std::int64_t asked = stream.is_none() ? 1 : nb::cast<std::int64_t>(stream);
  if (asked != -1 &&
      dlpack_stream(static_cast<std::uintptr_t>(asked)) != dlpack_stream(given.stream)) {
    throw nb::buffer_error(
        "the batch is ready on the stream that was current when it was delivered; take it there");
  }
  if (!wants_versioned(max_version)) return to_capsule(to_dlpack_legacy(given, given.tensor));
  return to_capsule(to_dlpack(given, given.tensor));
}

/// A device batch with the stream that it was delivered on.
struct PyDeviceBatch {
  cuda::DeviceBatch batch;
  Token token;
  std::uintptr_t stream = 0;

  [[nodiscard]] PyDeviceTensor tensor(const Tensor& of) const { return {batch, token, of, stream}; }
};

PyTensor sample_ids(const PyDeviceBatch& batch) {
  const auto owner = std::make_shared<cuda::DeviceBatch>(batch.batch);
  return {owner, Tensor(owner->sample_ids().data(), DType::int64, Shape{owner->size()})};
}

cuda::DeviceOptions device_options(const nb::dict& given) {
  cuda::DeviceOptions options;
  Keywords keywords(given);
  keywords.read("device", options.device)
      .read("label_dtype", options.label_dtype)
      .read("echo_buffer_batches", options.echo_buffer_batches)
      .read("echo", options.echo)
      .read("max_held", options.max_held)
      .read("release_timeout_seconds", options.release_timeout_seconds)
      .read("device_timeout_seconds", options.device_timeout_seconds)
      .read("pin_memory", options.pin_memory)
      .read("resident", options.resident)
      .read("resident_share", options.resident_share);
  if (const nb::object dense = keywords.take("dense"); !dense.is_none()) {
    Keywords of_rows(nb::cast<nb::dict>(dense));
    options.dense = dense_options(of_rows);
    of_rows.require_none_left();
  } else {
    options.normalize = normalize_options(keywords);
  }
  keywords.require_none_left();
  options.on_wait = check_signals;
  return options;
}

class PyDeviceLoader : public LoaderInTurns<cuda::DeviceLoader> {
 public:
  PyDeviceLoader(const PyDataset& dataset, const nb::dict& loader, const nb::dict& device)
      : LoaderInTurns(make(dataset, loader_options(loader, dataset.info().num_samples),
                           device_options(device))) {}

  [[nodiscard]] std::optional<PyDeviceBatch> next(std::uintptr_t stream) {
    return with([&](cuda::DeviceLoader& loader) -> std::optional<PyDeviceBatch> {
      auto batch = loader.next(reinterpret_cast<cuda::Stream>(stream));
      if (!batch) return std::nullopt;
      const auto token = std::make_shared<const char>();
      std::erase_if(given_, [](const auto& given) { return given.expired(); });
      given_.emplace_back(token);
      return PyDeviceBatch{*std::move(batch), token, stream};
    });
  }
  /// Batches of which something is held.
  [[nodiscard]] std::int64_t num_held() {
    return with([&](cuda::DeviceLoader&) {
      return std::count_if(given_.begin(), given_.end(),
                           [](const auto& given) { return !given.expired(); });
    });
  }

 private:
  static cuda::DeviceLoader make(const PyDataset& dataset, LoaderOptions loader,
                                 cuda::DeviceOptions device) {
    // Its thread is not Python's, and never waits for the GIL.
    loader.on_wait = {};
    loader.memory.when_held = WhenHeld::wait;
    const Dataset& open = dataset.get();
    const WithoutGil no_gil;
    return cuda::DeviceLoader(Loader(open, std::move(loader)), std::move(device));
  }

  std::vector<std::weak_ptr<const char>> given_;
};

}  // namespace

void bind_device_loader(nb::module_& module) {
  nb::class_<PyDeviceTensor>(module, "DeviceTensor",
                             "Memory of a batch on a CUDA device, for torch.from_dlpack() on the "
                             "stream that the batch was delivered on.")
      .def_prop_ro(
          "shape", [](const PyDeviceTensor& tensor) { return shape_tuple(tensor.tensor.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const PyDeviceTensor& tensor) { return python_dtype(tensor.tensor.dtype()); },
          nb::sig("def dtype(self) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const PyDeviceTensor& tensor) {
            return nb::make_tuple(kCuda, tensor.tensor.device().index);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "__dlpack__", &to_dlpack_capsule, nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
          nb::arg("copy") = nb::none(),
          nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, "
                  "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None "
                  "= None) -> typing.Any"));
  nb::class_<PyDeviceBatch>(module, "DeviceBatch")
      .def_prop_ro("images",
                   [](const PyDeviceBatch& batch) { return batch.tensor(batch.batch.images()); })
      .def_prop_ro("leading",
                   [](const PyDeviceBatch& batch) { return batch.tensor(batch.batch.leading()); })
      .def_prop_ro("labels",
                   [](const PyDeviceBatch& batch) -> std::optional<PyDeviceTensor> {
                     const Tensor labels = batch.batch.labels();
                     if (labels.empty()) return std::nullopt;
                     return batch.tensor(labels);
                   })
      .def_prop_ro("sample_ids", &sample_ids)
      .def(
          "__getitem__",
          [](const PyDeviceBatch& batch, const std::string& name) {
            try {
              return batch.tensor(batch.batch[name]);
            } catch (const Error& error) {
              throw nb::key_error(error.what());
            }
          },
          nb::arg("name"))
      .def_prop_ro("size", [](const PyDeviceBatch& batch) { return batch.batch.size(); })
      .def_prop_ro("epoch", [](const PyDeviceBatch& batch) { return batch.batch.epoch(); })
      .def_prop_ro("step", [](const PyDeviceBatch& batch) { return batch.batch.step(); })
      .def_prop_ro("echo_pass", [](const PyDeviceBatch& batch) { return batch.batch.echo_pass(); });
  nb::class_<PyDeviceLoader> bound(module, "DeviceLoader", nb::is_weak_referenceable());
  bind_epochs(bound);
  bound
      .def(nb::init<const PyDataset&, const nb::dict&, const nb::dict&>(), nb::arg("dataset"),
           nb::arg("loader"), nb::arg("device"),
           nb::sig("def __init__(self, dataset: Dataset, loader: dict[str, typing.Any], device: "
                   "dict[str, typing.Any]) -> None"))
      .def("next", &PyDeviceLoader::next, nb::arg("stream"))
      .def(
          "state_at",
          [](PyDeviceLoader& self, std::int64_t epoch, std::int64_t step) {
            return self.with([&](cuda::DeviceLoader& loader) {
              return loader.state_at({epoch, step}, false);
            });
          },
          nb::arg("epoch"), nb::arg("step"))
      .def_prop_ro("num_held", &PyDeviceLoader::num_held, "Batches of which something is held.");
}

}  // namespace chunkio::python
