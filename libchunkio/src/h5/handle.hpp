/// Owners of libhdf5 ids, one type for each kind: closing an id with the function of another kind
/// fails and leaves it open, so the kinds do not convert into each other. Predefined types are
/// never wrapped.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <hdf5.h>

namespace chunkio::h5 {

namespace internal {
using CloseFunction = herr_t (*)(hid_t);
void count_id() noexcept;
/// Closes under Library::lock().
int close_id(CloseFunction close, hid_t id) noexcept;
}  // namespace internal

/// Ids owned by all UniqueIds of the process: 0 when nothing leaks. libhdf5's own count misses
/// dataspaces.
[[nodiscard]] std::int64_t live_ids() noexcept;

template <internal::CloseFunction Close>
class UniqueId {
 public:
  UniqueId() noexcept = default;
  /// Takes over `id`; H5I_INVALID_HID is nothing.
  explicit UniqueId(hid_t id) noexcept : id_(id) {
    if (id_ >= 0) internal::count_id();
  }
  UniqueId(UniqueId&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  UniqueId& operator=(UniqueId&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
    }
    return *this;
  }
  ~UniqueId() { reset(); }

  [[nodiscard]] hid_t get() const noexcept { return id_; }
  [[nodiscard]] explicit operator bool() const noexcept { return id_ >= 0; }
  /// Closes; the status matters for what was written (see check_status), and is 0 if there was
  /// nothing.
  int reset() noexcept {
    const hid_t id = std::exchange(id_, H5I_INVALID_HID);
    return id >= 0 ? internal::close_id(Close, id) : 0;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using FileId = UniqueId<&H5Fclose>;
using DatasetId = UniqueId<&H5Dclose>;
using SpaceId = UniqueId<&H5Sclose>;
using TypeId = UniqueId<&H5Tclose>;
using ListId = UniqueId<&H5Pclose>;
using AttrId = UniqueId<&H5Aclose>;
using GroupId = UniqueId<&H5Gclose>;

static_assert(sizeof(FileId) == sizeof(hid_t));
static_assert(!std::is_copy_constructible_v<FileId> && !std::is_copy_assignable_v<FileId>);
static_assert(std::is_nothrow_move_constructible_v<FileId>);
static_assert(std::is_nothrow_move_assignable_v<FileId>);
static_assert(!std::is_convertible_v<hid_t, FileId> && !std::is_convertible_v<FileId, hid_t>);
static_assert(!std::is_constructible_v<FileId, DatasetId&&>);

}  // namespace chunkio::h5
