/// chunkio::Loader.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chunkio/disk_limit.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "bindings.hpp"
#include "keywords.hpp"

namespace chunkio::python {
namespace {

/// A slice or range of step 1, or row numbers in any order.
RowSelection row_selection(const nb::object& rows, std::int64_t num_samples) {
  if (PySlice_Check(rows.ptr())) {
    Py_ssize_t start = 0;
    Py_ssize_t stop = 0;
    Py_ssize_t step = 0;
    if (PySlice_Unpack(rows.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
    const Py_ssize_t count = PySlice_AdjustIndices(num_samples, &start, &stop, step);
    if (step == 1 && count > 0) return RowSelection({{start, start + count}});
    std::vector<std::int64_t> numbers;
    for (Py_ssize_t i = 0; i < count; ++i) numbers.push_back(start + i * step);
    return RowSelection::of(numbers);
  }
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object numbers = numpy.attr("asarray")(rows);
  const auto kind = nb::cast<std::string>(numbers.attr("dtype").attr("kind"));
  const auto count = nb::cast<std::int64_t>(numbers.attr("size"));
  if (kind == "b") {
    if (count != num_samples) {
      throw nb::value_error(("rows has " + std::to_string(count) + " booleans, but there are " +
                             std::to_string(num_samples) + " samples")
                                .c_str());
    }
    numbers = numpy.attr("flatnonzero")(numbers);
  } else if (kind != "i" && kind != "u" && count > 0) {
    throw nb::type_error("rows must be integers, booleans or a slice");
  }
  if (const auto rank = nb::cast<std::int64_t>(numbers.attr("ndim")); rank != 1) {
    throw nb::value_error(("rows must have one axis, not " + std::to_string(rank)).c_str());
  }
  numbers = numpy.attr("ascontiguousarray")(numbers, "int64");
  const auto array = nb::cast<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig>>(numbers);
  return RowSelection::of(std::span(array.data(), array.size()));
}

DiskLimit disk_limit(const nb::object& given) {
  if (nb::isinstance<nb::str>(given)) return disk_profile(nb::cast<std::string>(given));
  if (!nb::isinstance<nb::dict>(given)) {
    throw nb::type_error(
        "disk_limit must be a dict, such as {'bytes_per_second': 2e8}, or a disk, such as 'hdd'");
  }
  DiskLimit limit;
  Keywords keywords(nb::cast<nb::dict>(given));
  keywords.read("bytes_per_second", limit.bytes_per_second)
      .read("request_seconds", limit.request_seconds)
      .read("queue_depth", limit.queue_depth)
      .require_none_left();
  return limit;
}

}  // namespace

LoaderOptions loader_options(const nb::dict& given, std::int64_t num_samples) {
  LoaderOptions options;
  Keywords keywords(given);
  keywords.read("batch_size", options.batch_size)
      .read("seed", options.seed)
      .read("fields", options.fields)
      .read("only_labels", options.only_labels)
      .read("order", options.order.mode)
      .read("window_bytes", options.order.window_bytes)
      .read("drop_last", options.order.drop_last)
      .read("lanes", options.order.lanes)
      .read("order_version", options.order.version)
      .read("uneven", options.order.uneven)
      .read("rank", options.ranks.rank)
      .read("world_size", options.ranks.world_size)
      .read("memory_budget", options.memory.budget)
      .read("prefetch_depth", options.memory.prefetch_depth)
      .read("max_held", options.memory.max_held)
      .read("resident", options.memory.resident)
      .read("num_threads", options.io.num_threads)
      .read("source", options.io.source)
      .read("direct_io", options.io.direct_io)
      .read("verify", options.io.verify)
      .read("on_error", options.io.on_error)
      .read("num_epochs", options.io.num_epochs);
  if (const nb::object rows = keywords.take("rows"); !rows.is_none()) {
    options.rows = row_selection(rows, num_samples);
  }
  if (const nb::object limit = keywords.take("disk_limit"); !limit.is_none()) {
    options.io.disk_limit = disk_limit(limit);
  }
  keywords.require_none_left();
  // People keep batches in lists.
  options.memory.when_held = WhenHeld::copy;
  options.on_wait = check_signals;
  return options;
}

namespace {

Loader make_loader(const PyDataset& dataset, LoaderOptions options) {
  const Dataset& open = dataset.get();
  const WithoutGil no_gil;
  return {open, std::move(options)};
}

using PyLoader = LoaderInTurns<Loader>;

std::optional<Batch> next(PyLoader& self, bool wait) {
  return self.with([wait](Loader& loader) -> std::optional<Batch> {
    const LoaderPosition before = loader.position();
    std::optional<Batch> batch =
        loader.next({}, wait ? kForever : std::chrono::nanoseconds::zero());
    if (!batch) return batch;
    try {
      check_signals();
    } catch (...) {
      // What a handler raised would take the place of the batch, which then counts as delivered.
      batch.reset();
      loader.restore(loader.state_at(before, false));
      throw;
    }
    return batch;
  });
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<PyLoader> bound(module, "Loader", nb::is_weak_referenceable());
  bind_epochs(bound);
  bound
      .def(
          "__init__",
          [](PyLoader* self, const PyDataset& dataset, const nb::kwargs& keywords) {
            new (self) PyLoader(
                make_loader(dataset, loader_options(keywords, dataset.info().num_samples)));
          },
          nb::sig("def __init__(self, dataset: Dataset, **options: typing.Any) -> None"))
      .def("next", &next, nb::kw_only(), nb::arg("wait") = true,
           "The next batch; None at the end of the epoch. Raises TimedOutError if it is not ready "
           "and `wait` is False.")
      .def(
          "state_at",
          [](PyLoader& self, std::int64_t epoch, std::int64_t step) {
            return self.with([&](Loader& loader) { return loader.state_at({epoch, step}, false); });
          },
          nb::arg("epoch"), nb::arg("step"))
      .def(
          "epoch_stats_json",
          [](PyLoader& self, std::int64_t epoch) {
            return self.with([&](Loader& loader) { return to_json(loader.epoch_stats(epoch)); });
          },
          nb::arg("epoch"))
      .def("skipped_json",
           in_turn<PyLoader>([](Loader& loader) { return to_json(loader.skipped()); }))
      .def_prop_ro("samples_per_epoch",
                   in_turn<PyLoader>([](Loader& loader) { return loader.samples_per_epoch(); }))
      .def_prop_ro("memory_bytes",
                   in_turn<PyLoader>([](Loader& loader) { return loader.memory_bytes(); }))
      .def_prop_ro("source", in_turn<PyLoader>([](Loader& loader) {
                     return std::string(to_string(loader.source()));
                   }))
      .def_prop_ro("source_reason",
                   in_turn<PyLoader>([](Loader& loader) { return loader.source_reason(); }));
  module.def(
      "find_ranks",
      []() -> std::optional<std::pair<std::int64_t, std::int64_t>> {
        const std::optional<Ranks> ranks = Ranks::find_in_environment();
        if (!ranks) return std::nullopt;
        return std::pair(ranks->rank, ranks->world_size);
      },
      "Rank and world size as torchrun, Open MPI, PMI or Slurm has set them; None if none has.");
}

}  // namespace chunkio::python
