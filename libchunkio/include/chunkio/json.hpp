/// What the library finds out, as JSON: for other languages, logs and dashboards.
///
/// Each function returns one object on one line, without its end. Keys are named after the members
/// and stay; more may come. Text that is not UTF-8 has U+FFFD in place of each wrong byte. Pure;
/// thread-safe.
#pragma once

#include <span>
#include <string>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/diagnosis.hpp>
#include <chunkio/export.hpp>
#include <chunkio/inspection.hpp>
#include <chunkio/loader.hpp>

namespace chunkio {

/// What `h5pack info --json` prints.
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const Inspection& inspection);
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const LoaderStats& stats);
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const cuda::DeviceStats& stats);
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const Diagnosis& diagnosis);
/// An array of objects.
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(std::span<const SkippedRows> skipped);

}  // namespace chunkio
