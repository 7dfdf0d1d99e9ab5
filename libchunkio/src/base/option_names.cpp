#include <array>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/option_names.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {
namespace {

/// Enumerators that are numbered from 0 up to `last`.
template <class Option, Option last>
constexpr auto numbered() {
  std::array<Option, static_cast<std::size_t>(last) + 1> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Option>(i);
  return values;
}

template <class Option, Option last>
constexpr auto kNumbered = numbered<Option, last>();

}  // namespace

template <>
std::span<const OrderMode> values_of() noexcept {
  return kNumbered<OrderMode, OrderMode::random>;
}
template <>
std::span<const Uneven> values_of() noexcept {
  return kNumbered<Uneven, Uneven::exact>;
}
template <>
std::span<const SourceKind> values_of() noexcept {
  return kNumbered<SourceKind, SourceKind::direct>;
}
template <>
std::span<const Verify> values_of() noexcept {
  return kNumbered<Verify, Verify::always>;
}
template <>
std::span<const OnError> values_of() noexcept {
  return kNumbered<OnError, OnError::skip>;
}
template <>
std::span<const Resident> values_of() noexcept {
  return kNumbered<Resident, Resident::host>;
}
template <>
std::span<const WhenHeld> values_of() noexcept {
  return kNumbered<WhenHeld, WhenHeld::copy>;
}
template <>
std::span<const Layout> values_of() noexcept {
  return kNumbered<Layout, Layout::nchw>;
}
template <>
std::span<const DType> values_of() noexcept {
  return kNumbered<DType, DType::bfloat16>;
}
template <>
std::span<const cuda::PinMemory> values_of() noexcept {
  return kNumbered<cuda::PinMemory, cuda::PinMemory::off>;
}
template <>
std::span<const cuda::DeviceResident> values_of() noexcept {
  return kNumbered<cuda::DeviceResident, cuda::DeviceResident::require>;
}

std::string_view to_string(SourceKind kind) noexcept {
  switch (kind) {
    case SourceKind::automatic:
      return "auto";
    case SourceKind::scatter:
      return "scatter";
    case SourceKind::hdf5:
      return "hdf5";
    case SourceKind::mapped:
      return "mapped";
    case SourceKind::direct:
      return "direct";
  }
  return "unknown";
}

std::string_view to_string(Verify verify) noexcept {
  switch (verify) {
    case Verify::off:
      return "off";
    case Verify::first_epoch:
      return "first_epoch";
    case Verify::always:
      return "always";
  }
  return "unknown";
}

std::string_view to_string(OnError on_error) noexcept {
  switch (on_error) {
    case OnError::raise:
      return "raise";
    case OnError::skip:
      return "skip";
  }
  return "unknown";
}

std::string_view to_string(Resident resident) noexcept {
  switch (resident) {
    case Resident::none:
      return "none";
    case Resident::host:
      return "host";
  }
  return "unknown";
}

std::string_view to_string(WhenHeld when_held) noexcept {
  switch (when_held) {
    case WhenHeld::raise:
      return "raise";
    case WhenHeld::copy:
      return "copy";
  }
  return "unknown";
}

std::string_view cuda::to_string(PinMemory pin_memory) noexcept {
  switch (pin_memory) {
    case PinMemory::require:
      return "require";
    case PinMemory::prefer:
      return "prefer";
    case PinMemory::off:
      return "off";
  }
  return "unknown";
}

std::string_view cuda::to_string(DeviceResident resident) noexcept {
  switch (resident) {
    case DeviceResident::automatic:
      return "auto";
    case DeviceResident::off:
      return "off";
    case DeviceResident::require:
      return "require";
  }
  return "unknown";
}

std::string_view to_string(Bound bound) noexcept {
  switch (bound) {
    case Bound::none:
      return "none";
    case Bound::disk:
      return "disk";
    case Bound::decode:
      return "decode";
    case Bound::copy:
      return "copy";
    case Bound::plan:
      return "plan";
    case Bound::bus:
      return "bus";
    case Bound::consumer:
      return "consumer";
    case Bound::buffers:
      return "buffers";
    case Bound::kernel:
      return "kernel";
  }
  return "unknown";
}

}  // namespace chunkio
