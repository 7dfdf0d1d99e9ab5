/// Streams a field of chosen rows, in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

namespace h5pack {

/// The rows `rows` of a field, in their order, as a stream that reads them from the file each time.
/// It takes `memory_bytes` (and a block of 4 MiB; a row is more if it is larger) and 8 bytes for
/// each row that fits there. Rows that lie near each other are read together, ascending; a filtered
/// chunk is decoded once for each time that memory is filled.
/// \param rows, dataset  must outlive what is returned.
/// \param name  in the new file.
[[nodiscard]] chunkio::FieldData selected_field(const chunkio::Dataset& dataset,
                                                const chunkio::FieldInfo& field,
                                                const std::vector<std::int64_t>& rows,
                                                std::int64_t memory_bytes, std::string name);

/// `source_index` of the rows `rows`: the field of the file, or their number if it has none.
[[nodiscard]] chunkio::FieldData selected_source_index(const chunkio::Dataset& dataset,
                                                       const std::vector<std::int64_t>& rows,
                                                       std::int64_t memory_bytes);

}  // namespace h5pack
