#include "harness/control_group.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "harness/child_process.hpp"
#include "harness/device_throttle.hpp"
#include "support/scratch.hpp"

namespace bench {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string why_not(const std::function<void()>& make) {
  try {
    make();
  } catch (const NoControlGroup& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// A system with these files.
class HierarchyTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path proc() const { return scratch_.file("proc"); }
  void mounts(const std::string& text) const { write(proc() / "self/mounts", text); }

  chunkio::test::ScratchFolder scratch_;
};

TEST_F(HierarchyTest, ControllersAreFoundWhereTheyAreMountedVersion1First) {
  const std::filesystem::path unified = scratch_.file("unified");
  mounts("proc /proc proc rw 0 0\ncgroup2 " + unified.string() +
         " cgroup2 rw,relatime 0 0\n"
         "cgroup /groups/memory cgroup rw,nosuid,memory 0 0\n"
         "cgroup /groups/both cgroup rw,cpu,blkio 0 0\n"
         "cgroup /groups/name cgroup rw,name=memory 0 0\nbroken\n");
  EXPECT_EQ(hierarchies_with("memory", proc()),
            (std::vector<Hierarchy>{{.root = "/groups/memory", .version = 1}}));
  EXPECT_EQ(hierarchies_with("io", proc()),
            (std::vector<Hierarchy>{{.root = "/groups/both", .version = 1}}));
  write(unified / "cgroup.controllers", "cpuset io pids\n");
  EXPECT_EQ(hierarchies_with("io", proc()),
            (std::vector<Hierarchy>{{.root = "/groups/both", .version = 1},
                                    {.root = unified, .version = 2}}));
  EXPECT_EQ(hierarchies_with("memory", proc()).size(), 1U);
  EXPECT_TRUE(hierarchies_with("hugetlb", proc()).empty());
}

TEST_F(HierarchyTest, WhyThereIsNoGroupIsSaid) {
  const auto limit = [](const Hierarchy&) { return ControlGroup::Limit{"io.max", "8:0 rbps=1"}; };
  EXPECT_EQ(why_not([&] { static_cast<void>(make_group("io", limit, {}, proc())); }),
            "no control groups for 'io' are mounted");
  const std::string absent = scratch_.file("absent");
  mounts("cgroup " + absent + " cgroup rw,blkio 0 0\n");
  const std::string reason =
      why_not([&] { static_cast<void>(make_group("io", limit, {}, proc())); });
  EXPECT_NE(reason.find("cannot make " + absent), std::string::npos) << reason;
  EXPECT_NE(reason.find("No such file"), std::string::npos) << reason;
  // A folder that is no control group: the limit cannot be set, and nothing is left.
  const std::string plain = scratch_.file("plain");
  std::filesystem::create_directory(plain);
  mounts("cgroup " + plain + " cgroup rw,blkio 0 0\n");
  const std::string refused =
      why_not([&] { static_cast<void>(make_group("io", limit, {}, proc())); });
  EXPECT_NE(refused.find("cannot set " + plain), std::string::npos) << refused;
  EXPECT_NE(refused.find("8:0 rbps=1"), std::string::npos) << refused;
  EXPECT_TRUE(std::filesystem::is_empty(plain));
}

TEST_F(HierarchyTest, InOneHierarchyOneGroupHasBothLimits) {
  const std::filesystem::path unified = scratch_.file("unified");
  mounts("cgroup2 " + unified.string() + " cgroup2 rw 0 0\n");
  write(unified / "cgroup.controllers", "io memory\n");
  write(unified / "cgroup.subtree_control", "");
  // The files that the kernel would make, in whatever group comes next.
  for (int number = 1; number <= 100; ++number) {
    const std::filesystem::path group =
        unified / ("chunkio-bench-" + std::to_string(::getpid()) + "-" + std::to_string(number));
    write(group / "io.max", "");
    write(group / "memory.max", "");
  }
  const auto io_limit = [](const Hierarchy&) {
    return ControlGroup::Limit{"io.max", "8:0 rbps=1"};
  };
  const auto memory_limit = [](const Hierarchy&) {
    return ControlGroup::Limit{"memory.max", "1000"};
  };
  {
    const std::shared_ptr<ControlGroup> io = make_group("io", io_limit, {}, proc());
    const std::shared_ptr<ControlGroup> memory = make_group("memory", memory_limit, io, proc());
    EXPECT_EQ(memory, io);
    const auto line = [&](const char* file) {
      std::ifstream in(io->path() / file);
      std::string text;
      std::getline(in, text);
      return text;
    };
    EXPECT_EQ(line("io.max"), "8:0 rbps=1");
    EXPECT_EQ(line("memory.max"), "1000");
    // One that cannot be had leaves the group as it is.
    const auto absent = [](const Hierarchy&) { return ControlGroup::Limit{"no.max", "1"}; };
    EXPECT_NE(why_not([&] {
                static_cast<void>(make_group("memory", absent, io, proc()));
              }).find("cannot set " + (io->path() / "no.max").string()),
              std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(io->path()));
    // Elsewhere it is a group of its own.
    const std::shared_ptr<ControlGroup> other = make_group("memory", memory_limit, {}, proc());
    EXPECT_NE(other, io);
    for (const auto& group : {io, other}) {
      std::filesystem::remove(group->path() / "io.max");
      std::filesystem::remove(group->path() / "memory.max");
    }
  }
}

TEST_F(HierarchyTest, OfAPartitionTheDiskIsThrottled) {
  const std::filesystem::path devices = scratch_.file("block");
  const std::filesystem::path disk = scratch_.file("devices/vda");
  write(disk / "dev", "254:0\n");
  write(disk / "vda3/dev", "254:3\n");
  write(disk / "vda3/partition", "3\n");
  std::filesystem::create_directory(devices);
  std::filesystem::create_symlink(disk, devices / "254:0");
  std::filesystem::create_symlink(disk / "vda3", devices / "254:3");
  for (const unsigned minor : {0U, 3U}) {
    const BlockDevice device = device_of(254, minor, "x", devices);
    EXPECT_EQ(device.number, "254:0");
    EXPECT_EQ(device.name, "vda");
  }
  const std::string reason = why_not([&] { static_cast<void>(device_of(0, 42, "data", devices)); });
  EXPECT_EQ(reason, "data lies on a file system without one disk (device 0:42)");
  EXPECT_NE(why_not([&] {
              static_cast<void>(device_of(scratch_.file("absent"), devices));
            }).find("absent"),
            std::string::npos);
}

/// Groups of the machine itself; without the right to make them the tests are skipped.
class RealGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      limit_ = limit_memory(std::int64_t{64} << 20);
    } catch (const NoControlGroup& error) {
      GTEST_SKIP() << error.what();
    }
  }
  /// Folders of groups that process `pid` made, wherever they are.
  static int groups_of(pid_t pid) {
    int count = 0;
    for (const Hierarchy& hierarchy : hierarchies_with("memory")) {
      for (const auto& entry : std::filesystem::directory_iterator(hierarchy.root)) {
        const std::string name = entry.path().filename().string();
        count += name.starts_with("chunkio-bench-" + std::to_string(pid) + "-") ? 1 : 0;
      }
    }
    return count;
  }

  std::shared_ptr<ControlGroup> limit_;
};

TEST_F(RealGroupTest, ChildrenAreInItAndItIsGoneWithTheObject) {
  EXPECT_EQ(groups_of(::getpid()), 1);
  const ChildResult child = run_child({"cat", "/proc/self/cgroup"}, limit_->enter());
  EXPECT_EQ(child.exit_code, 0);
  EXPECT_NE(child.out.find("/chunkio-bench-" + std::to_string(::getpid())), std::string::npos)
      << child.out;
  limit_.reset();
  EXPECT_EQ(groups_of(::getpid()), 0);
}

TEST_F(RealGroupTest, ItIsGoneAlsoAfterAKill) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto limit = limit_memory(std::int64_t{64} << 20);
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(groups_of(child), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  for (int attempt = 0; groups_of(child) > 0 && attempt < 300; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(groups_of(child), 0);
}

}  // namespace
}  // namespace bench
