/// The C++ types of the numbers in files.
#pragma once

#include <cstdint>

#include <chunkio/tensor.hpp>

namespace h5pack {

/// Calls `work` with a value of the C++ type of one of the ten types that files have.
template <class Work>
auto with_type(chunkio::DType dtype, const Work& work) {
  using chunkio::DType;
  switch (dtype) {
    case DType::uint8:
      return work(std::uint8_t{});
    case DType::int8:
      return work(std::int8_t{});
    case DType::uint16:
      return work(std::uint16_t{});
    case DType::int16:
      return work(std::int16_t{});
    case DType::uint32:
      return work(std::uint32_t{});
    case DType::int32:
      return work(std::int32_t{});
    case DType::uint64:
      return work(std::uint64_t{});
    case DType::int64:
      return work(std::int64_t{});
    case DType::float64:
      return work(double{});
    default:
      return work(float{});
  }
}

}  // namespace h5pack
