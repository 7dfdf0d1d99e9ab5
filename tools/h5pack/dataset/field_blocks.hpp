/// Reads a field of a dataset in blocks of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

namespace h5pack {

/// Calls `visit` with the first row and the values of each block of `rows`, in order: 4 MiB each,
/// or one row if that is larger. Blocks on I/O.
/// \param field  as Dataset::find_field() describes it.
/// \throws chunkio::Error as Dataset::read_field().
void for_each_field_block(
    const chunkio::Dataset& dataset, const chunkio::FieldInfo& field, chunkio::RowRange rows,
    const std::function<void(std::int64_t first_row, std::span<const std::byte> values)>& visit);

}  // namespace h5pack
