/// Decoding against Pillow (tests/scripts/make_images.py), and refusal of everything damaged.
#include "h5pack/image/decode.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/pillow_pictures.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::test::PillowImages;
using chunkio::test::read_bytes;
using chunkio::test::write_bytes;

std::vector<std::uint8_t> decode(const std::string& path, ImageSize expected,
                                 ColorMode color = ColorMode::rgb,
                                 OrientationMode orientation = OrientationMode::ignore) {
  ImageDecoder decoder(color, orientation);
  EXPECT_EQ(decoder.open(path), expected) << path;
  std::vector<std::uint8_t> pixels(
      static_cast<std::size_t>(expected.pixels() * (color == ColorMode::rgb ? 3 : 1)));
  decoder.decode(pixels.data());
  return pixels;
}

/// The error of opening and decoding `path`.
Error decode_error(const std::string& path) {
  ImageDecoder decoder(ColorMode::rgb, OrientationMode::ignore);
  try {
    const ImageSize size = decoder.open(path);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.pixels() * 3));
    decoder.decode(pixels.data());
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error;
  }
  ADD_FAILURE() << path << " was decoded";
  return Error(ErrorCode::hdf5_failed, "");
}

class Decode : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { images_ = new PillowImages(); }
  static void TearDownTestSuite() {
    delete images_;
    images_ = nullptr;
  }
  static std::string file(const std::string& name) { return images_->file(name); }

  // The tests feed it much that is broken.
  const OpenCvSilence silence_;
  static PillowImages* images_;
};

PillowImages* Decode::images_ = nullptr;

TEST_F(Decode, PixelsEqualPillow) {
  const auto cases = images_->list("manifest.txt");
  ASSERT_GE(cases.size(), 25U);
  for (const auto& image : cases) {
    const ImageSize size{image.height, image.width};
    EXPECT_EQ(decode(file(image.file), size), read_bytes(file(image.name + ".rgb"))) << image.file;
    EXPECT_EQ(decode(file(image.file), size, ColorMode::gray),
              read_bytes(file(image.name + ".gray")))
        << image.file << " as gray";
  }
}

TEST_F(Decode, OneDecoderReadsManyKindsInTurn) {
  const auto cases = images_->list("manifest.txt");
  ImageDecoder decoder(ColorMode::rgb, OrientationMode::ignore);
  for (int round = 0; round < 2; ++round) {
    for (const auto& image : cases) {
      const ImageSize size = decoder.open(file(image.file));
      std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.pixels() * 3));
      decoder.decode(pixels.data());
      EXPECT_EQ(pixels, read_bytes(file(image.name + ".rgb"))) << image.file;
    }
  }
}

TEST_F(Decode, OrientationIsIgnoredOrApplied) {
  const auto cases = images_->list("oriented.txt");
  ASSERT_EQ(cases.size(), 32U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& image = cases[i];
    const ImageSize upright{image.height, image.width};
    const bool turned = i % 8 >= 4;
    const ImageSize stored = turned ? ImageSize{upright.width, upright.height} : upright;
    EXPECT_EQ(decode(file(image.file), stored), read_bytes(file(image.name + ".stored")))
        << image.file;
    EXPECT_EQ(decode(file(image.file), upright, ColorMode::rgb, OrientationMode::apply),
              read_bytes(file(image.name + ".upright")))
        << image.file;
  }
}

TEST_F(Decode, EveryTruncatedFileIsAnError) {
  for (const std::string name :
       {"jpeg_420.jpg", "jpeg_progressive.jpg", "png_rgb.png", "png_16.png", "bmp.bmp", "ppm.ppm",
        "pgm_16.pgm", "tiff.tif", "tiff_lzw.tiff", "webp_lossless.webp", "webp_lossy.webp"}) {
    const auto whole = read_bytes(file(name));
    const std::string path = file("cut_" + name);
    std::vector<std::size_t> sizes;
    for (std::size_t percent : {5U, 25U, 50U, 99U}) sizes.push_back(whole.size() * percent / 100);
    if (name == "jpeg_420.jpg") {
      for (std::size_t percent : {1U, 75U, 90U}) sizes.push_back(whole.size() * percent / 100);
      // 1 and 2: only the end marker.
      for (std::size_t missing : {1U, 2U, 3U, 10U}) sizes.push_back(whole.size() - missing);
    }
    for (const std::size_t size : sizes) {
      write_bytes(path, std::span(whole).first(size));
      EXPECT_EQ(decode_error(path).code(), ErrorCode::corrupt_data) << name << " " << size;
    }
  }
}

TEST_F(Decode, ExtraneousBytesInAJpegAreAnError) {
  auto bytes = read_bytes(file("jpeg_420.jpg"));
  bytes.insert(bytes.end() - 2, 64, 0x11);
  const std::string path = file("extraneous.jpg");
  write_bytes(path, bytes);
  EXPECT_NE(std::string(decode_error(path).what()).find("extraneous"), std::string::npos);
}

TEST_F(Decode, BytesAfterTheEndOfAJpegAreNoError) {
  auto bytes = read_bytes(file("jpeg_420.jpg"));
  bytes.insert(bytes.end(), 1000, 0x42);  // Cameras append previews and metadata.
  const std::string path = file("trailer.jpg");
  write_bytes(path, bytes);
  EXPECT_EQ(decode(path, {37, 51}), read_bytes(file("jpeg_420.rgb")));
}

TEST_F(Decode, ATiffWhoseStripsAreNotAllThereIsAnErrorWhateverOpenCvSays) {
  const auto whole = read_bytes(file("tiff.tif"));
  write_bytes(file("cut.tif"), std::span(whole).first(whole.size() - 1));
  EXPECT_NE(std::string(decode_error(file("cut.tif")).what()).find("ends early"),
            std::string::npos);
}

TEST_F(Decode, WhatLibtiffCallsDamagedIsAnError) {
  auto bytes = read_bytes(file("tiff_lzw.tiff"));
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
  std::fill(middle, middle + 40, std::uint8_t{0xFF});
  write_bytes(file("damaged.tiff"), bytes);
  EXPECT_EQ(decode_error(file("damaged.tiff")).code(), ErrorCode::corrupt_data);
  EXPECT_EQ(decode(file("tiff_lzw.tiff"), {37, 51}).size(), 37U * 51 * 3);  // The next is not.
}

TEST_F(Decode, TextSamplesThatAreNoNumbersAreAnError) {
  const auto write = [&](const std::string& text) {
    write_bytes(file("text.ppm"), std::vector<std::uint8_t>(text.begin(), text.end()));
    return file("text.ppm");
  };
  EXPECT_EQ(decode(write("P3\n# two\n2 1\n255\n1 2 3 # first\n4 5 255\n"), {1, 2}),
            (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255}));
  for (const std::string damaged :
       {"1 2 3 4 2x0 6", "1 2 3 4 5 -6", "1 2 3 4 5 256", "1 2 3 4 5"}) {
    EXPECT_EQ(decode_error(write("P3\n2 1\n255\n" + damaged + "\n")).code(),
              ErrorCode::corrupt_data)
        << damaged;
  }
}

TEST_F(Decode, EveryFlippedByteOfAPngIsAnError) {
  // That of a chunk that is left out, such as eXIf, no decoder would see.
  for (const std::string name : {"png_palette.png", "oriented_png_6.png"}) {
    const auto whole = read_bytes(file(name));
    const std::string path = file("flipped.png");
    for (std::size_t i = 8; i < whole.size(); i += 7) {
      auto bytes = whole;
      bytes[i] ^= 0x10;
      write_bytes(path, bytes);
      EXPECT_EQ(decode_error(path).code(), ErrorCode::corrupt_data) << name << " byte " << i;
    }
  }
}

TEST_F(Decode, DamageIsToldByTheErrorAlone) {
  const auto whole = read_bytes(file("tiff_lzw.tiff"));
  write_bytes(file("quiet.tiff"), std::span(whole).first(whole.size() / 2));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(decode_error(file("quiet.tiff")).code(), ErrorCode::corrupt_data);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Decode, WhatIsNoSupportedImageIsRefused) {
  for (const std::string name :
       {"refused_gif.gif", "refused_gif_named.jpg", "refused_text.jpg", "refused_animated.webp",
        "refused_animated.png", "refused_pages.tif"}) {
    EXPECT_EQ(decode_error(file(name)).code(), ErrorCode::unsupported) << name;
  }
  EXPECT_NE(std::string(decode_error(file("refused_gif_named.jpg")).what()).find("GIF"),
            std::string::npos);
}

TEST_F(Decode, EmptyMissingAndIrregularFilesAreRefused) {
  write_bytes(file("empty.jpg"), {});
  EXPECT_EQ(decode_error(file("empty.jpg")).code(), ErrorCode::corrupt_data);
  EXPECT_EQ(decode_error(file("absent.jpg")).code(), ErrorCode::not_found);
  EXPECT_EQ(decode_error(images_->folder()).code(), ErrorCode::unsupported);
  const std::string pipe = file("pipe.jpg");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(decode_error(pipe).code(), ErrorCode::unsupported);
}

TEST_F(Decode, HugeDeclaredSizesAreRefusedBeforeAllocation) {
  auto jpeg = read_bytes(file("jpeg_420.jpg"));
  const std::vector<std::uint8_t> start_of_frame = {0xFF, 0xC0};
  const auto frame =
      std::search(jpeg.begin(), jpeg.end(), start_of_frame.begin(), start_of_frame.end());
  ASSERT_NE(frame, jpeg.end());
  std::fill_n(frame + 5, 4, std::uint8_t{0xFE});  // 65278 x 65278
  write_bytes(file("huge.jpg"), jpeg);
  EXPECT_NE(std::string(decode_error(file("huge.jpg")).what()).find("65278x65278"),
            std::string::npos);

  // Declared by a script, as the header's checksum must be right.
  for (const std::string name : {"huge_60000x60000.png", "huge_2000000x1000.png"}) {
    EXPECT_EQ(decode_error(file(name)).code(), ErrorCode::refused_by_policy) << name;
  }
}

}  // namespace
}  // namespace h5pack
