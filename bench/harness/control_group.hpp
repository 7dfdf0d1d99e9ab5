/// A control group of the kernel for child processes, gone with the object.
///
/// Also when the process is killed: a small process of its own waits for that and removes the
/// group, once those that were in it have ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// Where groups of one kind are made.
struct Hierarchy {
  std::filesystem::path root;  ///< A mount point.
  int version = 2;

  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

/// Those in which groups have this controller ("memory"; "io", which version 1 calls blkio),
/// version 1 first. \param proc  in place of /proc, for tests.
[[nodiscard]] std::vector<Hierarchy> hierarchies_with(const std::string& controller,
                                                      const std::filesystem::path& proc = "/proc");

/// Why there is no group; its message is a clause.
class NoControlGroup : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ControlGroup {
 public:
  /// A limit is one line that is written to one file of the group.
  struct Limit {
    std::string file;
    std::string value;
  };

  /// Makes a group with that limit. \throws NoControlGroup.
  ControlGroup(const Hierarchy& hierarchy, const std::string& controller, const Limit& limit);
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  /// All processes in it must have ended by then.
  ~ControlGroup();

  /// A further limit in this group. \throws NoControlGroup; the group is as before then.
  void set(const std::string& controller, const Limit& limit);

  [[nodiscard]] const Hierarchy& hierarchy() const noexcept { return hierarchy_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// For run_child(): puts the calling process, and what it starts from then on, into the group.
  /// Returns false, with errno set, if it could not.
  [[nodiscard]] std::function<bool()> enter() const;

 private:
  void start_guardian();

  Hierarchy hierarchy_;
  std::filesystem::path path_;
  pid_t guardian_ = -1;
  int guarded_ = -1;  // closed with this process; then the guardian goes to work
};

/// A group with that controller and the limit that `limit_in` says for a hierarchy: in version 1
/// or, where that does not do, in version 2.
/// \param beside  a group that the same processes will be in, or none. A process is in one group of
///        a hierarchy only, so in that one's hierarchy it gets this limit, too, and is returned.
/// \throws NoControlGroup with the reason against the last.
[[nodiscard]] std::shared_ptr<ControlGroup> make_group(
    const std::string& controller,
    const std::function<ControlGroup::Limit(const Hierarchy&)>& limit_in,
    const std::shared_ptr<ControlGroup>& beside = {}, const std::filesystem::path& proc = "/proc");

/// A group whose processes have so much memory, page cache included. \param beside  as
/// make_group().
[[nodiscard]] std::shared_ptr<ControlGroup> limit_memory(
    std::int64_t bytes, const std::shared_ptr<ControlGroup>& beside = {});

}  // namespace bench
