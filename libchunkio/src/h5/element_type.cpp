#include "h5/element_type.hpp"

#include "h5/handle.hpp"

namespace chunkio::h5 {

std::optional<DType> element_type(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      // Padded integers (fewer bits than bytes) are left alone: nothing writes images so.
      if (H5Tget_precision(type) != size * 8) return std::nullopt;
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      switch (size) {
        case 1:
          return is_signed ? DType::int8 : DType::uint8;
        case 2:
          return is_signed ? DType::int16 : DType::uint16;
        case 4:
          return is_signed ? DType::int32 : DType::uint32;
        case 8:
          return is_signed ? DType::int64 : DType::uint64;
        default:
          return std::nullopt;
      }
    }
    case H5T_FLOAT:
      if (size == 4) return DType::float32;
      if (size == 8) return DType::float64;
      return std::nullopt;
    case H5T_ENUM: {
      const TypeId values(H5Tget_super(type));
      return values ? element_type(values.get()) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

hid_t memory_type(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return H5T_NATIVE_UINT8;
    case DType::int8:
      return H5T_NATIVE_INT8;
    case DType::uint16:
      return H5T_NATIVE_UINT16;
    case DType::int16:
      return H5T_NATIVE_INT16;
    case DType::uint32:
      return H5T_NATIVE_UINT32;
    case DType::int32:
      return H5T_NATIVE_INT32;
    case DType::uint64:
      return H5T_NATIVE_UINT64;
    case DType::int64:
      return H5T_NATIVE_INT64;
    case DType::float32:
      return H5T_NATIVE_FLOAT;
    case DType::float64:
      return H5T_NATIVE_DOUBLE;
    case DType::float16:
    case DType::bfloat16:
      break;  // No file has them.
  }
  return H5I_INVALID_HID;
}

std::string describe_type(hid_t type) {
  const auto dtype = element_type(type);
  if (dtype && H5Tget_class(type) != H5T_ENUM) return std::string(to_string(*dtype));
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return std::to_string(H5Tget_precision(type)) + "-bit integer";
    case H5T_FLOAT:
      return std::to_string(H5Tget_precision(type)) + "-bit float";
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    case H5T_ENUM:
      return dtype == DType::int8 && H5Tget_nmembers(type) == 2 ? "bool" : "enum";
    case H5T_VLEN:
      return "variable-length";
    case H5T_ARRAY:
      return "array";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_REFERENCE:
      return "reference";
    case H5T_BITFIELD:
      return "bitfield";
    default:
      return "unknown type";
  }
}

std::string_view unpadded(std::string_view text, H5T_str_t padding) noexcept {
  if (padding == H5T_STR_NULLTERM) return text.substr(0, text.find('\0'));
  const std::size_t last = text.find_last_not_of(padding == H5T_STR_SPACEPAD ? ' ' : '\0');
  return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

void reclaim_variable_length(hid_t type, hid_t space, void* data) noexcept {
#if H5_VERSION_GE(1, 12, 0)
  H5Treclaim(type, space, H5P_DEFAULT, data);
#else
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, data);
#endif
}

}  // namespace chunkio::h5
