#include "read/ring.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace chunkio::read {
namespace {

// Whole pages, so that a slot can be page-locked and sent to a device by itself.
constexpr std::size_t kSlotAlignment = 4096;
constexpr std::size_t kFieldAlignment = 64;

constexpr std::size_t align(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::size_t leading_stride(const RingLayout& layout) {
  return align(static_cast<std::size_t>(layout.rows) * layout.leading.row_bytes, kSlotAlignment);
}

std::size_t side_stride(const RingLayout& layout) {
  const auto rows = static_cast<std::size_t>(layout.rows);
  std::size_t bytes = align(rows * sizeof(std::int64_t), kFieldAlignment);
  for (const RingField& field : layout.fields)
    bytes += align(rows * field.row_bytes, kFieldAlignment);
  return bytes;
}

/// Where a batch lies in memory. \param fields  as many as the layout has, to be filled.
void place(internal::BatchSlot& slot, const RingLayout& layout, std::byte* leading, std::byte* side,
           std::span<std::byte*> fields) noexcept {
  const auto rows = static_cast<std::size_t>(layout.rows);
  slot.layout = &layout;
  slot.leading = leading;
  slot.sample_ids = reinterpret_cast<std::int64_t*>(side);
  side += align(rows * sizeof(std::int64_t), kFieldAlignment);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    fields[f] = side;
    side += align(rows * layout.fields[f].row_bytes, kFieldAlignment);
  }
  slot.fields = fields;
}

}  // namespace

RingLayout ring_layout(const DatasetInfo& info, std::int64_t rows) {
  RingLayout layout{
      .rows = rows,
      .leading = {.info = info.leading, .row_bytes = static_cast<std::size_t>(info.sample_bytes())},
      .has_images = info.has_images()};
  if (info.sparse) {
    layout.leading.row_bytes = sizeof(base::SparseRow);
    layout.sparse = {.columns = info.sparse->columns,
                     .index_dtype = info.sparse->index_dtype,
                     .blocks = std::make_shared<base::SparseBlocks>(),
                     .mean_row_bytes = info.sample_bytes()};
  }
  return layout;
}

std::int64_t Ring::footprint(const RingLayout& layout, std::int64_t num_slots) {
  const auto slots = static_cast<std::size_t>(num_slots);
  const std::size_t bookkeeping = sizeof(internal::BatchSlot) +
                                  layout.fields.size() * sizeof(std::byte*) +
                                  sizeof(std::int64_t);  // in free_
  return static_cast<std::int64_t>(base::HostBuffer::footprint(leading_stride(layout) * slots) +
                                   base::HostBuffer::footprint(side_stride(layout) * slots) +
                                   bookkeeping * slots);
}

Ring::Ring(RingLayout layout, std::int64_t num_slots)
    : layout_(std::make_shared<const RingLayout>(std::move(layout))),
      leading_(leading_stride(*layout_) * static_cast<std::size_t>(num_slots)),
      side_(side_stride(*layout_) * static_cast<std::size_t>(num_slots)),
      fields_(layout_->fields.size() * static_cast<std::size_t>(num_slots)),
      slots_(static_cast<std::size_t>(num_slots)) {
  const std::size_t num_fields = layout_->fields.size();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].index = static_cast<std::int64_t>(i);
    place(slots_[i], *layout_, leading_.data() + i * leading_stride(*layout_),
          side_.data() + i * side_stride(*layout_),
          std::span(fields_).subspan(i * num_fields, num_fields));
  }
  free_.reserve(slots_.size());
  spare_.reserve(slots_.size());
  // Taken from the back, so that slots are first used in order.
  for (std::int64_t i = num_slots - 1; i >= 0; --i) free_.push_back(i);
}

std::int64_t Ring::take_free() {
  const std::int64_t index = free_.back();
  free_.pop_back();
  return index;
}

// What is put back is taken first, so that slots that were never used stay in front.

bool Ring::next_are_touched(std::int64_t count) const noexcept {
  if (count <= 0) return true;
  const std::int64_t deepest = free_[free_.size() - static_cast<std::size_t>(count)];
  return slots_[static_cast<std::size_t>(deepest)].touched;
}

std::int64_t Ring::take_untouched() {
  const auto first_touched = std::find_if(free_.begin(), free_.end(), [this](std::int64_t index) {
    return slots_[static_cast<std::size_t>(index)].touched;
  });
  const std::int64_t index = *(first_touched - 1);
  free_.erase(first_touched - 1);
  return index;
}

void Ring::touch(std::int64_t index) noexcept {
  internal::BatchSlot& touched = slot(index);
  // Only bytes of this slot: the first and last page of `side` belong to its neighbours, too.
  const auto touch_pages = [](std::byte* begin, std::size_t bytes) {
    volatile std::byte* const pages = begin;
    for (std::size_t at = 0; at < bytes; at += kSlotAlignment) pages[at] = std::byte{};
    if (bytes > 0) pages[bytes - 1] = std::byte{};
  };
  touch_pages(touched.leading, leading_stride(*layout_));
  touch_pages(reinterpret_cast<std::byte*>(touched.sample_ids), side_stride(*layout_));
  touched.touched = true;
}

std::shared_ptr<const internal::BatchSlot> Ring::lease(std::int64_t index) {
  // If making the lease fails, shared_ptr runs the deleter, which counts this lease as returned; it
  // locks the mutex, so the control block is made first with a deleter that does nothing until it
  // is armed.
  struct Return {
    std::shared_ptr<Ring> ring;
    void operator()(const internal::BatchSlot* slot) const noexcept {
      if (ring) ring->return_lease(slot->index);
    }
  };
  std::shared_ptr<const internal::BatchSlot> leased(&slot(index), Return{});
  std::get_deleter<Return>(leased)->ring = shared_from_this();
  ++num_leased_;
  return leased;
}

void Ring::return_lease(std::int64_t index) noexcept {
  // Nobody in a forked child fills the slot again. A ring whose loader is alive is leaked there
  // with its loader, so neither the mutex nor the condition variable is touched.
  if (!in_own_process()) return;
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(index);  // Never allocates: the vector once held every slot.
    base::HostBuffer& memory = slot(index).sparse_memory;
    if (memory.size() > 0) spare_.push_back(std::move(memory));
    --num_leased_;
  }
  work_available_.notify_all();
}

void Ring::assemble(internal::BatchSlot& slot) {
  const SparseRing& sparse = *layout_->sparse;
  const std::span<const base::SparseRow> rows = slot.sparse_rows();
  std::vector<std::int64_t> offsets(rows.size() + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) offsets[i + 1] = offsets[i] + rows[i].count;
  const DType dtype = layout_->leading.info.dtype;
  slot.sparse =
      base::SparseLayout(slot.rows, offsets.back(), sparse.columns, dtype, sparse.index_dtype);
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      slot.sparse_memory = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (slot.sparse_memory.size() < slot.sparse.bytes()) {
    slot.sparse_memory = {};  // first, so that both never exist
    slot.sparse_memory = base::HostBuffer(slot.sparse.bytes());
  }
  slot.sparse.write_offsets(offsets, slot.sparse_memory.data());
  std::byte* values = slot.sparse.values(slot.sparse_memory.data()).data();
  std::byte* indices = slot.sparse.indices(slot.sparse_memory.data()).data();
  const std::size_t value_bytes = size_of(dtype);
  const std::size_t index_bytes = size_of(sparse.index_dtype);
  for (const base::SparseRow& row : rows) {
    // An empty row has no addresses.
    if (const auto count = static_cast<std::size_t>(row.count); count > 0) {
      std::memcpy(values, row.values, count * value_bytes);
      std::memcpy(indices, row.indices, count * index_bytes);
      values += count * value_bytes;
      indices += count * index_bytes;
    }
    sparse.blocks->release(*row.block, 1);
  }
}

OwnBatch::OwnBatch(std::shared_ptr<const RingLayout> layout)
    : layout_(std::move(layout)),
      leading_(leading_stride(*layout_)),
      side_(side_stride(*layout_)),
      fields_(layout_->fields.size()) {
  place(slot_, *layout_, leading_.data(), side_.data(), fields_);
}

void OwnBatch::fill(internal::BatchSlot& from) noexcept {
  const auto rows = static_cast<std::size_t>(from.rows);
  slot_.rows = from.rows;
  slot_.epoch = from.epoch;
  slot_.step = from.step;
  if (layout_->sparse) {
    slot_.sparse = from.sparse;
    slot_.sparse_memory = std::move(from.sparse_memory);
  } else {
    std::memcpy(slot_.leading, from.leading, rows * layout_->leading.row_bytes);
  }
  std::memcpy(slot_.sample_ids, from.sample_ids, rows * sizeof(std::int64_t));
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    std::memcpy(fields_[f], from.fields[f], rows * layout_->fields[f].row_bytes);
  }
}

std::size_t find_array(const RingLayout& layout, std::string_view name) {
  if (name == layout.leading.info.name) return kLeading;
  const auto& fields = layout.fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (name == fields[i].info.name) return i;
  }
  if (name == "images" && layout.has_images) return kLeading;
  if (name == "labels" && layout.has_labels) return 0;
  if (name == "labels") {
    throw Error(ErrorCode::not_found,
                "the batch has no labels, since the file has none that were found; "
                "DatasetInfo::why_no_labels says what was looked at");
  }
  std::string known = layout.has_images ? "images" : layout.leading.info.name;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    known += ", " + (i == 0 && layout.has_labels ? "labels" : fields[i].info.name);
  }
  throw Error(ErrorCode::not_found, "the batch has no '" + std::string(name) + "', but " + known +
                                        "; name further fields in LoaderOptions::fields");
}

}  // namespace chunkio::read

namespace chunkio::internal {

std::int64_t BatchSlot::close_gaps() noexcept {
  std::int64_t* const end = sample_ids + rows;
  std::int64_t* const first = std::find(sample_ids, end, kSkipped);
  if (first == end) return 0;
  if (layout->sparse) {
    // Rows that were read, and are skipped for the sake of a field.
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      const base::SparseRow& skipped = sparse_rows()[row];
      if (sample_ids[row] == kSkipped && skipped.block != nullptr) {
        layout->sparse->blocks->release(*skipped.block, 1);
      }
    }
  }
  auto kept = static_cast<std::size_t>(first - sample_ids);
  for (std::size_t row = kept; row < static_cast<std::size_t>(rows); ++row) {
    if (sample_ids[row] == kSkipped) continue;
    sample_ids[kept] = sample_ids[row];
    const auto move_up = [&](std::byte* values, std::size_t row_bytes) {
      std::memcpy(values + kept * row_bytes, values + row * row_bytes, row_bytes);
    };
    move_up(leading, layout->leading.row_bytes);
    for (std::size_t f = 0; f < fields.size(); ++f) move_up(fields[f], layout->fields[f].row_bytes);
    ++kept;
  }
  const std::int64_t skipped = rows - static_cast<std::int64_t>(kept);
  rows = static_cast<std::int64_t>(kept);
  return skipped;
}

}  // namespace chunkio::internal

namespace chunkio {

Batch::Batch() noexcept = default;
Batch::Batch(const Batch&) noexcept = default;
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(const Batch&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

Batch::Batch(std::shared_ptr<const internal::BatchSlot> slot) noexcept : slot_(std::move(slot)) {}

namespace {

Tensor tensor_of(const internal::BatchSlot& slot, const read::RingField& array,
                 const std::byte* values) {
  return {values, array.info.dtype, array.info.row_shape.with_first_axis(slot.rows)};
}

Tensor leading_tensor(const internal::BatchSlot& slot) {
  if (slot.layout->sparse) {
    const FieldInfo& leading = slot.layout->leading.info;
    throw Error(ErrorCode::unsupported,
                leading.name + " is a sparse matrix, which is no tensor; take it with sparse()");
  }
  return tensor_of(slot, slot.layout->leading, slot.leading);
}

Tensor field_tensor(const internal::BatchSlot& slot, std::size_t i) {
  return tensor_of(slot, slot.layout->fields[i], slot.fields[i]);
}

}  // namespace

Tensor Batch::images() const {
  if (!slot_) return {};
  const read::RingLayout& layout = *slot_->layout;
  if (layout.has_images) return leading_tensor(*slot_);
  const FieldInfo& leading = layout.leading.info;
  if (layout.sparse) {
    throw Error(ErrorCode::unsupported, "the batch has no images, but rows of the sparse matrix " +
                                            leading.name + "; take them with sparse()");
  }
  throw Error(ErrorCode::unsupported, "the batch has no images: " + leading.name + " " +
                                          std::string(to_string(leading.dtype)) + " " +
                                          leading_tensor(*slot_).shape().to_string() +
                                          " leads it; take it by its name");
}

Tensor Batch::leading() const {
  if (!slot_) return {};
  return leading_tensor(*slot_);
}

bool Batch::is_sparse() const { return slot_ && slot_->layout->sparse.has_value(); }

SparseTensor Batch::sparse() const {
  if (!slot_) return {};
  if (slot_->layout->sparse) return slot_->sparse.tensor(slot_->sparse_memory.data());
  const FieldInfo& leading = slot_->layout->leading.info;
  throw Error(ErrorCode::unsupported, "the batch has no sparse matrix: " + leading.name + " " +
                                          std::string(to_string(leading.dtype)) + " " +
                                          leading_tensor(*slot_).shape().to_string() +
                                          " leads it; take it by its name");
}

Tensor Batch::labels() const {
  if (!slot_ || !slot_->layout->has_labels) return {};
  return field_tensor(*slot_, 0);
}

Tensor Batch::operator[](std::string_view name) const {
  if (!slot_) {
    throw Error(ErrorCode::not_found,
                "this batch was moved from, so it has no '" + std::string(name) + "'");
  }
  const std::size_t array = read::find_array(*slot_->layout, name);
  return array == read::kLeading ? leading_tensor(*slot_) : field_tensor(*slot_, array);
}

std::span<const std::int64_t> Batch::sample_ids() const {
  if (!slot_) return {};
  return {slot_->sample_ids, static_cast<std::size_t>(slot_->rows)};
}

std::int64_t Batch::size() const { return slot_ ? slot_->rows : 0; }
std::int64_t Batch::epoch() const { return slot_ ? slot_->epoch : 0; }
std::int64_t Batch::step() const { return slot_ ? slot_->step : 0; }

bool Batch::copied() const { return slot_ && slot_->index == internal::BatchSlot::kNoRing; }

bool Batch::contains(const Tensor& tensor) const {
  if (!slot_ || tensor.empty()) return false;
  const std::size_t size = tensor.size_bytes();
  const auto rows = static_cast<std::size_t>(slot_->rows);
  const auto lies_in = [&](const std::byte* begin, std::size_t bytes) {
    // An operator would compare pointers into one array only.
    const std::less_equal<const std::byte*> not_behind;
    return size <= bytes && not_behind(begin, tensor.data()) &&
           not_behind(tensor.data(), begin + (bytes - size));
  };
  const base::HostBuffer& sparse = slot_->sparse_memory;
  if (slot_->layout->sparse ? lies_in(sparse.data(), sparse.size())
                            : lies_in(slot_->leading, rows * slot_->layout->leading.row_bytes)) {
    return true;
  }
  for (std::size_t f = 0; f < slot_->fields.size(); ++f) {
    if (lies_in(slot_->fields[f], rows * slot_->layout->fields[f].row_bytes)) return true;
  }
  const auto ids = std::as_bytes(sample_ids());
  return lies_in(ids.data(), ids.size());
}

}  // namespace chunkio
