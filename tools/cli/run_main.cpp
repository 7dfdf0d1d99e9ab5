#include "cli/run_main.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>

#include <chunkio/error.hpp>

#include "cli/option_flags.hpp"
#include "cli/output.hpp"

namespace cli {

ExitCode run_or_report(const std::function<ExitCode()>& work, const Reporting& reporting) {
  using chunkio::ErrorCode;
  const auto report = [&](std::string_view code, const std::string& message) {
    print_failure(code, message, reporting.json, reporting.program);
    return ExitCode::failed;
  };
  try {
    return work();
  } catch (const chunkio::Error& error) {
    report(to_string(error.code()), with_flags(error, reporting.accepted));
    return error.code() == ErrorCode::invalid_argument ? ExitCode::usage : ExitCode::failed;
  } catch (const std::bad_alloc&) {
    return report(to_string(ErrorCode::out_of_resources),
                  "out of memory; try " + std::string(reporting.less_memory));
  } catch (const std::exception& error) {
    return report("internal", error.what());
  }
}

void run_main(const std::function<ExitCode()>& work, const Reporting& reporting) {
  prepare_standard_streams();
  const ExitCode code = run_or_report(work, reporting);
  // After an error of the disk or an object that it could not open, libhdf5's exit handler may
  // print ("infinite loop closing library"), loop or crash. Everything of ours is finished; only
  // what stdio holds is not.
  std::fflush(nullptr);
  ::_exit(static_cast<int>(code));
}

}  // namespace cli
