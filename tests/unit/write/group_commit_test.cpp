#include "write/group_commit.hpp"

#include <new>

#include <gtest/gtest.h>

#include "support/scratch.hpp"

namespace chunkio::write {
namespace {

ChunkRecord record(std::int64_t chunk) {
  return {.chunk = chunk, .num_rows = 1, .digest = 0, .note = {}};
}

class GroupCommitTest : public testing::Test {
 protected:
  test::ScratchFolder folder_;
  PartialFile pixels_ = PartialFile::create(folder_.file("pixels"), OwnerLock::shared);
  Journal journal_ = Journal::create(folder_.file("journal"), {});
};

TEST_F(GroupCommitTest, AGroupThatNobodyTakesEndsTheRun) {
  GroupCommit groups(pixels_, journal_, 1, false,
                     [](std::span<const ChunkRecord>) { throw std::bad_alloc(); });
  EXPECT_NO_THROW(groups.check());
  EXPECT_THROW(groups.add(record(0), 1), std::bad_alloc);
  EXPECT_TRUE(groups.committed()) << "it is on disk, and can be resumed";
  EXPECT_THROW(groups.check(), std::bad_alloc);
  EXPECT_THROW(groups.commit(), std::bad_alloc);
}

}  // namespace
}  // namespace chunkio::write
