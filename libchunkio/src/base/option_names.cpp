#include <array>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/option_names.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {
namespace {

using namespace std::string_view_literals;

// The names of all values by their numbers, which count from kFirst.
constexpr auto names(OrderMode) {
  return std::array{"chunk_shuffled"sv, "sequential"sv, "random"sv};
}
constexpr auto names(Uneven) { return std::array{"pad"sv, "drop"sv, "exact"sv}; }
constexpr auto names(SourceKind) {
  return std::array{"auto"sv, "scatter"sv, "hdf5"sv, "mapped"sv, "direct"sv};
}
constexpr auto names(Verify) {
  return std::array{"off"sv, "first_epoch"sv, "always"sv, "automatic"sv};
}
constexpr auto names(OnError) { return std::array{"raise"sv, "skip"sv}; }
constexpr auto names(Resident) { return std::array{"none"sv, "host"sv}; }
constexpr auto names(WhenHeld) { return std::array{"wait"sv, "copy"sv}; }
constexpr auto names(CropMode) { return std::array{"center"sv, "random_resized"sv, "whole"sv}; }
constexpr auto names(Layout) { return std::array{"nhwc"sv, "nchw"sv}; }
constexpr auto names(DType) {
  return std::array{"uint8"sv,  "int8"sv,  "uint16"sv,  "int16"sv,   "uint32"sv,  "int32"sv,
                    "uint64"sv, "int64"sv, "float32"sv, "float64"sv, "float16"sv, "bfloat16"sv};
}
constexpr auto names(cuda::PinMemory) { return std::array{"require"sv, "prefer"sv, "off"sv}; }
constexpr auto names(cuda::DeviceResident) { return std::array{"auto"sv, "off"sv, "require"sv}; }
constexpr auto names(Bottleneck) {
  return std::array{"none"sv, "disk"sv,     "decode"sv,  "copy"sv,  "plan"sv,
                    "bus"sv,  "consumer"sv, "buffers"sv, "kernel"sv};
}

constexpr auto names(ErrorCode) {
  return std::array{"invalid_argument"sv,  "not_found"sv,    "unsupported"sv,
                    "refused_by_policy"sv, "corrupt_data"sv, "digest_mismatch"sv,
                    "io_failed"sv,         "no_space"sv,     "output_exists"sv,
                    "hdf5_failed"sv,       "cuda_failed"sv,  "out_of_resources"sv,
                    "cancelled"sv,         "timed_out"sv};
}
constexpr auto names(MatrixAxis) { return std::array{"rows"sv, "columns"sv}; }
constexpr auto names(DeviceType) { return std::array{"cpu"sv, "cuda"sv}; }

/// The number of the first value.
template <class Option>
constexpr std::size_t kFirst = 0;
template <>
constexpr std::size_t kFirst<ErrorCode> = 1;
template <>
constexpr std::size_t kFirst<DeviceType> = 1;

template <class Option>
std::string_view name_of(Option option) noexcept {
  static constexpr auto kNames = names(Option{});
  const auto number = static_cast<std::size_t>(option) - kFirst<Option>;
  return number < kNames.size() ? kNames[number] : "unknown";
}

}  // namespace

template <class Option>
std::span<const Option> values_of() noexcept {
  static constexpr auto kValues = [] {
    std::array<Option, names(Option{}).size()> values{};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<Option>(i + kFirst<Option>);
    return values;
  }();
  return kValues;
}
template std::span<const OrderMode> values_of() noexcept;
template std::span<const Uneven> values_of() noexcept;
template std::span<const SourceKind> values_of() noexcept;
template std::span<const Verify> values_of() noexcept;
template std::span<const OnError> values_of() noexcept;
template std::span<const Resident> values_of() noexcept;
template std::span<const WhenHeld> values_of() noexcept;
template std::span<const Bottleneck> values_of() noexcept;
template std::span<const ErrorCode> values_of() noexcept;
template std::span<const DeviceType> values_of() noexcept;
template std::span<const CropMode> values_of() noexcept;
template std::span<const Layout> values_of() noexcept;
template std::span<const MatrixAxis> values_of() noexcept;
template std::span<const DType> values_of() noexcept;
template std::span<const cuda::PinMemory> values_of() noexcept;
template std::span<const cuda::DeviceResident> values_of() noexcept;

std::string_view to_string(OrderMode mode) noexcept { return name_of(mode); }
std::string_view to_string(Uneven uneven) noexcept { return name_of(uneven); }
std::string_view to_string(SourceKind kind) noexcept { return name_of(kind); }
std::string_view to_string(Verify verify) noexcept { return name_of(verify); }
std::string_view to_string(OnError on_error) noexcept { return name_of(on_error); }
std::string_view to_string(Resident resident) noexcept { return name_of(resident); }
std::string_view to_string(WhenHeld when_held) noexcept { return name_of(when_held); }
std::string_view to_string(CropMode mode) noexcept { return name_of(mode); }
std::string_view to_string(Layout layout) noexcept { return name_of(layout); }
std::string_view to_string(MatrixAxis axis) noexcept { return name_of(axis); }
std::string_view to_string(DType dtype) noexcept { return name_of(dtype); }
std::string_view cuda::to_string(PinMemory pin_memory) noexcept { return name_of(pin_memory); }
std::string_view cuda::to_string(DeviceResident resident) noexcept { return name_of(resident); }
std::string_view to_string(ErrorCode code) noexcept { return name_of(code); }
std::string_view to_string(DeviceType type) noexcept { return name_of(type); }
std::string_view to_string(Bottleneck bottleneck) noexcept { return name_of(bottleneck); }

}  // namespace chunkio
