/// The extension chunkio._core: the C++ interface, class by class. What Python adds to it is in the
/// package beside it.
#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_core, module) {
  namespace python = chunkio::python;
  module.doc() = "The C++ interface of chunkio.";
#ifdef NDEBUG
  nanobind::set_leak_warnings(false);
#endif
  module.attr("version") = CHUNKIO_VERSION;
  python::bind_errors(module);
  python::bind_tensor(module);
  python::bind_dataset(module);
  python::bind_batch(module);
  python::bind_loader(module);
  python::bind_normalizer(module);
  python::bind_device_loader(module);
  python::bind_writer(module);
}
