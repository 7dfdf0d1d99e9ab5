#include "h5pack/sparse/npz_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace h5pack {

namespace {

constexpr std::uint32_t kInExtraField = 0xffffffff;
constexpr std::uint16_t kVersion = 45;  // Of zip: with 64-bit sizes.
constexpr std::int64_t kCrcAt = 14;     // In a member's header.

/// Appends a number, little-endian.
template <class T>
void put(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

std::span<const unsigned char> as_bytes(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

/// What the header of a member and its entry in the directory have in common.
void put_about(std::string& bytes, std::uint32_t crc) {
  put(bytes, kVersion);
  put(bytes, std::uint16_t{0});         // flags
  put(bytes, std::uint16_t{0});         // stored
  put(bytes, std::uint32_t{0x210000});  // the first of January 1980
  put(bytes, crc);
  put(bytes, kInExtraField);
  put(bytes, kInExtraField);
}

}  // namespace

void NpzWriter::begin(const std::string& name, const std::string& descr, const std::string& shape,
                      std::int64_t bytes) {
  finish_member();
  // The elements begin at a multiple of 64 bytes, as NumPy has them.
  std::string about =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  constexpr std::size_t kPrefix = 10;
  about.resize((kPrefix + about.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
  about += '\n';
  std::string array = "\x93NUMPY\x01";
  array += '\0';
  put(array, static_cast<std::uint16_t>(about.size()));
  array += about;

  Member member{.name = name + ".npy",
                .offset = file_.size(),
                .bytes = static_cast<std::int64_t>(array.size()) + bytes};
  std::string header = "PK\x03\x04";
  put_about(header, 0);
  put(header, static_cast<std::uint16_t>(member.name.size()));
  put(header, std::uint16_t{20});  // the extra field
  header += member.name;
  put(header, std::uint16_t{1});
  put(header, std::uint16_t{16});
  put(header, member.bytes);
  put(header, member.bytes);
  file_.write(as_bytes(header));
  members_.push_back(std::move(member));
  add(std::as_bytes(std::span(array)));
}

void NpzWriter::add(std::span<const std::byte> elements) {
  const std::span bytes(reinterpret_cast<const unsigned char*>(elements.data()), elements.size());
  std::uint32_t& crc = members_.back().crc;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto part = bytes.subspan(at, std::min<std::size_t>(bytes.size() - at, 1U << 30));
    crc = static_cast<std::uint32_t>(::crc32(crc, part.data(), static_cast<uInt>(part.size())));
    at += part.size();
  }
  file_.write(bytes);
}

void NpzWriter::finish_member() {
  if (members_.empty()) return;
  std::string crc;
  put(crc, members_.back().crc);
  file_.write_at(members_.back().offset + kCrcAt, as_bytes(crc));
}

void NpzWriter::close() {
  finish_member();
  const std::int64_t begin = file_.size();
  std::string directory;
  for (const Member& member : members_) {
    directory += "PK\x01\x02";
    put(directory, kVersion);
    put_about(directory, member.crc);
    put(directory, static_cast<std::uint16_t>(member.name.size()));
    put(directory, std::uint16_t{28});  // the extra field
    put(directory, std::uint16_t{0});   // no comment
    put(directory, std::uint16_t{0});   // on the first disk
    put(directory, std::uint16_t{0});
    put(directory, std::uint32_t{0});
    put(directory, kInExtraField);
    directory += member.name;
    put(directory, std::uint16_t{1});
    put(directory, std::uint16_t{24});
    put(directory, member.bytes);
    put(directory, member.bytes);
    put(directory, member.offset);
  }
  const auto bytes = static_cast<std::int64_t>(directory.size());
  const auto count = static_cast<std::uint64_t>(members_.size());
  directory += "PK\x06\x06";
  put(directory, std::uint64_t{44});
  put(directory, kVersion);
  put(directory, kVersion);
  put(directory, std::uint32_t{0});
  put(directory, std::uint32_t{0});
  put(directory, count);
  put(directory, count);
  put(directory, bytes);
  put(directory, begin);
  directory += "PK\x06\x07";
  put(directory, std::uint32_t{0});
  put(directory, begin + bytes);
  put(directory, std::uint32_t{1});
  directory += "PK\x05\x06";
  put(directory, std::uint32_t{0});
  put(directory, std::uint16_t{0xffff});
  put(directory, std::uint16_t{0xffff});
  put(directory, kInExtraField);
  put(directory, kInExtraField);
  put(directory, std::uint16_t{0});
  file_.write(as_bytes(directory));
  file_.close();
}

}  // namespace h5pack
