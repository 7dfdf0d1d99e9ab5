/// What the binding files share: each binds one class of the public C++ interface.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <chunkio/bottleneck.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>

#include "gil.hpp"

namespace chunkio::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_normalizer(nb::module_& module);
void bind_device_loader(nb::module_& module);
void bind_writer(nb::module_& module);

/// The process that made an object. A child forked from it has none of its threads, and a mutex of
/// libhdf5 that one of them held stays locked there.
class OwnProcess {
 public:
  [[nodiscard]] bool is_here() const noexcept { return ::getpid() == process_; }
  /// \throws Error unsupported.
  void require(const char* what) const {
    if (is_here()) return;
    throw Error(ErrorCode::unsupported,
                std::string(what) +
                    " was made before this process was forked, and its threads are not here; make "
                    "a new one in this process, or start it with 'spawn' instead of 'fork'");
  }

 private:
  pid_t process_ = ::getpid();
};

/// Owns a value of the library that is destroyed without the GIL, since that joins threads or
/// closes files; in a forked child it is left to the end of the process.
template <class T>
class Owned {
 public:
  explicit Owned(T value) : value_(std::in_place, std::move(value)) {}
  Owned(Owned&& other) noexcept : process_(other.process_), value_(std::move(other.value_)) {
    other.value_.reset();
  }
  Owned& operator=(Owned&&) = delete;
  ~Owned() { reset(); }

  void reset() {
    if (!value_) return;
    if (!process_.is_here()) {
      static_cast<void>(new std::optional<T>(std::move(value_)));
      return;
    }
    const WithoutGil no_gil;
    value_.reset();
  }
  void require_here(const char* what) const { process_.require(what); }
  [[nodiscard]] bool is_here() const noexcept { return process_.is_here(); }
  /// \param what  for the error: "the Loader".
  [[nodiscard]] T& get(const char* what) {
    process_.require(what);
    if (!value_) throw Error(ErrorCode::invalid_argument, std::string(what) + " was closed");
    return *value_;
  }
  [[nodiscard]] const T& get(const char* what) const { return const_cast<Owned*>(this)->get(what); }

 private:
  OwnProcess process_;
  std::optional<T> value_;
};

/// Looks at signals, so that Ctrl-C ends a wait: the handler may raise.
inline void check_signals() {
  const WithGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// An open dataset.
struct PyDataset {
  PyDataset(const std::string& path, const OpenOptions& options);
  [[nodiscard]] const Dataset& get() const { return dataset.get("the Dataset"); }
  /// Says nothing of the file, so also in a forked child.
  [[nodiscard]] const DatasetInfo& info() const noexcept { return *facts; }

  Owned<Dataset> dataset;
  const DatasetInfo* facts;  ///< Of `dataset`, which keeps it.
};

/// A mutex for threads without the GIL, whose lock() looks at signals while it waits.
/// (std::timed_mutex would do, but ThreadSanitizer does not see it being locked.)
class Turn {
 public:
  void lock() {
    std::unique_lock guard(mutex_);
    while (!given_back_.wait_for(guard, std::chrono::milliseconds(50), [&] { return !taken_; })) {
      guard.unlock();
      check_signals();
      guard.lock();
    }
    taken_ = true;
  }
  void unlock() {
    {
      const std::lock_guard guard(mutex_);
      taken_ = false;
    }
    given_back_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  bool taken_ = false;
};

/// A loader, used by one thread at a time: others wait their turn, without the GIL.
template <class L>
class LoaderInTurns {
 public:
  explicit LoaderInTurns(L loader) : loader_(std::move(loader)) {}

  template <class Use>
  auto with(const Use& use) {
    loader_.require_here("the Loader");
    const WithoutGil no_gil;
    const std::lock_guard turn(*turn_);
    return use(loader_.get("the Loader"));
  }
  void close() {
    if (!loader_.is_here()) return;
    std::unique_lock turn(*turn_, std::defer_lock);
    {
      const WithoutGil no_gil;
      turn.lock();
    }
    loader_.reset();
  }

 private:
  std::unique_ptr<Turn> turn_ = std::make_unique<Turn>();
  Owned<L> loader_;
};

/// A function of a bound loader that returns what `use` does with it, in turn.
template <class Self, class Use>
auto in_turn(const Use& use) {
  return [use](Self& self) { return self.with(use); };
}

/// Binds what Epochs in Python asks of loaders of either kind.
template <class Class>
void bind_epochs(Class& bound) {
  using Self = typename Class::Type;
  bound
      .def(
          "start",
          [](Self& self, std::int64_t epoch) {
            self.with([&](auto& loader) { loader.start_epoch(epoch); });
          },
          nb::arg("epoch"))
      .def("state", in_turn<Self>([](auto& loader) { return loader.state(); }))
      .def(
          "restore",
          [](Self& self, const std::string& state) {
            self.with([&](auto& loader) { loader.restore(state); });
          },
          nb::arg("state"))
      .def("position", in_turn<Self>([](auto& loader) {
             return std::pair(loader.position().epoch, loader.position().step);
           }))
      .def("stats_json", in_turn<Self>([](auto& loader) { return to_json(loader.stats()); }))
      .def("bottleneck_json",
           in_turn<Self>([](auto& loader) { return to_json(loader.stats().bottleneck()); }))
      .def_prop_ro("num_steps", in_turn<Self>([](auto& loader) { return loader.num_steps(); }))
      .def(
          "close", [](Self& self) { self.close(); },
          "Stops reading and gives the memory back; batches that are held stay valid.");
}

/// Reads the keywords of a Loader, which checks signals while it waits.
[[nodiscard]] LoaderOptions loader_options(const nb::dict& given, std::int64_t num_samples);

class Keywords;
/// Takes those of a Normalizer.
[[nodiscard]] NormalizeOptions normalize_options(Keywords& keywords);
[[nodiscard]] DenseOptions dense_options(Keywords& keywords);
/// Takes `scale` and `ratio`, the least and the largest of each.
[[nodiscard]] ResizedCropRanges resized_crop_ranges(Keywords& keywords);

/// The shape as a tuple.
[[nodiscard]] nb::tuple shape_tuple(const Shape& shape);

}  // namespace chunkio::python
