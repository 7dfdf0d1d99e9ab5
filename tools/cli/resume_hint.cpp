#include "cli/resume_hint.hpp"

#include <new>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {

void run_with_resume_hint(chunkio::DatasetWriter& writer, const std::string& path,
                          const std::function<void()>& work, const std::string& nothing_kept) {
  const auto fail = [&](const chunkio::Error& error) {
    const bool cancelled = error.code() == chunkio::ErrorCode::cancelled;
    if (cancelled) writer.commit();
    const std::string left = cancelled ? "; " + nothing_kept : "";
    const std::string way_on = "; " + quote(path + ".partial") +
                               " keeps what was written: the same command with --resume goes on "
                               "from there";
    throw error.with_message(error.what() + (writer.committed() ? way_on : left));
  };
  try {
    work();
  } catch (const chunkio::Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail({chunkio::ErrorCode::out_of_resources,
          "not enough memory to write " + quote(path) + "; use fewer --threads or smaller chunks"});
  }
}

}  // namespace cli
