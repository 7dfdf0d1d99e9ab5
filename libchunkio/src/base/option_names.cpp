#include <chunkio/loader.hpp>

namespace chunkio {

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
