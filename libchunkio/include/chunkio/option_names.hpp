/// The values of each enumeration by name: for programs that read options from text.
///
///     chunkio::LoaderOptions options;
///     options.order.mode = chunkio::from_string<chunkio::OrderMode>("sequential");
///     for (const chunkio::OrderMode mode : chunkio::values_of<chunkio::OrderMode>()) {
///       std::cout << to_string(mode) << '\n';
///     }
///
/// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <chunkio/error.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// All values, in the order of their numbers. For every enumeration of the library but those of
/// DLPack: Bottleneck, CropMode, DeviceType, DType, ErrorCode, Layout, MatrixAxis, OnError,
/// OrderMode, Resident, SourceKind, Uneven, Verify, WhenHeld, cuda::DeviceResident and
/// cuda::PinMemory.
template <class Option>
[[nodiscard]] CHUNKIO_EXPORT std::span<const Option> values_of() noexcept;

/// The value whose to_string() is `name`.
/// \throws Error invalid_argument: the message lists the names that there are.
template <class Option>
[[nodiscard]] Option from_string(std::string_view name) {
  std::string known;
  for (const Option value : values_of<Option>()) {
    if (to_string(value) == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(to_string(value));
  }
  throw Error(ErrorCode::invalid_argument,
              "there is no '" + std::string(name) + "'; there is " + known);
}

}  // namespace chunkio
