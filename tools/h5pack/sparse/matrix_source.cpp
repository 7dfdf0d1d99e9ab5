#include "h5pack/sparse/matrix_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/sparse/byte_stream.hpp"
#include "h5pack/sparse/mtx_source.hpp"
#include "h5pack/sparse/npz_source.hpp"
#include "h5pack/sparse/ratings_source.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

bool begins_with(std::span<const char> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

}  // namespace

std::unique_ptr<MatrixSource> open_matrix(const MatrixRequest& request) {
  struct ::stat status {};
  if (request.input != "-" && ::stat(request.input.c_str(), &status) == 0 &&
      S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::unsupported,
                cli::quote(request.input) + " is a folder; name an .npz, .mtx or CSV file");
  }
  auto stream = std::make_unique<ByteStream>(request.input);
  const auto begin = stream->peek(14);
  const auto refuse_columns = [&](const char* kind) {
    if (request.row_from.empty() && request.column_from.empty() && request.value_from.empty()) {
      return;
    }
    throw Error(ErrorCode::invalid_argument,
                cli::quote(request.input) + " is " + kind +
                    "; --row-from, --column-from and --value-from are for CSV files");
  };
  if (begins_with(begin, "pk\x03\x04")) {
    refuse_columns("an .npz file");
    if (stream->size() == 0) {
      throw Error(ErrorCode::unsupported,
                  stream->name() + " is an .npz file, which must be a regular file");
    }
    return open_npz(request);
  }
  if (begins_with(begin, "%%matrixmarket")) {
    refuse_columns("a Matrix Market file");
    return open_mtx(request, std::move(stream));
  }
  // HDF5, as .h5ad and other binary files begin, has no text.
  if (std::find(begin.begin(), begin.end(), '\0') != begin.end() || begins_with(begin, "\x89hdf")) {
    throw Error(ErrorCode::unsupported, stream->name() +
                                            " is neither an .npz file nor text; .npz, .mtx, "
                                            ".mtx.gz and CSV files are read");
  }
  return open_ratings(request, std::move(stream));
}

}  // namespace h5pack
