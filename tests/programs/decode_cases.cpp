// Decodes the cases of tests/scripts/decode_test.py, one JSON object a line from stdin, and writes
// the pixels of each to stdout: a box of an image, or a sample made of it.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/option_names.hpp>

#include "image/image_decoder.hpp"
#include "image/sample_decoder.hpp"

namespace {

using nlohmann::json;

std::vector<std::byte> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

void put(const std::uint8_t* bytes, std::size_t count) {
  if (std::fwrite(bytes, 1, count, stdout) != count) std::exit(1);
}

void put_box(const json& of, const std::vector<std::byte>& encoded) {
  using namespace chunkio::image;
  const std::size_t channels = of["channels"];
  ImageDecoder decoder(channels);
  decoder.open(encoded);
  const Box box{of["box"][0], of["box"][1], of["box"][2], of["box"][3]};
  const DecodedBox decoded = decoder.decode(box, std::nullopt);
  for (std::size_t i = 0; i < static_cast<std::size_t>(box.height); ++i) {
    put(decoded.pixels.row(i), static_cast<std::size_t>(box.width) * channels);
  }
}

void put_sample(const json& of, const std::vector<std::byte>& encoded) {
  using namespace chunkio::image;
  const json& wanted = of["decode"];
  chunkio::DecodeOptions options{
      .height = wanted["height"],
      .width = wanted["width"],
      .crop = chunkio::from_string<chunkio::CropMode>(wanted["crop"].get<std::string>()),
      .gray = wanted["gray"],
      .exact = wanted["exact"]};
  const Decoding decoding(options);
  SampleDecoder decoder(decoding);
  const auto key = chunkio::base::augmentation_key(of["seed"], of["epoch"]);
  decoder.open(encoded, Orientation(of["orientation"].get<std::uint8_t>()),
               SampleDraw{key, of["sample_id"]});
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(decoding.sample_bytes()));
  decoder.decode(std::as_writable_bytes(std::span(pixels)));
  put(pixels.data(), pixels.size());
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const json of = json::parse(line);
    const std::vector<std::byte> encoded = contents(of["path"]);
    of.contains("box") ? put_box(of, encoded) : put_sample(of, encoded);
    std::fflush(stdout);
  }
}
