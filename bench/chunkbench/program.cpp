#include "program.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include <chunkio/error.hpp>

#include "escape.hpp"

namespace bench {

using h5pack::ExitCode;

void print_error(std::string_view message) {
  std::fputs(("chunkbench: " + h5pack::escape(message) + "\n").c_str(), stderr);
}

int run_or_report(const std::function<ExitCode()>& work) {
  ExitCode code = ExitCode::failed;
  try {
    code = work();
  } catch (const chunkio::Error& error) {
    print_error(error.what());
    if (error.code() == chunkio::ErrorCode::invalid_argument) code = ExitCode::usage;
  } catch (const std::bad_alloc&) {
    print_error("out of memory; try smaller --cache-bytes or --chunk-bytes");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return static_cast<int>(code);
}

}  // namespace bench
