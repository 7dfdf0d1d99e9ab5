// States of a DeviceLoader, and what goes on from them.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "support/device_loader_fixture.hpp"

namespace chunkio::cuda {
namespace {

using test::Delivered;
using test::DeviceLoaderTest;
using test::expect_error;

/// Of a file on the host and on the device: the states of one fit the other.
class DeviceLoaderResumeTest : public DeviceLoaderTest,
                               public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(HostAndResident, DeviceLoaderResumeTest, ::testing::Bool());

TEST_P(DeviceLoaderResumeTest, ContinuesExactlyAfterEveryBatch) {
  gpu_->set_capacity(GetParam() ? kLargeGpu : kSmallGpu);
  for (const auto& [echo_buffer_batches, echo] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 1}, {1, 2}, {5, 2}}) {
    const DeviceOptions options{
        .normalize = augmented(), .echo_buffer_batches = echo_buffer_batches, .echo = echo};
    DeviceLoader whole = device_loader(options);
    std::vector<Delivered> wanted = epoch_of(whole, 4);
    const std::vector<Delivered> after = epoch_of(whole, 5);
    for (std::size_t stop = 0; stop <= wanted.size(); ++stop) {
      SCOPED_TRACE(std::to_string(echo_buffer_batches) + " " + std::to_string(echo) + " " +
                   std::to_string(stop));
      std::string state;
      {
        DeviceLoader first = device_loader(options);
        first.start_epoch(4);
        for (std::size_t i = 0; i < stop; ++i) ASSERT_TRUE(first.next(stream_));
        state = first.state();
      }
      if (stop % 2 == 1) gpu_->set_capacity(GetParam() ? kSmallGpu : kLargeGpu);
      DeviceLoader second = device_loader(options);
      gpu_->set_capacity(GetParam() ? kLargeGpu : kSmallGpu);
      second.restore(state);
      EXPECT_EQ(second.state(), state);
      const std::vector<Delivered> rest = drain(second);
      ASSERT_EQ(rest, std::vector<Delivered>(wanted.begin() + static_cast<std::ptrdiff_t>(stop),
                                             wanted.end()));
      ASSERT_EQ(epoch_of(second, 5), after);
    }
  }
}

TEST_F(DeviceLoaderTest, AnEpochThatCouldNotBeStartedIsNotTheRestoredOne) {
  DeviceLoader loader = device_loader({.normalize = plain(), .resident = DeviceResident::off});
  const std::vector<Delivered> wanted = epoch_of(loader, 2);
  loader.start_epoch(2);
  ASSERT_TRUE(loader.next(stream_));
  loader.restore(loader.state());
  gpu_->fail_once("synchronize", gpu_->calls("synchronize") + 1);
  EXPECT_THROW(loader.start_epoch(5), Error);
  expect_error(ErrorCode::invalid_argument, {"no epoch was started"},
               [&] { static_cast<void>(loader.next(stream_)); });
  EXPECT_EQ(epoch_of(loader, 2), wanted) << "whose place is given up";
}

/// The state says which rank it is of.
std::string without_rank(std::string state) {
  return state.erase(state.find("\"rank\":"), std::string("\"rank\":0").size());
}

TEST_F(DeviceLoaderTest, StatesOfRanksThatDifferByABatchAreEqual) {
  gpu_->set_capacity(kLargeGpu);
  LoaderOptions host{
      .batch_size = 4, .seed = 3, .order = {.uneven = Uneven::exact}, .ranks = {.world_size = 2}};
  host.rows = RowSelection({{0, 41}});  // 20 and 21 samples: 5 and 6 batches
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    const DeviceOptions options{.normalize = plain(), .resident = resident, .resident_share = 1};
    std::vector<DeviceLoader> ranks;
    for (host.ranks.rank = 0; host.ranks.rank < 2; ++host.ranks.rank) {
      ranks.push_back(device_loader(options, host));
      ranks.back().start_epoch(0);
    }
    ASSERT_NE(ranks[0].num_steps(), ranks[1].num_steps());
    for (int i = 0; i < 7; ++i) {
      const std::string state = without_rank(ranks[0].state());
      EXPECT_EQ(without_rank(ranks[1].state()), state) << i;
      for (host.ranks.rank = 0; host.ranks.rank < 2; ++host.ranks.rank) {
        DeviceLoader restored = device_loader(options, host);
        restored.restore(ranks[0].state());
        EXPECT_EQ(without_rank(restored.state()), state) << i;
      }
      for (DeviceLoader& rank : ranks) static_cast<void>(rank.next(stream_));
    }
  }
}

TEST_F(DeviceLoaderTest, ALoaderRestoredIntoAEchoBufferThatEchoesIsRefused) {
  const auto restored = [&](int steps) {
    Loader loader = host_loader();
    loader.start_epoch(0);
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(loader.next());
    return Loader::resume(Dataset::open(path_), loader_options(), loader.state());
  };
  const DeviceOptions options{.normalize = augmented(), .echo_buffer_batches = 3, .echo = 2};
  expect_error(ErrorCode::invalid_argument, {"batch 4", "middle of an echo buffer", "echo"}, [&] {
    const DeviceLoader loader =
        internal::Access::make<cuda::DeviceLoader>(gpu_, restored(4), options);
  });
  DeviceLoader loader = internal::Access::make<cuda::DeviceLoader>(gpu_, restored(6), options);
  const std::vector<Delivered> wanted = expected(options, 0);
  EXPECT_EQ(drain(loader), std::vector<Delivered>(wanted.begin() + 12, wanted.end()));
}

TEST_F(DeviceLoaderTest, WithoutEchoAStateFitsAnyEchoBuffer) {
  DeviceLoader first = device_loader({.normalize = plain(), .echo_buffer_batches = 5});
  const std::vector<Delivered> wanted = epoch_of(first, 0);
  first.start_epoch(0);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(first.next(stream_));
  DeviceLoader second = device_loader({.normalize = plain(), .echo_buffer_batches = 2});
  second.restore(first.state());
  EXPECT_EQ(drain(second), std::vector<Delivered>(wanted.begin() + 7, wanted.end()));
}

TEST_F(DeviceLoaderTest, StatesThatDoNotFitAreRefused) {
  DeviceLoader loader = device_loader({.normalize = plain(), .echo_buffer_batches = 2, .echo = 2});
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(stream_));
  const std::string state = loader.state();
  const auto refused = [&](const std::vector<std::string>& parts, const DeviceOptions& options,
                           const std::string& text) {
    DeviceLoader other = device_loader(options);
    other.start_epoch(0);
    expect_error(ErrorCode::invalid_argument, parts, [&] { other.restore(text); });
    other.start_epoch(0);
    EXPECT_TRUE(other.next(stream_));
  };
  refused({"echo 2", "has 3"}, {.normalize = plain(), .echo_buffer_batches = 2, .echo = 3}, state);
  refused({"echo_buffer_batches 2", "has 4"},
          {.normalize = plain(), .echo_buffer_batches = 4, .echo = 2}, state);
  refused({"one that a DeviceLoader returned"}, {.normalize = plain()}, "");
  refused({"too long"}, {.normalize = plain()}, std::string(10'000, ' '));
  refused({"chunkio_device_state"}, {.normalize = plain()}, host_loader().state());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = state;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  const DeviceOptions same{.normalize = plain(), .echo_buffer_batches = 2, .echo = 2};
  refused({"no such place"}, same,
          changed("\"step\":1,\"world_size\"", "\"step\":4,\"world_size\""));
  refused({"'step'"}, same, changed("\"step\":1,\"world_size\"", "\"step\":-1,\"world_size\""));
  refused({"'rank'"}, same, changed("\"rank\":0", "\"rank\":0.5"));
  refused({"rank 1", "has 0"}, same, changed("\"rank\":0", "\"rank\":1"));
  refused({"'x' is not known"}, same, changed("{\"big_batch\"", "{\"x\":1,\"big_batch\""));
  // What another parser may take the first or the last of.
  refused({"'echo' is there twice"}, same, changed("{\"big_batch\"", "{\"echo\":2,\"big_batch\""));
  refused({"'seed' is there twice"}, same, changed("\"seed\":3", "\"seed\":3,\"seed\":3"));
  refused({"version"}, same, changed("\"chunkio_device_state\":1", "\"chunkio_device_state\":2"));
  refused({"seed"}, same, changed("\"seed\":3", "\"seed\":4"));
}

}  // namespace
}  // namespace chunkio::cuda
