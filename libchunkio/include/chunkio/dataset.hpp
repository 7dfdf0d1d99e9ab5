/// A dataset in an HDF5 file: what it holds, and plain reads of it.
///
///     const chunkio::Dataset dataset = chunkio::Dataset::open("train.h5");
///     const chunkio::DatasetInfo& info = dataset.info();
///     std::vector<std::byte> image(info.height * info.width * info.channels);
///     dataset.read_images(7, 1, image);  // the eighth, uint8 [H,W,C]
///
/// It is a set of arrays that run parallel: row i of each belongs to sample i. One leads, the
/// others are labels and fields. Mostly uint8 images [N,H,W,C], [N,C,H,W] or [N,H,W] lead; but any
/// numbers [N,...] do, and CSR matrices. Files written by h5pack or DatasetWriter describe
/// themselves; other HDF5 files work too. Data flow: Dataset -> Loader. Copies share what is open,
/// and any thread may call any member.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/chunk_layout.hpp>
#include <chunkio/export.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

namespace internal {
struct Access;
}

/// How uint8 pixels come of other numbers: `black` becomes 0, `white` 255, and what lies between
/// them the nearest of 256 steps. \pre finite, and not equal; `black` may be the larger.
struct PixelScale {
  double black = 0;
  double white = 1;
  /// Values outside become 0 or 255. False: they are an error that names the row, as NaN always is.
  bool clip = false;
};

/// Which part of an image becomes a sample, before it is resized.
enum class CropMode {
  center,          ///< The middle, after the shorter side is resized: for evaluation.
  random_resized,  ///< A part of random place, area and ratio, another one each epoch.
  whole,           ///< All of it; its ratio may change.
};

/// The enumerator's name, as a static string.
CHUNKIO_EXPORT std::string_view to_string(CropMode mode) noexcept;

/// What random parts of an image are drawn from: torchvision's RandomResizedCrop.
struct ResizedCropRanges {
  double min_scale = 0.08, max_scale = 1;           ///< Of the image's area; 0 to 1.
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;  ///< Of width to height; 1/64 to 64.
};

/// How images that are stored encoded, in sizes of their own, become samples of one size while they
/// are read. Pixels are those of Pillow and torchvision (Resize, CenterCrop, RandomResizedCrop;
/// antialiased, bilinear), bit for bit.
struct DecodeOptions {
  std::int64_t height = 224, width = 224;  ///< Of a sample, in pixels; 1 to 65535.
  CropMode crop = CropMode::center;
  /// Of `center`: pixels of the shorter side of the image that the middle is cut out of. 0: 8/7 of
  /// the larger of height and width, as 256 for 224.
  std::int64_t shorter_side = 0;
  ResizedCropRanges ranges = {};  ///< Of `random_resized`.
  bool gray = false;              ///< One channel instead of RGB.
  /// False: JPEG images of which less is wanted than a half, a quarter or an eighth of their pixels
  /// a side are decoded to that size, which is faster, and gives slightly other pixels.
  bool exact = true;
};

/// How files are read whose path is an address: https://host/train.h5, s3://bucket/train.h5.
struct RemoteOptions {
  /// Requests that a Loader has under way at the same time, each of 2 MiB; 1 to 1024.
  std::int64_t requests = 32;
  /// A request that fails is tried again for so long, unless bytes come meanwhile.
  double timeout_seconds = 60;
  /// A folder on a local disk that keeps downloaded bytes for later epochs, other runs and other
  /// processes of this user. It is made if it is not there, and may be deleted at any time. Each
  /// piece is compared with its digest when it is read. Empty: none.
  std::string cache = {};
  /// That all files in that folder may take; a twentieth of the disk is left free in any case.
  /// Files that no process has open make room for others; then what comes is not kept.
  std::int64_t cache_bytes = std::int64_t{64} << 30;
  /// A local file that save_remote_index(), or `h5pack index`, wrote of these files: each opens by
  /// one request, whose answer must have the version that the index is of. Empty: none.
  std::string index = {};
};

/// How to find and read the arrays of a file. All defaults fit files of this library.
struct OpenOptions {
  /// Path of the dataset that leads, inside the file: images, any numbers [N,...], or the group of
  /// a CSR matrix. Empty: `images`, else the CSR matrix `X` or `matrix`, else the only uint8
  /// dataset with four axes, else the only one with three; in a file without images, the only CSR
  /// matrix, or the only dataset of numbers with two axes or more.
  std::string images = {};
  /// Path of the label dataset. Empty: `labels` (or `label`) if there is one that can be labels.
  std::string labels = {};
  /// Axis order. Absent: the `layout` attribute, else the axis whose size is 1, 3 or 4.
  std::optional<Layout> layout = {};
  /// Makes uint8 of images that are stored as floating-point numbers or wider integers, while they
  /// are read through libhdf5: slow, so meant for writing them again. Absent: they are delivered as
  /// the numbers they are, which are no images.
  std::optional<PixelScale> scale = {};
  /// Delivers encoded images as samples uint8 [H,W,C] of one size. Absent: such a file can be
  /// looked at, and read with read_encoded(), but no Loader reads it. Refused for other files.
  std::optional<DecodeOptions> decode = {};
  /// Takes a sparse matrix that is stored by columns (CSC) as its transpose, the columns of which
  /// lie one after another: they become the rows. False: such a matrix is refused. Says nothing of
  /// other files.
  bool columns_as_rows = false;
  /// Read also what lies outside of the file: through soft and external links, external storage and
  /// virtual datasets. Only for files you trust: they can name any file this process may read. A
  /// source file that a virtual dataset lacks reads as the fill value.
  bool allow_external = false;
  /// Path of a program that looks at each file first: `chunkio-probe`, which is installed with this
  /// library. libhdf5, 2.2 too, crashes on some damaged files and hangs on others; such a file is
  /// an error then (corrupt_data, after 10 seconds at most). Takes some milliseconds a file. Empty:
  /// none.
  std::string probe = {};
  RemoteOptions remote = {};
};

/// One of the arrays that run parallel: a value of shape `row_shape` for each sample.
struct FieldInfo {
  std::string name = {};  ///< Path in the file without the leading slash.
  DType dtype = DType::uint8;
  Shape row_shape = {};  ///< Without the sample axis; rank 0 for one number a sample.
};

/// Of a CSR matrix [N, columns] that leads: a group with the values (`data`), their columns
/// (`indices`) and where each row begins (`indptr`), as AnnData and SciPy lay them out.
struct SparseInfo {
  std::int64_t columns = 0;
  std::int64_t num_entries = 0;      ///< Stored, of all rows: a column and a value each.
  DType index_dtype = DType::int32;  ///< Of columns as they are delivered: int32 or int64.
  bool transposed = false;           ///< Stored by columns: see OpenOptions::columns_as_rows.
  /// Paths of the names of rows, and of columns; empty if there are none. As AnnData (`obs/_index`,
  /// `var/_index`) and 10x Genomics (`barcodes`, `features/id`) keep them.
  std::string row_names = {}, column_names = {};
};

/// Which names are wanted.
enum class MatrixAxis : std::uint8_t { rows = 0, columns = 1 };
CHUNKIO_EXPORT std::string_view to_string(MatrixAxis axis) noexcept;

/// Of images that are stored encoded (JPEG, PNG, WebP), each in a size of its own: a group with
/// their bytes one after the other (`data`) and where each begins (`indptr`).
struct EncodedInfo {
  std::int64_t num_bytes = 0;  ///< Of all images.
  /// Of the images as they are stored, in pixels. A larger one is damaged.
  std::int64_t max_height = 0, max_width = 0;
  std::int64_t max_pixels = 0;
  /// By OpenOptions::decode: samples are other ones each epoch, so they cannot be kept.
  bool random_crops = false;
};

/// One image as its file had it.
struct EncodedImage {
  std::vector<std::byte> bytes = {};
  std::int64_t height = 0, width = 0;  ///< Of the pixels as they are stored.
  /// How they are turned to stand upright, as in EXIF: 1 (they do) to 8.
  std::uint8_t orientation = 1;
  /// XXH3_64 of the bytes, as the file that they are from says; absent: it says nothing.
  std::optional<std::uint64_t> digest = {};
};

/// Rows of a CSR matrix in memory of their own.
struct SparseRows {
  SparseTensor tensor = {};  ///< Valid while `memory` exists.
  std::shared_ptr<const std::byte[]> memory = {};
};

/// Mean and standard deviation of each channel over all pixels of all images, on the scale 0..1.
struct ChannelStatistics {
  std::vector<double> mean = {};
  std::vector<double> std = {};
};

/// How large the images were in the source, before they were resized. In pixels, all >= 1.
struct SourceSizes {
  struct Count {
    std::int64_t height = 0, width = 0;
    std::int64_t images = 0;
  };
  std::int64_t min_height = 0, max_height = 0;
  std::int64_t min_width = 0, max_width = 0;
  /// The most frequent exact sizes, most frequent first. They need not add up to all images.
  std::vector<Count> most_frequent = {};
};

/// Which part of a larger dataset a file holds: h5pack --shard writes such files, and
/// Dataset::open() reads all of them as one.
struct ShardInfo {
  std::int64_t index = 0;       ///< 0 <= index < count.
  std::int64_t count = 1;       ///< At most kMaxShards.
  std::int64_t first_row = 0;   ///< Of the whole dataset, as it was planned: nothing left out.
  std::int64_t total_rows = 0;  ///< Of the whole dataset, likewise.
  /// Equal in all files that belong together, and in no others: a digest of the source and of the
  /// options.
  std::string set = {};

  friend bool operator==(const ShardInfo&, const ShardInfo&) = default;
};

/// A dataset has at most so many files.
inline constexpr std::int64_t kMaxShards = 4096;

/// The name of one of `count` files: both numbers, five digits each, before the extension of
/// `path`. \throws Error invalid_argument unless 0 <= index < count <= kMaxShards.
CHUNKIO_EXPORT std::string shard_path(const std::string& path, std::int64_t index,
                                      std::int64_t count);
/// The name for all of them. \throws Error invalid_argument unless 1 <= count <= kMaxShards.
CHUNKIO_EXPORT std::string shard_pattern(const std::string& path, std::int64_t count);

/// One of the files of a dataset that has several.
struct ShardFile {
  std::string path = {};
  std::int64_t first_row = 0;  ///< In the dataset.
  std::int64_t num_samples = 0;
};

/// Something in a file that cannot be opened or read: an object, or an attribute of one.
struct DamagedObject {
  std::string name = {};    ///< Path of the object without the leading slash; empty for the root.
  std::string reason = {};  ///< One line that names file and object.
};

/// What a file says about itself. For third-party files only the first block is filled.
struct DatasetInfo {
  std::string path = {};  ///< As given to open().
  /// The files of a dataset of several, in order. Then `uuid` is a digest of their uuids, `shard`
  /// is absent, counts, statistics and digests are of all; the rest is what all say, or the first.
  std::vector<ShardFile> shards = {};
  /// The array that leads, as it is delivered: images of one channel that are stored as [N,H,W]
  /// have three axes here, too.
  FieldInfo leading = {};
  std::int64_t num_samples = 0;  ///< N >= 1.
  /// Present if a CSR matrix leads: `leading` is then its group, the type of its values, and
  /// [columns].
  std::optional<SparseInfo> sparse = {};
  /// Present if encoded images lead. With OpenOptions::decode they are images of that size for all
  /// that follows; without, uint8 that are no images.
  std::optional<EncodedInfo> encoded = {};
  // Of images; empty and 0 if other numbers lead.
  std::string images_path = {};  ///< Path of the image dataset inside the file: leading.name.
  std::int64_t height = 0, width = 0, channels = 0;
  Layout layout = Layout::nhwc;
  // Of the array that leads.
  /// Shape [N,...], of images [N,H,W,C], [N,C,H,W] or, of one channel, [N,H,W]; chunking, filters.
  StoredLayout stored = {};
  std::int64_t num_chunks = 0;           ///< 0 if not chunked.
  std::int64_t stored_bytes = 0;         ///< Bytes in the file, after filters.
  std::optional<FieldInfo> labels = {};  ///< int64 [N], or uint8 [N,A] attribute tables.
  /// Without labels, though a dataset looks like them: which one, why it was not taken, and what
  /// would do. Else empty.
  std::string why_no_labels = {};
  std::vector<FieldInfo> fields = {};  ///< Every other numeric dataset with first axis N, by name.
  /// What neither leads nor is labels or a field, by name: "meta/name string [50000]".
  std::vector<std::string> left_out = {};
  /// What the file has and libhdf5 cannot open, by name: fields may be missing for that reason.
  /// verify_objects() finds more, since opening a file reads only some of it.
  std::vector<DamagedObject> damaged_objects = {};

  std::optional<std::int64_t> format_version = {};  ///< Absent: a third-party file.
  std::string creator = {}, uuid = {}, split = {}, order = {};
  std::optional<std::uint64_t> seed = {};
  std::optional<ShardInfo> shard = {};            ///< Absent: the file is no part of others.
  std::string options_json = {};                  ///< Packing options and source.
  std::string channel_order = {};                 ///< "RGB" or "gray".
  std::vector<std::string> class_names = {};      ///< Of labels 0..K-1.
  std::vector<std::string> attribute_names = {};  ///< Of the columns of a label table.
  std::vector<std::int64_t> class_counts = {};    ///< Samples of each class.
  std::optional<ChannelStatistics> statistics = {};
  /// Of each channel: mean over all images of the standard deviation within each, on the scale
  /// 0..1. Leaves out how images differ from each other, so it is below `statistics->std`.
  std::vector<double> mean_picture_std = {};
  std::optional<SourceSizes> source_sizes = {};
  /// Of format version 1: XXH3-64 of the pixels of each chunk it was packed in, before any filter.
  /// Empty if absent.
  std::vector<std::uint64_t> chunk_digests = {};
  /// From version 2 on: the datasets whose rows the digest of each sample covers, the images
  /// first; empty without digests. Those stay in the file, as there may be many (format.md).
  std::vector<std::string> digests_cover = {};

  /// Whether uint8 images lead.
  [[nodiscard]] bool has_images() const noexcept { return channels > 0; }
  /// Of a row of the array that leads; of images [H,W,C] or [C,H,W].
  [[nodiscard]] Shape sample_shape() const {
    if (!has_images()) return leading.row_shape;
    return layout == Layout::nhwc ? Shape{height, width, channels} : Shape{channels, height, width};
  }
  /// Of a row as it is delivered; of a CSR matrix the mean over its rows of their values and
  /// columns, of encoded images without OpenOptions::decode that of their bytes, >= 1.
  [[nodiscard]] std::int64_t sample_bytes() const {
    if (has_images()) return height * width * channels;
    if (sparse) {
      const auto value_bytes =
          static_cast<std::int64_t>(size_of(leading.dtype) + size_of(sparse->index_dtype));
      return std::max<std::int64_t>(sparse->num_entries * value_bytes / num_samples, 1);
    }
    if (encoded) return std::max<std::int64_t>(encoded->num_bytes / num_samples, 1);
    return leading.row_shape.num_elements() * static_cast<std::int64_t>(size_of(leading.dtype));
  }
};

/// For what only images will do. \throws Error unsupported naming the file and what leads instead.
CHUNKIO_EXPORT void require_images(const DatasetInfo& info);

/// Opens every object of an HDF5 file, reads its attributes and some elements of each dataset, and
/// counts its chunks, all through libhdf5, which may crash or hang meanwhile: for a program that
/// OpenOptions::probe names, which writes a byte to standard output afterwards.
/// \param path  the program's argument. For what is no local file that is `-`: its bytes come from
///              the process that started the program, and less is read.
/// \throws Error as Dataset::open(): the file cannot be opened.
CHUNKIO_EXPORT void walk_file(const std::string& path);

/// An open dataset. Copies share what is open; all members are safe to call from several threads.
class CHUNKIO_EXPORT Dataset {
 public:
  /// Opens a file read-only and checks what it holds. Blocks on I/O; reads no images.
  ///
  /// A path such as `train-*-of-00008.h5` (shard_pattern()) stands for all eight files, opened as
  /// one dataset whose rows are theirs, one file after the other. All of them must be there, fit
  /// together and, if they say so, belong together. A file descriptor a file stays open, and
  /// another one where a Loader bypasses the page cache.
  /// \throws Error not_found (no such file or dataset), corrupt_data (not HDF5, truncated or
  ///         inconsistent; a file of another dataset), unsupported (no dataset that leads, or
  ///         several that may: the message lists them), io_failed, invalid_argument (layout cannot
  ///         be told: the message names the option), out_of_resources (more files than
  ///         descriptors).
  static Dataset open(const std::string& path, const OpenOptions& options = {});
  /// Opens one file, wherever its bytes come from. Options that ask something of the page cache or
  /// of a local file (direct_io, the mapped source) do not concern it.
  /// \throws Error as above, and what the source throws.
  static Dataset open(std::shared_ptr<const ByteSource> bytes, const OpenOptions& options = {});

  [[nodiscard]] const DatasetInfo& info() const noexcept;
  [[nodiscard]] std::int64_t size() const noexcept { return info().num_samples; }

  /// Reads images [first, first + count) through libhdf5 into `out`, in the file's layout.
  /// Blocks on I/O.
  /// \pre out.size() == count * sample_bytes().
  /// \throws Error unsupported (other numbers lead), invalid_argument (range, size), hdf5_failed.
  void read_images(std::int64_t first, std::int64_t count, std::span<std::byte> out) const;
  /// Reads rows [first, first + count) of a field (or of the labels, or of the array that leads, by
  /// its name) through libhdf5 into `out`, row-major, in the dtype that find_field() reports.
  /// A field that is read in pieces stays open until its last row was read. Blocks on I/O.
  /// \pre out.size() == count * row_bytes(field).
  /// \throws Error not_found, invalid_argument (range, size), unsupported (chunks too large to
  ///         decode, a filter that libhdf5 lacks, a uint64 label beyond int64), corrupt_data,
  ///         hdf5_failed.
  void read_field(std::string_view name, std::int64_t first, std::int64_t count,
                  std::span<std::byte> out) const;
  /// Reads rows [first, first + count) of the CSR matrix that leads through libhdf5. Blocks on I/O.
  /// \throws Error unsupported (no CSR matrix leads, or more than 2^31 values for 32-bit columns),
  ///         invalid_argument (range), corrupt_data (offsets that decrease, a column out of range),
  ///         hdf5_failed, out_of_resources.
  [[nodiscard]] SparseRows read_sparse(std::int64_t first, std::int64_t count) const;
  /// Reads where rows of the CSR matrix that leads begin among the entries of all rows, through
  /// libhdf5: those from `first` on, the end of the last of them included. Blocks on I/O.
  /// \pre out.size() is one more than the number of rows, >= 2.
  /// \throws Error as read_sparse().
  void read_row_begins(std::int64_t first, std::span<std::int64_t> out) const;
  /// Reads entries from `first` on of all rows, one row after another, through libhdf5: for
  /// matrices with rows too long to be held in memory. Blocks on I/O.
  /// \param columns  of those entries, as many as are wanted; or empty: values only.
  /// \param values   of those entries, in the type that `leading` says; or empty: columns only.
  /// \throws Error as read_sparse().
  void read_entries(std::int64_t first, std::span<std::int64_t> columns,
                    std::span<std::byte> values) const;
  /// Gives the names of all rows, or columns, of the CSR matrix that leads, in order; none if it
  /// has none. Trailing padding is removed. Blocks on I/O.
  /// \param take  called with libhdf5 locked, so it must not wait for another thread.
  ///              What it throws goes through.
  /// \throws Error corrupt_data, unsupported (stored in a way that is not read; longer than 4,096
  ///         bytes), hdf5_failed.
  void read_names(MatrixAxis axis, const std::function<void(std::string_view name)>& take) const;
  /// The texts that the whole numbers of a field stand for, from 0 on, where the file has them as
  /// anndata does: of `obs/kind/codes` those are `obs/kind/categories`. Absent: there are none, and
  /// the numbers are just that. Blocks on I/O.
  /// \throws Error not_found (no such field), unsupported (several files number them differently);
  ///         as read_names(), and as find_field().
  [[nodiscard]] std::optional<std::vector<std::string>> categories(std::string_view field) const;
  /// Reads an encoded image as it is stored, through libhdf5, without comparing it with its digest.
  /// Blocks on I/O.
  /// \throws Error unsupported (no encoded images lead), invalid_argument (there is no such row),
  ///         corrupt_data (offsets that decrease), hdf5_failed.
  [[nodiscard]] EncodedImage read_encoded(std::int64_t row) const;
  /// The array of that name: the one that leads, the labels or a field; absent if there is none.
  /// \throws Error unsupported if it has a row for each sample, but impossibly many bytes,
  ///         corrupt_data if it is one of damaged_objects.
  [[nodiscard]] std::optional<FieldInfo> find_field(std::string_view name) const;
  /// Bytes of one row of `field`.
  static std::size_t row_bytes(const FieldInfo& field);

  /// Internal.
  struct Impl;

 private:
  friend struct internal::Access;
  [[nodiscard]] const std::shared_ptr<const Impl>& impl() const noexcept { return impl_; }
  explicit Dataset(std::shared_ptr<const Impl> impl) noexcept;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace chunkio
