#include "h5/text_array.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/file_number.hpp"
#include "h5/chunk_reader.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/filters.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

/// The global heaps of a file. Keeps those that were read last: texts that lie side by side were
/// mostly written so.
class GlobalHeaps {
 public:
  /// \param base  of addresses in the file: its user block.
  GlobalHeaps(const Dataset::Impl& file, std::int64_t base) : file_(file), base_(base) {}

  /// Valid until the next call. \throws Error corrupt_data.
  std::span<const std::byte> object(std::uint64_t address, std::uint32_t index) {
    const Collection& collection = at(address);
    if (index == 0 || index >= collection.objects.size() || collection.objects[index].offset == 0) {
      throw damaged("a text that does not exist");
    }
    const auto& [offset, bytes] = collection.objects[index];
    return std::span(collection.bytes).subspan(offset, bytes);
  }

  [[nodiscard]] Error damaged(const std::string& what) const {
    return Error(ErrorCode::corrupt_data, file_.info.path + ": its names refer to " + what +
                                              "; the file is damaged, copy or download it again");
  }

 private:
  static constexpr std::size_t kHeaderBytes = 16;  // Of a collection, and of an object.
  /// libhdf5 makes them larger than 64 KiB only for a text that is.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;
  static constexpr std::size_t kKept = 16;

  struct Object {
    std::size_t offset = 0;  ///< In the collection; 0: there is none.
    std::size_t bytes = 0;
  };
  struct Collection {
    std::uint64_t address = 0;
    std::vector<std::byte> bytes = {};
    std::vector<Object> objects = {};  ///< By their index.
  };

  const Collection& at(std::uint64_t address) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& one) { return one.address == address; });
    if (found != kept_.end()) return *found;
    Collection collection = read(address);
    if (kept_.size() < kKept) return kept_.emplace_back(std::move(collection));
    next_ = (next_ + 1) % kKept;
    return kept_[next_] = std::move(collection);
  }

  [[nodiscard]] Collection read(std::uint64_t address) const {
    const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(file_.bytes->size(), 0));
    const auto base = static_cast<std::uint64_t>(base_);
    const auto inside = [&](std::uint64_t bytes) {
      return bytes <= size && base <= size - bytes && address <= size - bytes - base;
    };
    std::array<std::byte, kHeaderBytes> header{};
    if (!inside(header.size())) throw damaged("a place outside of it");
    const auto offset = static_cast<std::int64_t>(base + address);
    file_.bytes->read_at(offset, header, {});
    const auto bytes = base::number_at<std::uint64_t>(header, 8);
    if (std::memcmp(header.data(), "GCOL\1", 5) != 0 || bytes < 2 * kHeaderBytes) {
      throw damaged("what is no global heap");
    }
    if (bytes > kMaxBytes || !inside(bytes)) throw damaged("a heap that is cut, or too large");
    Collection collection{.address = address};
    collection.bytes.resize(static_cast<std::size_t>(bytes));
    file_.bytes->read_at(offset, collection.bytes, {});
    for (std::size_t at = kHeaderBytes; at + kHeaderBytes <= collection.bytes.size();) {
      const auto index = base::number_at<std::uint16_t>(collection.bytes, at);
      const auto length = base::number_at<std::uint64_t>(collection.bytes, at + 8);
      at += kHeaderBytes;
      if (index == 0) break;  // What follows is free.
      if (length > collection.bytes.size() - at) throw damaged("a text that is cut");
      if (collection.objects.size() <= index) collection.objects.resize(index + std::size_t{1});
      collection.objects[index] = {at, static_cast<std::size_t>(length)};
      at += (static_cast<std::size_t>(length) + 7) / 8 * 8;
    }
    return collection;
  }

  const Dataset::Impl& file_;
  std::int64_t base_;
  std::vector<Collection> kept_;
  std::size_t next_ = 0;
};

class TextReader {
 public:
  TextReader(const Dataset::Impl& file, const std::string& name, std::int64_t count)
      : file_(file),
        path_(file.info.path),
        name_(name),
        count_(count),
        action_("read the names " + printable(name) + " of"),
        array_(open_array(file, name, Shape{count}, DType::uint8, 0)),
        creation_(check_id(H5Dget_create_plist(array_->dataset.get()), action_, path_)),
        type_(check_id(H5Dget_type(array_->dataset.get()), action_, path_)),
        variable_(check_status(H5Tis_variable_str(type_.get()), action_, path_) > 0),
        padding_(H5Tget_strpad(type_.get())) {
    const ListId about(check_id(H5Fget_create_plist(file.file().get()), action_, path_));
    hsize_t user_block = 0;
    check_status(H5Pget_userblock(about.get(), &user_block), action_, path_);
    heaps_.emplace(file, static_cast<std::int64_t>(user_block));
    std::size_t address_bytes = 0;
    std::size_t size_bytes = 0;
    check_status(H5Pget_sizes(about.get(), &address_bytes, &size_bytes), action_, path_);
    if (variable_ && (address_bytes != 8 || size_bytes != 8)) {
      throw unsupported("its addresses do not have 8 bytes");
    }
    element_bytes_ = variable_ ? kReferenceBytes : H5Tget_size(type_.get());
    if (element_bytes_ < 1 || element_bytes_ > static_cast<std::size_t>(kMaxTextBytes)) {
      throw unsupported("they have " + std::to_string(element_bytes_) + " bytes each");
    }
  }

  void read(const std::function<void(std::string_view)>& take) {
    const H5D_layout_t layout = H5Pget_layout(creation_.get());
    if (layout == H5D_CHUNKED) {
      read_chunks(take);
    } else if (layout == H5D_CONTIGUOUS &&
               check_status(H5Pget_external_count(creation_.get()), action_, path_) == 0) {
      read_run(take);
    } else {
      throw unsupported("they are neither contiguous nor chunked");
    }
  }

 private:
  /// Length, address of the heap, and index in it.
  static constexpr std::size_t kReferenceBytes = 16;

  [[nodiscard]] Error unsupported(const std::string& why) const {
    return Error(ErrorCode::unsupported, path_ + ": the names " + printable(name_) +
                                             " are stored in a way that is not read (" + why +
                                             "); write the file again with anndata");
  }

  void read_run(const std::function<void(std::string_view)>& take) {
    const haddr_t offset = H5Dget_offset(array_->dataset.get());
    const auto bytes = base::checked_multiply(count_, static_cast<std::int64_t>(element_bytes_));
    const std::int64_t size = file_.bytes->size();
    if (offset == HADDR_UNDEF || !bytes || *bytes > size ||
        std::cmp_greater(offset, size - *bytes)) {
      throw Error(ErrorCode::corrupt_data,
                  path_ + ": the names " + printable(name_) +
                      " do not lie inside of the file; copy or download it again");
    }
    const std::int64_t most =
        std::max<std::int64_t>(kBlockBytes / static_cast<std::int64_t>(element_bytes_), 1);
    std::vector<std::byte> block;
    for (std::int64_t first = 0; first < count_; first += most) {
      block.resize(static_cast<std::size_t>(std::min(most, count_ - first)) * element_bytes_);
      file_.bytes->read_at(
          static_cast<std::int64_t>(offset) + first * static_cast<std::int64_t>(element_bytes_),
          block, {});
      give(block, take);
    }
  }

  void read_chunks(const std::function<void(std::string_view)>& take) {
    if (const FilterStep* const filter = first_foreign_filter(array_->filters)) {
      throw unsupported(filter->name);
    }
    if (array_->chunk_bytes > kMaxFilteredChunkBytes)
      throw unsupported("their chunks are too large");
    ChunkReader reader(*array_, path_);
    const std::int64_t chunk_rows = array_->stored.chunk_shape[0];
    for (std::int64_t first = 0; first < count_; first += chunk_rows) {
      try {
        const auto chunk = reader.read(ChunkStart{static_cast<hsize_t>(first)});
        const auto count = static_cast<std::size_t>(std::min(chunk_rows, count_ - first));
        if (chunk) {
          give(chunk->first(count * element_bytes_), take);
        } else {
          for (std::size_t i = 0; i < count; ++i) take({});
        }
      } catch (const DamagedChunkError& error) {
        throw Error(ErrorCode::corrupt_data, array_->describe_chunk(first / chunk_rows, path_) +
                                                 " is damaged: " + error.what() +
                                                 "; copy or download the file again");
      }
    }
  }

  void give(std::span<const std::byte> elements,
            const std::function<void(std::string_view)>& take) {
    for (std::size_t at = 0; at < elements.size(); at += element_bytes_) {
      const std::string_view text = text_of(elements.subspan(at, element_bytes_));
      if (std::cmp_greater(text.size(), kMaxNameBytes)) {
        throw unsupported("one is longer than " + std::to_string(kMaxNameBytes) + " bytes");
      }
      take(text);
    }
  }

  std::string_view text_of(std::span<const std::byte> element) {
    const auto as_text = [](std::span<const std::byte> bytes) {
      return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    if (!variable_) return unpadded(as_text(element), padding_);
    const auto length = base::number_at<std::uint32_t>(element, 0);
    const auto address = base::number_at<std::uint64_t>(element, 4);
    if (length == 0 || address == 0) return {};
    const auto object = heaps_->object(address, base::number_at<std::uint32_t>(element, 12));
    if (length > object.size()) throw heaps_->damaged("texts that are longer than they are");
    return unpadded(as_text(object.first(length)), H5T_STR_NULLTERM);
  }

  const Dataset::Impl& file_;
  const std::string& path_;
  const std::string& name_;
  const std::int64_t count_;
  const std::string action_;
  std::shared_ptr<const StoredArray> array_;
  ListId creation_;
  TypeId type_;
  bool variable_;
  H5T_str_t padding_;
  std::optional<GlobalHeaps> heaps_;
  std::size_t element_bytes_ = 0;
};

}  // namespace

bool is_text_array(const DatasetSummary& dataset, std::int64_t count) {
  return dataset.type == "string" && dataset.shape == Shape{count} && dataset.refusal.empty();
}

std::optional<std::vector<std::string>> find_texts(const Dataset::Impl& file,
                                                   const std::string& name) {
  const auto guard = Library::lock();
  const std::string& path = file.info.path;
  for (const std::string& one : {name, name + "/" + sparse::kTextValues}) {
    std::string refusal;
    if (follow_links(file.file(), one, path, file.external, refusal) != LinkState::present ||
        !is_dataset(file.file(), one, path)) {
      continue;
    }
    const DatasetSummary summary =
        summarize(open_dataset(file.file(), one, path), one, path, file.external);
    if (!summary.shape || summary.shape->rank() != 1 ||
        !is_text_array(summary, (*summary.shape)[0])) {
      continue;
    }
    std::vector<std::string> texts;
    if ((*summary.shape)[0] > 0) {
      read_texts(file, one, (*summary.shape)[0],
                 [&](std::string_view text) { texts.emplace_back(text); });
    }
    return texts;
  }
  return std::nullopt;
}

void read_texts(const Dataset::Impl& file, const std::string& name, std::int64_t count,
                const std::function<void(std::string_view)>& take) {
  const auto guard = Library::lock();
  TextReader(file, name, count).read(take);
}

}  // namespace chunkio::h5
