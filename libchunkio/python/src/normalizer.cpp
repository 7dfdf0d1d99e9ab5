/// chunkio::Normalizer.
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

#include <chunkio/normalizer.hpp>

#include "bindings.hpp"
#include "keywords.hpp"
#include "tensor.hpp"

namespace chunkio::python {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// As many as a loop keeps coming back to: what it holds, what is being filled.
constexpr std::size_t kMaxSpare = 4;

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

struct Buffer {
  std::unique_ptr<std::byte, Free> memory;
  std::size_t bytes = 0;
};

Buffer allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  Buffer buffer{std::unique_ptr<std::byte, Free>(
                    static_cast<std::byte*>(std::aligned_alloc(alignment, rounded))),
                rounded};
  if (!buffer.memory) throw std::bad_alloc();
  if (bytes >= kHugePage) ::madvise(buffer.memory.get(), rounded, MADV_HUGEPAGE);
  return buffer;
}

/// Buffers for normalised batches, used again when Python has dropped what was in them.
/// Thread-safe. A buffer may outlive the pool.
class OutputPool {
 public:
  /// Memory of at least `bytes` bytes, aligned to 64, on huge pages where the system gives them:
  /// the kernel takes longer to make small pages than a batch takes to be normalised. \throws
  /// std::bad_alloc.
  [[nodiscard]] std::shared_ptr<std::byte> take(std::size_t bytes) {
    Buffer buffer;
    {
      const std::lock_guard lock(spare_->mutex);
      const auto found = std::find_if(spare_->buffers.begin(), spare_->buffers.end(),
                                      [&](const Buffer& spare) { return spare.bytes >= bytes; });
      if (found != spare_->buffers.end()) {
        buffer = std::move(*found);
        spare_->buffers.erase(found);
      }
    }
    if (!buffer.memory) buffer = allocate(bytes);
    std::byte* const memory = buffer.memory.get();
    const auto owned =
        std::make_shared<std::pair<std::shared_ptr<Spare>, Buffer>>(spare_, std::move(buffer));
    return {memory, [owned](std::byte*) { owned->first->put(std::move(owned->second)); }};
  }

 private:
  struct Spare {
    Spare() { buffers.reserve(kMaxSpare); }
    void put(Buffer buffer) noexcept {
      const std::lock_guard lock(mutex);
      if (buffers.size() < kMaxSpare) buffers.push_back(std::move(buffer));
    }

    std::mutex mutex;
    std::vector<Buffer> buffers;
  };
  std::shared_ptr<Spare> spare_ = std::make_shared<Spare>();
};

class PyNormalizer {
 public:
  PyNormalizer(const DatasetInfo& info, NormalizeOptions options, std::int64_t num_threads)
      : normalizer_(Normalizer(info, std::move(options), num_threads)) {}

  PyTensor operator()(const Batch& batch, std::int64_t echo_pass) {
    const Normalizer& normalize = normalizer_.get("the Normalizer");
    const Shape shape = normalize.output_shape(batch.size());
    const std::size_t bytes = normalize.output_bytes(batch.size());
    const std::shared_ptr<std::byte> memory = pool_.take(bytes);
    {
      const WithoutGil no_gil;
      normalize(batch, std::span(memory.get(), bytes), echo_pass);
    }
    return {memory, Tensor::writable(memory.get(), normalize.options().dtype, shape)};
  }

 private:
  OutputPool pool_;
  Owned<Normalizer> normalizer_;
};

class PyDensifier {
 public:
  PyDensifier(std::int64_t columns, const DenseOptions& options, std::int64_t num_threads)
      : columns_(columns), densify_(Densifier(columns, options, num_threads)) {}

  PyTensor operator()(const SparseTensor& rows) {
    const Densifier& densify = densify_.get("the Densifier");
    const std::size_t bytes = densify.output_bytes(rows.rows());
    const std::shared_ptr<std::byte> memory = pool_.take(bytes);
    {
      const WithoutGil no_gil;
      densify(rows, std::span(memory.get(), bytes));
    }
    return {memory,
            Tensor::writable(memory.get(), densify.options().dtype, Shape{rows.rows(), columns_})};
  }

 private:
  OutputPool pool_;
  std::int64_t columns_;
  Owned<Densifier> densify_;
};

}  // namespace

ResizedCropRanges resized_crop_ranges(Keywords& keywords) {
  ResizedCropRanges ranges;
  std::pair scale{ranges.min_scale, ranges.max_scale};
  std::pair ratio{ranges.min_ratio, ranges.max_ratio};
  keywords.read("scale", scale).read("ratio", ratio);
  return {scale.first, scale.second, ratio.first, ratio.second};
}

NormalizeOptions normalize_options(Keywords& keywords) {
  NormalizeOptions options;
  bool random_resized_crop = false;
  keywords.read("dtype", options.dtype)
      .read("layout", options.layout)
      .read("mean", options.mean)
      .read("std", options.std)
      .read("crop_height", options.crop_height)
      .read("crop_width", options.crop_width)
      .read("padding", options.padding)
      .read("random_crop", options.random_crop)
      .read("random_resized_crop", random_resized_crop)
      .read("flip", options.flip)
      .read("seed", options.seed);
  const ResizedCropRanges ranges = resized_crop_ranges(keywords);
  if (random_resized_crop) options.random_resized_crop = ranges;
  return options;
}

DenseOptions dense_options(Keywords& keywords) {
  DenseOptions options;
  keywords.read("dtype", options.dtype)
      .read("binary", options.binary)
      .read("row_sum", options.row_sum)
      .read("log1p", options.log1p);
  return options;
}

void bind_normalizer(nb::module_& module) {
  nb::class_<PyNormalizer>(module, "Normalizer")
      .def(
          "__init__",
          [](PyNormalizer* self, const PyDataset& dataset, const nb::kwargs& given) {
            Keywords keywords(given);
            NormalizeOptions options = normalize_options(keywords);
            std::int64_t num_threads = 0;
            keywords.read("num_threads", num_threads).require_none_left();
            new (self) PyNormalizer(dataset.info(), std::move(options), num_threads);
          },
          nb::sig("def __init__(self, dataset: Dataset, **options: typing.Any) -> None"))
      .def("__call__", &PyNormalizer::operator(), nb::arg("batch"), nb::kw_only(),
           nb::arg("echo_pass") = 0,
           "The images of a batch of the same dataset, [B,C,H,W] or [B,H,W,C] by `layout`, in "
           "memory "
           "of their own.\n\n`echo_pass` says how often the batch was used before: other crops and "
           "flips for each. Raises ValueError for images of another shape.");

  nb::class_<PyDensifier>(module, "Densifier")
      .def(
          "__init__",
          [](PyDensifier* self, std::int64_t columns, const nb::kwargs& given) {
            Keywords keywords(given);
            const DenseOptions options = dense_options(keywords);
            std::int64_t num_threads = 0;
            keywords.read("num_threads", num_threads).require_none_left();
            new (self) PyDensifier(columns, options, num_threads);
          },
          nb::sig("def __init__(self, columns: int, **options: typing.Any) -> None"))
      .def(
          "__call__",
          [](PyDensifier& self, const nb::object& rows) {
            if (nb::isinstance<Batch>(rows)) return self(nb::cast<const Batch&>(rows).sparse());
            if (!nb::isinstance<PySparse>(rows)) {
              throw nb::type_error("a Densifier takes a Batch or a SparseTensor");
            }
            return self(nb::cast<const PySparse&>(rows).view());
          },
          nb::arg("rows"), nb::sig("def __call__(self, rows: Batch | SparseTensor) -> Tensor"));
}

}  // namespace chunkio::python
