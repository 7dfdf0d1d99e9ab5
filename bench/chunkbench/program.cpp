#include "program.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include <chunkio/error.hpp>

#include "escape.hpp"
#include "option_flags.hpp"

namespace bench {

using h5pack::ExitCode;

void print_error(std::string_view message, const Program& program) {
  std::fputs((std::string(program.name) + ": " + h5pack::escape(message) + "\n").c_str(), stderr);
}

int run_or_report(const std::function<ExitCode()>& work, const Program& program) {
  ExitCode code = ExitCode::failed;
  try {
    code = work();
  } catch (const chunkio::Error& error) {
    print_error(h5pack::with_flags(error), program);
    if (error.code() == chunkio::ErrorCode::invalid_argument) code = ExitCode::usage;
  } catch (const std::bad_alloc&) {
    print_error("out of memory; try smaller " + std::string(program.memory_options), program);
  } catch (const std::exception& error) {
    print_error(error.what(), program);
  }
  return static_cast<int>(code);
}

}  // namespace bench
