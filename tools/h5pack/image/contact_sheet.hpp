/// Draws images with captions in a grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/tensor.hpp>

namespace h5pack {

/// One image of a sheet, as a file stores it.
struct SheetImage {
  std::vector<std::byte> pixels = {};      ///< [H,W,C] or [C,H,W].
  std::vector<std::string> captions = {};  ///< Lines below the image.
};

struct ContactSheet {
  std::string title = {};
  std::int64_t columns = 1;
  std::int64_t height = 0, width = 0, channels = 0;
  chunkio::Layout layout = chunkio::Layout::nhwc;
  /// Row after row; the last row may be short.
  std::vector<SheetImage> images = {};
};

/// A drawn sheet as an image file.
struct EncodedSheet {
  std::vector<unsigned char> bytes = {};
  std::int64_t width = 0, height = 0;
};

/// Draws and encodes. Small images are enlarged by a whole factor without smoothing, large ones
/// shrunk. One channel is drawn as gray, three or four as RGB (the fourth left out), of other
/// numbers the first as gray.
/// \param extension  ".png" or ".jpg".
/// \throws chunkio::Error out_of_resources (sheet too large for an image file), unsupported
///         (encoder failed).
EncodedSheet draw_contact_sheet(const ContactSheet& sheet, const std::string& extension);

}  // namespace h5pack
