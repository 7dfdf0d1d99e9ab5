/// chunkio::Error as Python exceptions: Python's own class where one fits, and chunkio.Error in any
/// case, with `code`.
#include <exception>
#include <new>
#include <string>

#include <nanobind/nanobind.h>

#include <chunkio/error.hpp>

#include "bindings.hpp"

namespace chunkio::python {
namespace {

/// The class of chunkio.errors for a code.
const char* class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "InvalidArgumentError";
    case ErrorCode::not_found:
      return "NotFoundError";
    case ErrorCode::output_exists:
      return "OutputExistsError";
    case ErrorCode::io_failed:
    case ErrorCode::no_space:
      return "StorageError";
    case ErrorCode::out_of_resources:
      return "ResourceError";
    case ErrorCode::timed_out:
      return "TimedOutError";
    default:
      return "Error";
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  static_cast<void>(module);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const nb::object type = nb::module_::import_("chunkio.errors").attr(class_of(error.code()));
      const std::string message = error.what();
      const nb::object text = nb::steal(
          PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
      nb::object exception = type(text);
      const std::string_view code = to_string(error.code());
      exception.attr("code") = nb::str(code.data(), code.size());
      PyErr_SetObject(type.ptr(), exception.ptr());
    } catch (const std::bad_alloc&) {
      const nb::object type = nb::module_::import_("chunkio.errors").attr("ResourceError");
      PyErr_SetString(type.ptr(), "the system has no memory left for this");
    }
  });
}

}  // namespace chunkio::python
