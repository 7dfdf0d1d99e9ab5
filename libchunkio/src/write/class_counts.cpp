#include <algorithm>
#include <cstring>

#include <chunkio/dataset_writer.hpp>

namespace chunkio {

std::vector<std::int64_t> count_classes(std::span<const FieldData> fields,
                                        const std::vector<std::string>& class_names) {
  constexpr std::int64_t kMaxCountedLabels = 65536;
  const auto field = std::find_if(fields.begin(), fields.end(), [](const FieldData& candidate) {
    return candidate.info.name == "labels";
  });
  if (field == fields.end() || field->info.dtype != DType::int64 ||
      field->info.row_shape.rank() != 0) {
    return {};
  }
  std::vector<std::int64_t> counts(class_names.size(), 0);
  bool countable = true;
  field->for_each_block([&](std::span<const std::byte> rows) {
    for (std::size_t at = 0; at < rows.size() && countable; at += sizeof(std::int64_t)) {
      std::int64_t label = 0;
      std::memcpy(&label, rows.data() + at, sizeof label);
      const std::int64_t end =
          class_names.empty() ? kMaxCountedLabels : static_cast<std::int64_t>(class_names.size());
      countable = label >= 0 && label < end;
      if (!countable) return;
      const auto index = static_cast<std::size_t>(label);
      if (index >= counts.size()) counts.resize(index + 1, 0);
      ++counts[index];
    }
  });
  return countable ? counts : std::vector<std::int64_t>();
}

}  // namespace chunkio
