/// chunkio::DatasetWriter.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chunkio/dataset_writer.hpp>

#include "bindings.hpp"
#include "keywords.hpp"

namespace chunkio::python {
namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;
/// Name, dtype and shape of a row.
using FieldTuple = std::tuple<std::string, std::string, std::vector<std::int64_t>>;

/// Runs `work`, which ends when `stop` is requested, on another thread, while this one looks at
/// signals: what a handler raises ends both.
void run_interruptibly(std::stop_source& stop, const std::function<void()>& work) {
  const WithoutGil no_gil;
  std::future<void> done = std::async(std::launch::async, work);
  std::exception_ptr interruption;
  while (done.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (interruption) continue;
    try {
      check_signals();
    } catch (...) {
      interruption = std::current_exception();
      stop.request_stop();
    }
  }
  if (interruption) std::rethrow_exception(interruption);
  done.get();
}

std::vector<FieldInfo> field_infos(const std::vector<FieldTuple>& given) {
  std::vector<FieldInfo> fields;
  for (const auto& [name, dtype, row_shape] : given) {
    fields.push_back(
        {name, named<DType>("dtype of field " + name, dtype), Shape(std::span(row_shape))});
  }
  return fields;
}

/// Rows of zeros, which set_rows() replaces.
FieldData zeros(const FieldInfo& info, std::int64_t num_samples) {
  const std::size_t row_bytes = Dataset::row_bytes(info);
  return {.info = info, .stream = [=](const FieldData::Sink& sink) {
            const std::vector<std::byte> row(row_bytes);
            for (std::int64_t i = 0; i < num_samples; ++i) sink(row);
          }};
}

/// Rows in memory of Python's, which stays as long as this does.
FieldData in_memory(const FieldInfo& info, const Bytes& rows) {
  const auto* const data = reinterpret_cast<const std::byte*>(rows.data());
  const std::size_t size = rows.size();
  return {.info = info,
          .stream = [=](const FieldData::Sink& sink) { sink(std::span(data, size)); }};
}

class PyWriter {
 public:
  PyWriter(const std::string& path, const nb::kwargs& given) {
    DatasetSpec spec;
    WriterOptions options;
    std::vector<FieldTuple> fields;
    Keywords keywords(given);
    keywords.read("num_samples", spec.num_samples)
        .read("height", spec.height)
        .read("width", spec.width)
        .read("channels", spec.channels)
        .read("layout", spec.layout)
        .read("channel_order", spec.channel_order)
        .read("fields", fields)
        .read("class_names", spec.class_names)
        .read("attribute_names", spec.attribute_names)
        .read("split", spec.split)
        .read("chunk_bytes", options.chunk_bytes)
        .read("chunk_samples", options.chunk_samples)
        .read("deflate_level", options.filter.deflate_level)
        .read("overwrite", options.overwrite)
        .read("identity", options.identity)
        .read("resume", options.resume);
    keywords.require_none_left();
    options.stop = stop_.get_token();
    fields_ = field_infos(fields);
    for (const FieldInfo& field : fields_) spec.fields.push_back(zeros(field, spec.num_samples));
    run_interruptibly(stop_, [&] { writer_.emplace(DatasetWriter(path, spec, options)); });
  }

  void write_chunk(std::int64_t chunk, const Bytes& rows, const nb::bytes& note) {
    DatasetWriter& open = writer();
    const auto* const data = reinterpret_cast<const std::byte*>(rows.data());
    const std::string_view note_text(note.c_str(), note.size());
    const WithoutGil no_gil;
    open.write_chunk(chunk, std::span(data, rows.size()), note_text);
  }
  void set_rows(std::int64_t num_rows, const std::vector<Bytes>& columns) {
    std::vector<FieldData> fields;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      fields.push_back(in_memory(fields_.at(i), columns[i]));
    }
    columns_ = columns;
    DatasetWriter& open = writer();
    const WithoutGil no_gil;
    open.set_rows(num_rows, std::move(fields));
  }
  void commit() {
    DatasetWriter& open = writer();
    const WithoutGil no_gil;
    open.commit();
  }
  void close() {
    DatasetWriter& open = writer();
    run_interruptibly(stop_, [&] { open.close(); });
  }
  void abandon() { writer_.reset(); }
  [[nodiscard]] std::int64_t chunk_samples() { return writer().chunk_samples(); }
  [[nodiscard]] nb::list resumed() {
    nb::list chunks;
    for (const ResumedChunk& chunk : writer().resumed()) {
      chunks.append(nb::make_tuple(chunk.chunk, chunk.num_rows,
                                   nb::bytes(chunk.note.data(), chunk.note.size())));
    }
    return chunks;
  }

 private:
  [[nodiscard]] DatasetWriter& writer() {
    if (!writer_) throw Error(ErrorCode::invalid_argument, "the Writer was abandoned");
    return writer_->get("the Writer");
  }

  std::stop_source stop_;
  std::vector<FieldInfo> fields_;
  std::vector<Bytes> columns_;
  std::optional<Owned<DatasetWriter>> writer_;
};

}  // namespace

void bind_writer(nb::module_& module) {
  nb::class_<PyWriter>(module, "DatasetWriter")
      .def(
          "__init__",
          [](PyWriter* self, const std::string& path, const nb::kwargs& keywords) {
            new (self) PyWriter(path, keywords);
          },
          nb::sig("def __init__(self, path: str, **options: typing.Any) -> None"))
      .def("write_chunk", &PyWriter::write_chunk, nb::arg("chunk"), nb::arg("rows"),
           nb::arg("note"))
      .def("set_rows", &PyWriter::set_rows, nb::arg("num_rows"), nb::arg("columns"))
      .def("commit", &PyWriter::commit)
      .def("close", &PyWriter::close)
      .def("abandon", &PyWriter::abandon)
      .def("resumed", &PyWriter::resumed,
           nb::sig("def resumed(self) -> list[tuple[int, int, bytes]]"))
      .def_prop_ro("chunk_samples", &PyWriter::chunk_samples);
}

}  // namespace chunkio::python
