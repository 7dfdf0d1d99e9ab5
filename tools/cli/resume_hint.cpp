#include "cli/resume_hint.hpp"

#include <cstdio>
#include <filesystem>
#include <new>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {
namespace {

chunkio::Error not_enough_memory(const std::string& path) {
  return {chunkio::ErrorCode::out_of_resources,
          "not enough memory to write " + quote(path) + "; use fewer --threads or smaller chunks"};
}

}  // namespace

void run_with_resume_hint(const ResumableWriter& writer, const std::string& path,
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
    fail(not_enough_memory(path));
  }
}

void note_restart(const std::string& path, const std::string& what, bool quiet) {
  const std::string partial = path + ".partial";
  if (quiet || !std::filesystem::exists(partial) || std::filesystem::exists(partial + ".journal")) {
    return;
  }
  std::fputs(("h5pack: note: " + what + " cannot be resumed; " + quote(path) +
              " is written from the beginning\n")
                 .c_str(),
             stderr);
}

}  // namespace cli
