/// Gives the GIL away and takes it, also while another thread ends the interpreter.
///
/// A thread that wants the GIL then does not get it: Python before 3.14 calls pthread_exit(), which
/// unwinds its stack, and a stack of C++ takes that for an error and aborts. Here it waits for the
/// end of the process instead, as Python does since 3.14.
#pragma once

#include <unistd.h>

#include <nanobind/nanobind.h>

namespace chunkio::python {

/// \param take  takes the GIL.
template <class Take>
auto take_gil(const Take& take) noexcept {
  try {
    return take();
  } catch (...) {  // That of pthread_exit(); a handler that ended would abort, too.
    for (;;) ::pause();
  }
}

/// Lets other Python threads run while this one works, or waits, in the library.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Lets the library call Python.
class WithGil {
 public:
  WithGil() noexcept : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace chunkio::python
