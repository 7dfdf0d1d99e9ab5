#include "stoppable.hpp"

#include <chunkio/error.hpp>

#include "output.hpp"
#include "render_json.hpp"
#include "stop_signal.hpp"

namespace h5pack {

ExitCode run_stoppable(const GlobalOptions& global, const std::string& left,
                       const std::function<ExitCode()>& work) {
  const StopSignal stop;
  try {
    return work();
  } catch (const chunkio::Error& error) {
    if (error.code() != chunkio::ErrorCode::cancelled || StopSignal::received() == 0) throw;
    const std::string stopped = error.what() + (left.empty() ? "" : "; " + left);
    print_error(stopped);
    if (global.json) print(error_json(to_string(error.code()), stopped));
    return static_cast<ExitCode>(128 + StopSignal::received());
  }
}

}  // namespace h5pack
