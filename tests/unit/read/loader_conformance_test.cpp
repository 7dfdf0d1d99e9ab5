// What Loader and DeviceLoader promise alike, tried on both; and Loader of files that other numbers
// than images of four axes lead.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "base/access.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/loader_subjects.hpp"
#include "support/pixels.hpp"

namespace chunkio {
namespace {

using test::BatchContents;
using test::expect_error;
using test::GrayImages;
using test::Host;
using test::OnDevice;
using test::PackedImages;
using test::Vectors;

template <class L>
concept GivesEpochs = requires(L&& loader) {
  std::forward<L>(loader).epoch(0);
};
static_assert(GivesEpochs<Loader&>);
static_assert(!GivesEpochs<Loader>, "its range would outlive it");

template <class Subject>
class LoaderConformance : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSteps = 12;

  [[nodiscard]] static LoaderOptions options() {
    return {.batch_size = 4,
            .seed = 3,
            .fields = {"weights"},
            // Some row groups, so that the order is more than one shuffle of everything.
            .order = {.window_bytes = 2 * 6 * Subject::File::kSampleBytes},
            .memory = {.max_held = 2, .release_timeout_seconds = 0},
            .io = {.num_threads = 2}};
  }
  [[nodiscard]] Loader host_loader(const LoaderOptions& wanted = options()) const {
    return {open(), wanted};
  }
  [[nodiscard]] Dataset open() const {
    return Dataset::open(path_, {.images = Subject::File::kNamed});
  }

  [[nodiscard]] static BatchContents take(Subject& subject) {
    const auto batch = subject.next();
    if (!batch) {
      ADD_FAILURE() << "no batch";
      return {};
    }
    return subject.read(*batch);
  }
  [[nodiscard]] static std::vector<BatchContents> drain(Subject& subject) {
    std::vector<BatchContents> all;
    while (const auto batch = subject.next()) all.push_back(subject.read(*batch));
    return all;
  }
  [[nodiscard]] static std::vector<BatchContents> epoch_of(Subject& subject, std::int64_t epoch) {
    subject.get().start_epoch(epoch);
    return drain(subject);
  }

  /// By the definition of the order and of the file, from `first` on.
  [[nodiscard]] std::vector<BatchContents> expected(std::int64_t epoch,
                                                    std::int64_t first = 0) const {
    const Loader loader = host_loader();
    const EpochOrder order(loader.row_groups(),
                           {.seed = options().seed,
                            .batch_size = options().batch_size,
                            .window_groups = loader.window_groups()},
                           epoch);
    std::vector<BatchContents> all;
    for (std::int64_t step = first; step < order.num_steps(); ++step) {
      BatchContents& batch = all.emplace_back();
      batch = {.epoch = epoch, .step = step, .ids = order.batch(step)};
      for (const std::int64_t row : batch.ids) {
        batch.labels.push_back(test::label_of(row));
        batch.weights.push_back(static_cast<float>(row));
        batch.weights.push_back(-static_cast<float>(row));
      }
    }
    return all;
  }

  test::ScratchFolder folder_;
  std::string path_ = Subject::File::make(folder_);
};

using Subjects =
    ::testing::Types<Host<PackedImages>, Host<GrayImages>, Host<Vectors>,
                     OnDevice<cuda::DeviceResident::off, 1>, OnDevice<cuda::DeviceResident::off, 5>,
                     OnDevice<cuda::DeviceResident::require, 1>>;

class SubjectNames {
 public:
  template <class Subject>
  static std::string GetName(int i) {
    return std::vector<std::string>{"Loader",
                                    "LoaderOfGray",
                                    "LoaderOfVectors",
                                    "DeviceLoader",
                                    "DeviceLoaderWithEchoBuffers",
                                    "ResidentDeviceLoader"}[static_cast<std::size_t>(i)];
  }
};

TYPED_TEST_SUITE(LoaderConformance, Subjects, SubjectNames);

TYPED_TEST(LoaderConformance, DeliversTheOrderWithLabelsAndFields) {
  TypeParam subject(this->host_loader());
  EXPECT_EQ(subject.get().num_steps(), this->kSteps);
  for (const std::int64_t epoch : {0, 1, 2, 7}) {
    EXPECT_EQ(this->epoch_of(subject, epoch), this->expected(epoch)) << epoch;
  }
}

TYPED_TEST(LoaderConformance, AFieldThatWasNotAskedForIsNotThere) {
  TypeParam subject(this->host_loader());
  subject.get().start_epoch(0);
  const auto batch = subject.next();
  ASSERT_TRUE(batch);
  expect_error(ErrorCode::not_found, {"'masks'", "fields"},
               [&] { static_cast<void>((*batch)["masks"]); });
}

TYPED_TEST(LoaderConformance, AnEpochIsARange) {
  TypeParam subject(this->host_loader());
  for (const std::int64_t epoch : {3, 0}) {
    std::vector<BatchContents> all;
    for (const auto& batch : subject.epoch(epoch)) all.push_back(subject.read(batch));
    EXPECT_EQ(all, this->expected(epoch));
  }
}

TYPED_TEST(LoaderConformance, AResumedLoaderGoesOnFromEveryState) {
  TypeParam first(this->host_loader());
  first.get().start_epoch(1);
  for (std::int64_t step = 0; step < this->kSteps; ++step) {
    const std::string state = first.get().state();
    EXPECT_EQ(first.get().state_at({1, step}, false), state) << step;
    TypeParam second = TypeParam::resume(this->open(), this->options(), state);
    EXPECT_EQ(this->drain(second), this->expected(1, step)) << step;
    static_cast<void>(first.next());
  }
}

TYPED_TEST(LoaderConformance, EachEpochHasItsStatistics) {
  TypeParam subject(this->host_loader());
  for (const std::int64_t epoch : {0, 1}) {
    subject.get().start_epoch(epoch);
    for (std::int64_t step = 0; step <= epoch; ++step) static_cast<void>(this->take(subject));
  }
  EXPECT_EQ(subject.get().epoch_stats(0).batches, 1);
  EXPECT_EQ(subject.get().epoch_stats(1).batches, 2);
  EXPECT_EQ(subject.get().epoch_stats(1).images, 8);
  EXPECT_EQ(subject.get().epoch_stats(2).batches, 0);
  EXPECT_EQ(subject.get().stats().batches, 3);
  EXPECT_EQ(subject.get().samples_per_epoch(), 47);
  subject.get().start_epoch(1);
  EXPECT_EQ(subject.get().epoch_stats(1).batches, 0) << "it was begun again";
}

TYPED_TEST(LoaderConformance, AWaitEndsWithItsTimeoutOrStopTokenAndNothingIsLost) {
  LoaderOptions options = this->options();
  options.io.disk_limit = DiskLimit{.request_seconds = 0.3, .queue_depth = 1};
  if (!TypeParam::kReads) options.io.disk_limit.reset();
  TypeParam subject(this->host_loader(options));
  subject.get().start_epoch(0);
  if (TypeParam::kReads) {
    expect_error(ErrorCode::timed_out, {"0.02 s", "timeout"},
                 [&] { static_cast<void>(subject.next({}, std::chrono::milliseconds(20))); });
    std::stop_source stop;
    const std::jthread stops([&stop] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop.request_stop();
    });
    expect_error(ErrorCode::cancelled, {"told to stop"},
                 [&] { static_cast<void>(subject.next(stop.get_token())); });
  }
  EXPECT_EQ(this->take(subject), this->expected(0).front());
  if (!TypeParam::kReads) return;
  EXPECT_GE(subject.get().stats().stall_seconds, 0.04) << "the waits that ended early count";

  TypeParam other(this->host_loader());
  other.get().start_epoch(1);
  for (int i = 0; i < 5; ++i) static_cast<void>(this->take(other));
  subject.get().restore(other.get().state());
  expect_error(ErrorCode::timed_out, {"timeout"},
               [&] { static_cast<void>(subject.next({}, std::chrono::nanoseconds(0))); });
  EXPECT_EQ(this->epoch_of(subject, 1), this->expected(1, 5)) << "no batch was delivered yet";
}

TYPED_TEST(LoaderConformance, TheEndOfAnEpochStays) {
  TypeParam subject(this->host_loader());
  EXPECT_EQ(this->epoch_of(subject, 1).size(), 12U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(subject.next());
    EXPECT_EQ(subject.get().position().epoch, 1);
    EXPECT_EQ(subject.get().position().step, this->kSteps);
  }
  EXPECT_EQ(this->epoch_of(subject, 2), this->expected(2));
}

TYPED_TEST(LoaderConformance, AnEpochMayBeStartedTwiceAndLeftAnywhere) {
  TypeParam subject(this->host_loader());
  subject.get().start_epoch(1);
  EXPECT_EQ(this->epoch_of(subject, 1), this->expected(1));
  for (int stop = 0; stop < this->kSteps; ++stop) {
    subject.get().start_epoch(1);
    for (int i = 0; i < stop; ++i) static_cast<void>(this->take(subject));
    EXPECT_EQ(this->epoch_of(subject, 1), this->expected(1)) << stop;
    subject.get().start_epoch(1);
    for (int i = 0; i < stop; ++i) static_cast<void>(this->take(subject));
    EXPECT_EQ(this->epoch_of(subject, 2), this->expected(2)) << stop;
  }
}

TYPED_TEST(LoaderConformance, LoopsThatCountStepsGetEveryBatch) {
  TypeParam subject(this->host_loader());
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    subject.get().start_epoch(epoch);
    std::vector<BatchContents> all;
    for (std::int64_t step = 0; step < subject.get().num_steps(); ++step) {
      all.push_back(this->take(subject));
    }
    EXPECT_EQ(all, this->expected(epoch));
  }
  EXPECT_FALSE(subject.next());
}

TYPED_TEST(LoaderConformance, LoopsThatCountStepsKeepWhatWasPrefetched) {
  LoaderOptions options = this->options();
  options.io.num_epochs = 3;
  TypeParam subject(this->host_loader(options));
  std::int64_t loads = 0;  // of an epoch
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    subject.get().start_epoch(epoch);
    for (std::int64_t step = 0; step < this->kSteps; ++step) {
      static_cast<void>(this->take(subject));
    }
    // Until something of the next epoch was read, so that there is something to be lost.
    loads = 8;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (TypeParam::kReads && epoch < 2 && subject.reading().chunk_loads <= loads * (epoch + 1)) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "nothing is prefetched";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  EXPECT_EQ(subject.reading().chunk_loads, TypeParam::kReads ? 3 * loads : loads);
  // The last of as many epochs as were announced is not the end.
  EXPECT_EQ(this->epoch_of(subject, 3), this->expected(3));
}

TYPED_TEST(LoaderConformance, ContinuesExactlyFromEveryState) {
  TypeParam first(this->host_loader());
  first.get().start_epoch(1);
  for (std::int64_t step = 0; step <= this->kSteps; ++step) {
    const std::string state = first.get().state();
    TypeParam second(this->host_loader());
    second.get().restore(state);
    EXPECT_EQ(second.get().state(), state);
    EXPECT_EQ(second.get().position().epoch, 1);
    EXPECT_EQ(second.get().position().step, step);
    EXPECT_EQ(this->drain(second), this->expected(1, step)) << step;
    EXPECT_EQ(this->epoch_of(second, 2), this->expected(2)) << step;
    // Where it has gone on meanwhile.
    second.get().restore(state);
    EXPECT_EQ(this->epoch_of(second, 1), this->expected(1, step)) << step;
    static_cast<void>(first.next());
  }
}

TYPED_TEST(LoaderConformance, GoesOnWhereTheLoaderItIsMadeOfWasRestoredTo) {
  Loader first = this->host_loader();
  first.start_epoch(1);
  for (std::int64_t step = 0; step <= this->kSteps; ++step) {
    const auto resumed = [&] {
      return Loader::resume(this->open(), this->options(), first.state());
    };
    TypeParam subject(resumed());
    EXPECT_EQ(subject.get().position().epoch, 1);
    EXPECT_EQ(subject.get().position().step, step);
    EXPECT_EQ(this->drain(subject), this->expected(1, step)) << step;
    TypeParam started(resumed());
    EXPECT_EQ(this->epoch_of(started, 1), this->expected(1, step)) << step;
    TypeParam elsewhere(resumed());
    EXPECT_EQ(this->epoch_of(elsewhere, 2), this->expected(2)) << step;
    static_cast<void>(first.next());
  }
}

TYPED_TEST(LoaderConformance, ARestoredPlaceStaysUntilABatchIsAskedFor) {
  TypeParam first(this->host_loader());
  first.get().start_epoch(2);
  for (int i = 0; i < 5; ++i) static_cast<void>(this->take(first));
  const std::string state = first.get().state();

  TypeParam subject(this->host_loader());
  subject.get().restore(state);
  for (int i = 0; i < 3; ++i) {
    subject.get().start_epoch(2);
    EXPECT_EQ(subject.get().position().step, 5);
    EXPECT_EQ(subject.get().state(), state);
  }
  EXPECT_EQ(this->take(subject), this->expected(2, 5).front());
  EXPECT_EQ(this->epoch_of(subject, 2), this->expected(2)) << "a batch was asked for";

  subject.get().restore(state);
  subject.get().start_epoch(3);
  EXPECT_EQ(this->epoch_of(subject, 2), this->expected(2)) << "another epoch was started";
}

TYPED_TEST(LoaderConformance, NoMoreThanMaxHeldBatchesAreHeld) {
  TypeParam subject(this->host_loader());
  subject.get().start_epoch(0);
  auto first = subject.next();
  auto second = subject.next();
  ASSERT_TRUE(first && second);
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorCode::timed_out,
                 {"held", "max_held", "release_timeout_seconds", "release one"},
                 [&] { static_cast<void>(subject.next()); });
  }
  EXPECT_EQ(subject.get().position().step, 2) << "nothing was lost";
  first.reset();
  EXPECT_EQ(this->take(subject), this->expected(0, 2).front());
}

TYPED_TEST(LoaderConformance, BatchesMayBeHeldToTheEndOfTheEpochAndBeyond) {
  TypeParam subject(this->host_loader());
  subject.get().start_epoch(0);
  const auto held = subject.next();
  ASSERT_TRUE(held);
  EXPECT_EQ(this->drain(subject), this->expected(0, 1));
  EXPECT_EQ(this->epoch_of(subject, 1), this->expected(1));
  EXPECT_EQ(subject.read(*held), this->expected(0).front());
}

TYPED_TEST(LoaderConformance, EpochsOutOfRangeAreRefusedAndChangeNothing) {
  TypeParam subject(this->host_loader());
  subject.get().start_epoch(0);
  EXPECT_EQ(this->take(subject), this->expected(0).front());
  for (const std::int64_t epoch : {std::int64_t{-1}, (std::int64_t{1} << 62) + 1}) {
    expect_error(ErrorCode::invalid_argument, {"epoch", std::to_string(epoch), "2^62"},
                 [&] { subject.get().start_epoch(epoch); });
  }
  EXPECT_EQ(this->drain(subject), this->expected(0, 1));
  const std::int64_t last = std::int64_t{1} << 62;
  EXPECT_EQ(this->epoch_of(subject, last), this->expected(last));
}

TYPED_TEST(LoaderConformance, BeforeAnEpochWasStartedThereIsNoBatch) {
  TypeParam subject(this->host_loader());
  expect_error(ErrorCode::invalid_argument, {"start_epoch()"},
               [&] { static_cast<void>(subject.next()); });
  EXPECT_EQ(this->epoch_of(subject, 0), this->expected(0));
}

TYPED_TEST(LoaderConformance, StatesOfOtherOrdersChangeNothing) {
  LoaderOptions other = this->options();
  other.seed = 99;
  const std::string of_other = TypeParam(this->host_loader(other)).get().state();
  TypeParam subject(this->host_loader());
  for (int stop = 0; stop <= this->kSteps; ++stop) {
    subject.get().start_epoch(stop);
    for (int i = 0; i < stop; ++i) static_cast<void>(this->take(subject));
    expect_error(ErrorCode::invalid_argument, {"seed is 99 in the state and 3 here"},
                 [&] { subject.get().restore(of_other); });
    EXPECT_THROW(subject.get().restore("{}"), Error);
    EXPECT_EQ(this->drain(subject), this->expected(stop, stop)) << stop;
  }
}

TYPED_TEST(LoaderConformance, AnEpochWithoutAnyBatchIsRefused) {
  LoaderOptions options = this->options();
  options.batch_size = 48;
  EXPECT_EQ(TypeParam(this->host_loader(options)).get().num_steps(), 1);
  options.order.drop_last = true;
  expect_error(
      ErrorCode::invalid_argument,
      {this->path_, "batch_size 48 is more than the 47 samples", "drop_last", "47 or less"},
      [&] { TypeParam{this->host_loader(options)}; });
  options.ranks.world_size = 2;
  options.batch_size = 24;  // One of the ranks delivers a sample twice.
  EXPECT_EQ(TypeParam(this->host_loader(options)).get().num_steps(), 1);
  options.order.uneven = Uneven::drop;
  expect_error(ErrorCode::invalid_argument, {"the 23 samples of each rank", "23 or less"},
               [&] { TypeParam{this->host_loader(options)}; });
}

TYPED_TEST(LoaderConformance, WhatWasMovedFromSaysSo) {
  TypeParam subject(this->host_loader());
  auto moved = std::move(subject.get());
  auto& empty = subject.get();
  const std::vector<std::function<void()>> calls = {
      [&] { empty.start_epoch(0); },
      [&] { static_cast<void>(subject.next()); },
      [&] { static_cast<void>(empty.state()); },
      [&] { empty.restore("{}"); },
      [&] { static_cast<void>(empty.position()); },
      [&] { static_cast<void>(empty.num_steps()); },
      [&] { static_cast<void>(empty.samples_per_epoch()); },
      [&] { static_cast<void>(empty.state_at({}, false)); },
      [&] { static_cast<void>(empty.stats()); },
      [&] { static_cast<void>(empty.epoch_stats(0)); },
      [&] { static_cast<void>(empty.skipped()); },
      [&] { static_cast<void>(empty.options()); },
      [&] { static_cast<void>(empty.dataset()); },
  };
  for (const auto& call : calls) {
    expect_error(ErrorCode::invalid_argument, {"was moved from", "moved into"}, call);
  }
  EXPECT_EQ(moved.num_steps(), this->kSteps);
  empty = std::move(moved);
  EXPECT_EQ(this->epoch_of(subject, 0), this->expected(0));
}

TYPED_TEST(LoaderConformance, ABatchThatWasMovedFromIsEmpty) {
  TypeParam subject(this->host_loader());
  subject.get().start_epoch(0);
  auto batch = subject.next();
  ASSERT_TRUE(batch);
  {
    const auto moved = std::move(*batch);
    EXPECT_EQ(moved.size(), 4);
    EXPECT_EQ(batch->size(), 0);
    EXPECT_EQ(batch->epoch(), 0);
    EXPECT_EQ(batch->step(), 0);
    EXPECT_TRUE(batch->sample_ids().empty());
    EXPECT_TRUE(batch->images().empty());
    EXPECT_TRUE(batch->labels().empty());
    EXPECT_THROW(static_cast<void>((*batch)["weights"]), Error);
    EXPECT_FALSE(batch->contains(moved["weights"]));
  }
}

TEST(DeviceLoader, NeedsImages) {
  const test::ScratchFolder folder;
  const std::string path = Vectors::make(folder);
  expect_error(ErrorCode::unsupported, {path, "x float32 [47,784] are no images"}, [&] {
    static_cast<void>(internal::Access::make<cuda::DeviceLoader>(
        std::make_shared<test::WatchedGpu>(), Loader(Dataset::open(path, {.images = "x"}), {}),
        cuda::DeviceOptions{.normalize = {.mean = {0}, .std = {1}}}));
  });
}

TEST(Loader, EveryMemberOfOneThatWasMovedFromSaysSo) {
  const test::ScratchFolder folder;
  test::write_packed(folder.file("train.h5"), {});
  Loader loader(Dataset::open(folder.file("train.h5")), {});
  const Loader moved = std::move(loader);
  const std::vector<std::function<void()>> calls = {
      [&] { static_cast<void>(loader.epoch(0)); },
      [&] { static_cast<void>(loader.source()); },
      [&] { static_cast<void>(loader.source_reason()); },
      [&] { static_cast<void>(loader.window_groups()); },
      [&] { static_cast<void>(loader.row_groups()); },
      [&] { static_cast<void>(loader.memory_bytes()); },
      [&] { static_cast<void>(loader.num_threads()); },
      [&] {
        static_cast<void>(internal::Access::make<cuda::DeviceLoader>(
            std::make_shared<test::WatchedGpu>(), std::move(loader), cuda::DeviceOptions{}));
      },
  };
  for (const auto& call : calls) {
    expect_error(ErrorCode::invalid_argument, {"was moved from", "moved into"}, call);
  }
}

}  // namespace
}  // namespace chunkio
