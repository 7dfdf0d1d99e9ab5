// figures: tables of figures about the library and h5pack, one a subcommand.

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "figures/suites.hpp"
#include "harness/epoch_child.hpp"
#include "harness/suite.hpp"
#ifdef FIGURES_OF_PACKING
#include "figures/packing_case.hpp"
#endif
#ifdef FIGURES_OF_GPU
#include "gpu/gpu_case.hpp"
#endif

int main(int argc, char** argv) {
  // What experiments start this program for.
  const std::string child = argc > 1 ? argv[1] : "";
  if (child == bench::kEpochChild && argc == 3) return bench::epoch_child_main(argv[2]);
#ifdef FIGURES_OF_PACKING
  if (child == bench::kPeakOf) return bench::peak_of_main({argv + 2, argv + argc});
#endif
  CLI::App app("Prints tables of figures.", "figures");
  app.require_subcommand(1);
  std::function<int()> action;
  bench::add_suite(app, bench::reading_suite(), action);
  bench::add_suite(app, bench::small_chunks_suite(), action);
  bench::add_suite(app, bench::sparse_suite(), action);
#ifdef FIGURES_OF_PACKING
  bench::add_suite(app, bench::packing_suite(), action);
  bench::add_suite(app, bench::encoded_suite(), action);
#endif
  bench::add_suite(app, bench::normalizing_suite(), action);
#ifdef FIGURES_OF_GPU
  bench::add_suite(app, bench::gpu_suite(), action);
#endif
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "figures: %s\n", error.what());
    return 1;
  }
}
