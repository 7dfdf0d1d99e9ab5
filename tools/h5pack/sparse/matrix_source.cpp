#include "h5pack/sparse/matrix_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/sparse/byte_stream.hpp"
#include "h5pack/sparse/hdf5_source.hpp"
#include "h5pack/sparse/mtx_source.hpp"
#include "h5pack/sparse/npz_source.hpp"
#include "h5pack/sparse/ratings_source.hpp"
#include "h5pack/sparse/transposed_matrix.hpp"

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

/// \throws Error invalid_argument if options for another kind of file were given.
void refuse_options(const MatrixRequest& request, const char* kind, bool is_csv, bool is_hdf5) {
  const bool columns =
      !request.row_from.empty() || !request.column_from.empty() || !request.value_from.empty();
  const bool matrix = !request.matrix.empty() || request.allow_external;
  const char* what = nullptr;
  if (columns && !is_csv) what = "--row-from, --column-from and --value-from are for CSV files";
  if (matrix && !is_hdf5) what = "--images and --allow-external are for HDF5 files";
  if (what == nullptr) return;
  throw Error(ErrorCode::invalid_argument, cli::quote(request.input) + " is " + kind + "; " + what);
}

std::unique_ptr<MatrixSource> open_kind(const MatrixRequest& request) {
  struct ::stat status {};
  const bool exists = request.input != "-" && ::stat(request.input.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::unsupported,
                cli::quote(request.input) + " is a folder; name an .npz, .mtx, HDF5 or CSV file");
  }
  const auto open_hdf5 = [&] {
    refuse_options(request, "an HDF5 file", false, true);
    return open_hdf5_matrix(request);
  };
  // Shards, and addresses.
  if (!exists && (request.input.find('*') != std::string::npos ||
                  request.input.find("://") != std::string::npos)) {
    return open_hdf5();
  }
  auto stream = std::make_unique<ByteStream>(request.input);
  const auto begin = stream->peek(14);
  const auto need_file = [&](const char* kind) {
    if (stream->is_file()) return;
    throw Error(
        ErrorCode::unsupported,
        stream->name() + " is " + kind + ", which must be a regular file that is not compressed");
  };
  if (begins_with(begin, "pk\x03\x04")) {
    refuse_options(request, "an .npz file", false, false);
    need_file("an .npz file");
    return open_npz(request);
  }
  if (begins_with(begin, "\x89hdf\r\n\x1a\n")) {
    need_file("an HDF5 file");
    return open_hdf5();
  }
  if (begins_with(begin, "%%matrixmarket")) {
    refuse_options(request, "a Matrix Market file", false, false);
    return open_mtx(request, std::move(stream));
  }
  if (std::find(begin.begin(), begin.end(), '\0') != begin.end()) {
    throw Error(ErrorCode::unsupported, stream->name() +
                                            " is neither an .npz nor an HDF5 file nor text; .npz, "
                                            ".h5ad, .h5, .mtx, .mtx.gz and CSV files are read");
  }
  refuse_options(request, "a CSV file", true, false);
  return open_ratings(request, std::move(stream));
}

}  // namespace

std::unique_ptr<MatrixSource> open_matrix(const MatrixRequest& request) {
  std::unique_ptr<MatrixSource> matrix = open_kind(request);
  return request.transpose ? transposed(std::move(matrix)) : std::move(matrix);
}

}  // namespace h5pack
