/// Runs the writing of a file, and says after an interruption how to resume it.
#pragma once

#include <functional>
#include <string>

namespace cli {

/// A writer whose file another run can go on with.
struct ResumableWriter {
  std::function<void()> commit;
  std::function<bool()> committed;  ///< Whether there is something to go on with.
};
template <class Writer>
[[nodiscard]] ResumableWriter resumable(Writer& writer) {
  return {[&writer] { writer.commit(); }, [&writer] { return writer.committed(); }};
}

/// Runs `work`, which fills `writer` and closes it. If it is cancelled, what it has written is
/// committed first.
/// \param path  of the file, for the message.
/// \param nothing_kept  what to say if it is cancelled and cannot be resumed, as a clause.
/// \throws chunkio::Error what `work` throws, with what is left and how to go on in the message.
void run_with_resume_hint(const ResumableWriter& writer, const std::string& path,
                          const std::function<void()>& work,
                          const std::string& nothing_kept = "nothing of the file is kept");

/// Before a run with --resume that cannot go on: says on stderr that it starts over, if another
/// left an unfinished file that cannot be resumed. \param what  is written: the subject of the
/// note.
void note_restart(const std::string& path, const std::string& what, bool quiet);

}  // namespace cli
