// A library for dlpack_test.py: the batches of one epoch in file order, as DLPack tensors. Each
// function that can fail returns null (or -1) then, and last_error() says why. One thread at a
// time.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <chunkio/chunkio.hpp>
#include <chunkio/dlpack.hpp>

namespace {

struct Export {
  chunkio::Loader loader;
  std::optional<chunkio::Batch> batch = {};

  [[nodiscard]] chunkio::TensorView view(std::string_view name) const {
    if (name == "images") return batch->images();
    if (name == "labels") return batch->labels();
    if (name == "sample_ids") {
      return {batch->sample_ids().data(), chunkio::DType::int64, {batch->size()}};
    }
    return batch->field(name);
  }
};

std::string g_error;

/// No exception may reach Python.
template <class Result, class Call>
Result guarded(Result failed, Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    g_error = error.what();
    return failed;
  }
}

}  // namespace

extern "C" {

const char* last_error() { return g_error.c_str(); }

/// At most one batch can be held at a time.
Export* open_loader(const char* path, std::int64_t batch_size, const char* field) {
  return guarded<Export*>(nullptr, [&] {
    Export opened{
        chunkio::Loader(chunkio::Dataset::open(path), {.batch_size = batch_size,
                                                       .order = chunkio::OrderMode::sequential,
                                                       .fields = {field},
                                                       .max_held = 1})};
    opened.loader.start_epoch(0);
    return new Export(std::move(opened));
  });
}

void close_loader(Export* from) { delete from; }

/// Gives the batch before back and takes the next. \returns its samples, 0 at the end.
std::int64_t next_batch(Export* from) {
  return guarded<std::int64_t>(-1, [&] {
    from->batch.reset();
    from->batch = from->loader.next();
    return from->batch ? from->batch->size() : 0;
  });
}

/// \returns a DLManagedTensorVersioned that holds a lease of the batch.
void* export_versioned(const Export* from, const char* name) {
  return guarded<void*>(
      nullptr, [&] { return chunkio::to_dlpack(*from->batch, from->view(name)).release(); });
}

/// \returns a DLManagedTensor, likewise.
void* export_legacy(const Export* from, const char* name) {
  return guarded<void*>(
      nullptr, [&] { return chunkio::to_dlpack_legacy(*from->batch, from->view(name)).release(); });
}

}  // extern "C"
