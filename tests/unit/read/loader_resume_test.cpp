// Loader::state(), restore() and resume() on a real file; forks; loaders that come and go.

#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "read/loader_parts.hpp"
#include "read/ring.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"
#include "support/packed_loader.hpp"
#include "support/process_counts.hpp"

namespace chunkio {
namespace {

using Samples = test::Rows;
using test::expect_error;
using test::rows_of;

class LoaderResumeTest : public test::PackedLoaderTest {
 protected:
  /// What is left of an epoch.
  static std::vector<Samples> rest(Loader& loader) {
    std::vector<Samples> batches;
    while (const auto batch = loader.next()) batches.push_back(rows_of(*batch));
    return batches;
  }
};

/// All ranks of a run, stepping together.
class World {
 public:
  template <class MakeLoader>
  World(std::int64_t world_size, MakeLoader make) {
    for (std::int64_t rank = 0; rank < world_size; ++rank) loaders_.push_back(make(rank));
  }

  /// The next global batch; nothing when all ranks are at the end.
  std::optional<Samples> next() {
    Samples global;
    bool any = false;
    for (Loader& loader : loaders_) {
      const auto batch = loader.next();
      if (!batch) continue;
      any = true;
      const Samples part = rows_of(*batch);
      global.insert(global.end(), part.begin(), part.end());
    }
    if (!any) return std::nullopt;
    return global;
  }
  void start_epoch(std::int64_t epoch) {
    for (Loader& loader : loaders_) loader.start_epoch(epoch);
  }
  /// That of every rank.
  [[nodiscard]] std::string state() const {
    for (const Loader& loader : loaders_) EXPECT_EQ(loader.state(), loaders_.front().state());
    return loaders_.back().state();
  }

 private:
  std::vector<Loader> loaders_;
};

TEST_F(LoaderResumeTest, WorldSizeMayChangeInsideAnEpoch) {
  const Dataset dataset = Dataset::open(path_);
  for (const Uneven uneven : {Uneven::pad, Uneven::drop, Uneven::exact}) {
    for (const OrderMode mode :
         {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
      LoaderOptions options = small(8);
      options.ranks.world_size = 4;
      options.order.lanes = 8;
      options.order.uneven = uneven;
      options.order.mode = mode;
      const auto fresh = [&](std::int64_t rank) {
        LoaderOptions mine = options;
        mine.ranks.rank = rank;
        return Loader(dataset, mine);
      };
      // 230 samples in 8 lanes of 28 and 29, 4 at a time: with `exact` only some ranks have 8
      // steps.
      std::vector<Samples> expected;
      World whole(4, fresh);
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        whole.start_epoch(epoch);
        while (const auto batch = whole.next()) expected.push_back(*batch);
      }
      ASSERT_EQ(expected.size(), uneven == Uneven::drop ? 14U : 16U);

      for (std::size_t first = 0; first <= expected.size() / 2; ++first) {
        for (const std::size_t second : {first, first + 1, expected.size() / 2}) {
          SCOPED_TRACE(std::string(to_string(uneven)) + " " + std::string(to_string(mode)) + " " +
                       std::to_string(first) + " " + std::to_string(second));
          if (second > expected.size() / 2) continue;
          const auto resumed = [&](std::int64_t world_size, const std::string& state) {
            return World(world_size, [&](std::int64_t rank) {
              LoaderOptions mine = options;
              mine.ranks.rank = rank;
              mine.ranks.world_size = world_size;
              mine.batch_size = 1000;  // these three are taken from the state
              mine.order.window_bytes = 1;
              mine.order.lanes = 0;
              mine.io.num_threads = 1 + rank % 3;
              mine.io.source = rank % 2 == 0 ? SourceKind::scatter : SourceKind::hdf5;
              return Loader::resume(dataset, mine, state);
            });
          };
          std::vector<Samples> batches;
          const auto run_to = [&](World& ranks, std::size_t count) {
            while (batches.size() < count) {
              auto batch = ranks.next();
              ASSERT_TRUE(batch);
              batches.push_back(std::move(*batch));
            }
          };
          World four(4, fresh);
          four.start_epoch(0);
          run_to(four, first);
          World two = resumed(2, four.state());
          run_to(two, second);
          World eight = resumed(8, two.state());
          run_to(eight, expected.size() / 2);
          EXPECT_FALSE(eight.next());
          eight.start_epoch(1);
          run_to(eight, expected.size());
          EXPECT_EQ(batches, expected);
          EXPECT_FALSE(eight.next());
          (void)eight.state();
        }
      }
    }
  }
}

TEST_F(LoaderResumeTest, SelectionsContinueAndAreToldApart) {
  const Dataset dataset = Dataset::open(path_);
  LoaderOptions options = small(8);
  options.rows = RowSelection({{3, 50}, {70, 71}, {100, 200}});
  Loader loader(dataset, options);
  loader.start_epoch(0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(loader.next());
  const std::string state = loader.state();
  Loader resumed = Loader::resume(dataset, options, state);
  EXPECT_EQ(rest(resumed), rest(loader));

  options.rows.reset();
  expect_error(ErrorCode::invalid_argument, {path_, "selection", "samples is 148", "230"},
               [&] { (void)Loader::resume(dataset, options, state); });
  options.rows = RowSelection({{4, 51}, {70, 71}, {100, 200}});
  expect_error(ErrorCode::invalid_argument, {path_, "selection"},
               [&] { (void)Loader::resume(dataset, options, state); });
}

TEST_F(LoaderResumeTest, RefusalsNameTheDifference) {
  const Dataset dataset = Dataset::open(path_);
  LoaderOptions options = small();
  options.order.lanes = 4;
  Loader loader(dataset, options);
  const std::string state = loader.state();
  const auto refused = [&](auto change, const std::vector<std::string>& parts) {
    LoaderOptions other = options;
    change(other);
    Loader another(dataset, other);
    expect_error(ErrorCode::invalid_argument, parts, [&] { another.restore(state); });
    EXPECT_EQ(another.position().step, 0) << "a refusal changes nothing";
  };
  refused([](LoaderOptions& o) { o.seed = 8; }, {path_, "seed is 7 in the state and 8 here"});
  refused([](LoaderOptions& o) { o.order.lanes = 2; },
          {"lanes is 4 in the state and 2 here", "begun with lanes = N"});
  refused([](LoaderOptions& o) { o.batch_size = 32; }, {"16 in the state and 32 here"});
  refused([](LoaderOptions& o) { o.order.window_bytes *= 2; }, {"18 in the state and 36 here"});
  refused([](LoaderOptions& o) { o.order.uneven = Uneven::drop; }, {"uneven is pad", "drop here"});
  refused([](LoaderOptions& o) { o.order.drop_last = true; }, {"drop_last is false"});
  refused([](LoaderOptions& o) { o.order.mode = OrderMode::random; },
          {"chunk_shuffled", "random here"});

  const std::string other = scratch_.file("other.h5");
  test::write_packed(other, file_);  // the same images, another uuid
  expect_error(ErrorCode::invalid_argument, {other, "another file"},
               [&] { (void)Loader::resume(Dataset::open(other), options, state); });
  expect_error(ErrorCode::invalid_argument, {"world_size 3", "4 lanes", "begun with lanes = N"},
               [&] {
                 LoaderOptions three = options;
                 three.ranks.world_size = 3;
                 (void)Loader::resume(dataset, three, state);
               });
  expect_error(ErrorCode::invalid_argument, {"world_size"}, [&] {
    LoaderOptions none = options;
    none.ranks.world_size = 0;
    (void)Loader::resume(dataset, none, state);
  });
  std::string beyond = state;
  const std::string step = "\"step\":0";
  beyond.replace(beyond.find(step), step.size(), "\"step\":99");
  expect_error(ErrorCode::invalid_argument, {path_, "batch 99 of epochs of 15"},
               [&] { loader.restore(beyond); });
}

// ---- processes and resources ----

/// Whether a call throws the error of a forked child.
template <class Call>
bool is_told(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::unsupported &&
           std::string(error.what()).find("fork()") != std::string::npos;
  } catch (...) {
  }
  return false;
}

/// What a child does with what it inherited; 0 if all went as it should.
int use_inherited(std::optional<Loader>& loader, std::optional<Batch>& held) {
  const std::string state = R"({"chunkio_state":1})";
  if (!is_told([&] { (void)loader->next(); })) return 1;
  if (!is_told([&] { loader->start_epoch(0); })) return 2;
  if (!is_told([&] { (void)loader->epoch(1); })) return 3;
  if (!is_told([&] { (void)loader->state(); })) return 4;
  if (!is_told([&] { loader->restore(state); })) return 5;
  if (!is_told([&] { (void)loader->position(); })) return 6;
  if (!is_told([&] { (void)loader->stats(); })) return 7;
  if (!is_told([&] { (void)loader->epoch_stats(0); })) return 8;
  if (!is_told([&] { (void)loader->skipped(); })) return 9;
  Batch copy = *held;
  held.reset();
  loader.reset();
  return copy.size() == 4 ? 0 : 10;  // what was copied to the child stays readable
}

TEST_F(LoaderResumeTest, ForkedChildrenAreToldAndTheParentGoesOn) {
  LoaderOptions options = small(4);
  options.io.num_threads = 3;
  Loader whole(Dataset::open(path_), options);
  std::optional<Loader> loader(std::in_place, Dataset::open(path_), options);
  std::optional<Batch> held;
  loader->start_epoch(0);
  whole.start_epoch(0);
  std::int64_t epoch = 0;
  for (int round = 0; round < 50; ++round) {
    held.reset();
    held = loader->next();
    if (!held) {
      ++epoch;
      loader->start_epoch(epoch);
      held = loader->next();
      EXPECT_FALSE(whole.next());
      whole.start_epoch(epoch);
    }
    const auto expected = whole.next();
    ASSERT_TRUE(held && expected);
    if (held->size() < 4) continue;
    // The workers refill the ring meanwhile; or, at the worst moment, a thread that will not exist
    // in the child holds the mutex.
    std::unique_lock lock(chunkio::read::ring_of(*loader)->mutex(), std::defer_lock);
    if (round % 2 == 0) lock.lock();
    ASSERT_EQ(test::in_child([&] { return use_inherited(loader, held); }), 0) << "round " << round;
    if (lock) lock.unlock();
    EXPECT_EQ(rows_of(*held), rows_of(*expected)) << "the parent is not harmed";
  }
}

TEST_F(LoaderResumeTest, MovedLoadersGoOnAndMovedOverOnesEnd) {
  const Dataset dataset = Dataset::open(path_);
  Loader first(dataset, small());
  first.start_epoch(0);
  ASSERT_TRUE(first.next());
  Loader second(dataset, small());
  second.start_epoch(1);
  second = std::move(first);
  EXPECT_EQ(second.position().step, 1);
  EXPECT_EQ(static_cast<std::int64_t>(rest(second).size()), second.num_steps() - 1);
}

/// RssAnon of this process in bytes.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) << 10;
  }
  ADD_FAILURE() << "no RssAnon";
  return 0;
}

TEST_F(LoaderResumeTest, AThousandLoadersLeaveNothingBehind) {
  std::mt19937_64 random(test::test_seed());
  const auto one = [&](const Dataset& dataset) {
    LoaderOptions options = small(static_cast<std::int64_t>(1 + random() % 40));
    options.io.num_threads = static_cast<std::int64_t>(1 + random() % 4);
    options.io.source = random() % 3 == 0 ? SourceKind::hdf5 : SourceKind::automatic;
    options.io.on_error = random() % 2 == 0 ? OnError::skip : OnError::raise;
    std::vector<Batch> held;  // outlives its loader
    Loader loader(dataset, options);
    if (random() % 8 == 0) return;
    loader.start_epoch(static_cast<std::int64_t>(random() % 3));
    const std::uint64_t batches = random() % 8;
    for (std::uint64_t i = 0; i < batches; ++i) {
      auto batch = loader.next();
      if (batch && held.size() < 3) held.push_back(std::move(*batch));
    }
    if (random() % 4 == 0) loader.restore(loader.state());
    if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  };
  std::int64_t threads = 0;
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  for (int round = 0; round < 1000; ++round) {
    if (round == 100) {  // when pools and caches of the libraries have their size
      threads = test::settled_threads();
      files = test::entries_of("/proc/self/fd");
      bytes = anonymous_bytes();
    }
    one(Dataset::open(path_));
  }
  EXPECT_EQ(test::settled_threads(), threads);
  EXPECT_EQ(test::entries_of("/proc/self/fd"), files);
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::int64_t kMaxGrowth = std::int64_t{384} << 20;  // 256 MiB of what was freed is kept
#else
  // A ring of these sizes has 10 to 100 KiB: 900 of them would be far more.
  constexpr std::int64_t kMaxGrowth = std::int64_t{4} << 20;
#endif
  EXPECT_LT(anonymous_bytes() - bytes, kMaxGrowth);
}

}  // namespace
}  // namespace chunkio
