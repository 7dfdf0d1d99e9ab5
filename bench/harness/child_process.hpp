/// Another program, run to its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bench {

struct ChildResult {
  int exit_code = 0;  ///< 128 + signal if one ended it; 127: not found.
  std::string out;    ///< All of its standard output.
  std::string error;  ///< All of its standard error.

  /// The last line of `error` that is not empty, or the exit code in words.
  [[nodiscard]] std::string complaint() const;
};

/// As execvp() takes them, which changes none of them.
[[nodiscard]] std::vector<char*> exec_words(const std::vector<std::string>& arguments);

/// Runs `arguments[0]`, found along PATH, and waits for it.
/// \param before_exec  called in the child; must only make system calls. False: exit code 126.
/// \throws std::system_error if no process can be made.
ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::function<bool()>& before_exec = {});

}  // namespace bench
