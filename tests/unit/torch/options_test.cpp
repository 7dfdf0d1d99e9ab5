// The command line of the trainers.

#include "options.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace trainer {
namespace {

Options parse(const std::string& line, Options options = {}) {
  CLI::App app;
  add_options(app, options);
  app.parse(line);
  return options;
}

TEST(TrainerOptions, WhatIsNotSaidIsAsTheTrainerHasIt) {
  Options defaults;
  defaults.batch = 96;
  defaults.stem_stride = 4;
  const Options options = parse("train.h5", defaults);
  EXPECT_EQ(options.train_file, "train.h5");
  EXPECT_EQ(options.test_file, "");
  EXPECT_EQ(options.batch, 96);
  EXPECT_EQ(options.stem_stride, 4);
  EXPECT_EQ(options.loader, std::nullopt);
  EXPECT_TRUE(options.augment);
  EXPECT_TRUE(options.resident);
}

TEST(TrainerOptions, EveryOptionIsUnderstood) {
  const Options options = parse(
      "--loader device --order random --eval last --resident off train.h5 "
      "--seed 18446744073709551615 --epochs 3 --batch 32 --batch 64 --lr 0.05 --width 16 "
      "--stem-stride 2 "
      "--echo 2 --echo-buffer-batches 4 --limit-images 100 --threads 3 --memory-budget 3GiB "
      "--window-bytes 65536 --direct-io --no-augment --json out.json test.h5");
  EXPECT_EQ(options.loader, LoaderKind::device);
  EXPECT_EQ(options.order, chunkio::OrderMode::random);
  EXPECT_FALSE(options.eval_each_epoch);
  EXPECT_FALSE(options.resident);
  EXPECT_EQ(options.seed, 18446744073709551615U);
  EXPECT_EQ(options.epochs, 3);
  EXPECT_EQ(options.batch, 64);
  EXPECT_EQ(options.learning_rate, 0.05);
  EXPECT_EQ(options.width, 16);
  EXPECT_EQ(options.stem_stride, 2);
  EXPECT_EQ(options.echo, 2);
  EXPECT_EQ(options.echo_buffer_batches, 4);
  EXPECT_EQ(options.limit_images, 100);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.memory_budget, std::int64_t{3} << 30);
  EXPECT_EQ(options.window_bytes, 65536);
  EXPECT_TRUE(options.direct_io);
  EXPECT_FALSE(options.augment);
  EXPECT_EQ(options.json, "out.json");
  EXPECT_EQ(options.train_file, "train.h5");
  EXPECT_EQ(options.test_file, "test.h5");
}

TEST(TrainerOptions, WhatCannotBeMeantIsOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "TRAIN.h5"},
      {"a b c", "c"},
      {"a --wdith 3", "--wdith"},
      {"a --batch", "--batch"},
      {"a --batch 1", "--batch"},
      {"a --batch 1048577", "--batch"},
      {"a --epochs 1x", "--epochs"},
      {"a --epochs 0", "--epochs"},
      {"a --seed -1", "--seed"},
      {"a --lr -0.1", "--lr"},
      {"a --order sorted", "chunk_shuffled,random"},
      {"a --loader gpu", "device,host,naive"},
      {"a --eval never", "each,last"},
      {"a --resident on", "auto,off"},
      {"a --memory-budget 0", "--memory-budget"},
      {"a --memory-budget 3PTB", "--memory-budget"},
      {"a --memory-budget 1.5GiB", "--memory-budget"},
      {"a --loader naive --echo 2", "--echo: needs --loader device or host"},
      {"a --echo-buffer-batches 2 --loader host", "--echo-buffer-batches: needs --loader device"},
  };
  for (const auto& [line, part] : cases) {
    SCOPED_TRACE(line);
    try {
      parse(line);
      ADD_FAILURE() << "no error";
    } catch (const CLI::ParseError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(part), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace trainer
