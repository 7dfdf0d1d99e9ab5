// The command line of the trainers.

#include "options.hpp"

#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace trainer {
namespace {

Options parse(std::vector<std::string> words, const Options& defaults = {}) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(arguments, defaults);
}

void expect_usage_error(const std::vector<std::string>& words, const std::string& part) {
  try {
    static_cast<void>(parse(words));
    ADD_FAILURE() << "no error, expected " << part;
  } catch (const UsageError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(TrainerOptions, WhatIsNotSaidIsAsTheTrainerHasIt) {
  Options defaults;
  defaults.batch = 96;
  defaults.stem_stride = 4;
  const Options options = parse({"train.h5"}, defaults);
  EXPECT_EQ(options.train_file, "train.h5");
  EXPECT_EQ(options.test_file, "");
  EXPECT_EQ(options.batch, 96);
  EXPECT_EQ(options.stem_stride, 4);
  EXPECT_EQ(options.loader, std::nullopt);
  EXPECT_TRUE(options.augment);
  EXPECT_TRUE(options.resident);
}

TEST(TrainerOptions, EveryOptionIsUnderstood) {
  std::istringstream line(
      "--loader device --order random --eval last --resident off train.h5 "
      "--seed 18446744073709551615 --epochs 3 --batch 64 --lr 0.05 --width 16 --stem-stride 2 "
      "--echo 2 --big-batch 4 --limit-images 100 --threads 3 --memory-budget 3GiB "
      "--window-bytes 65536 --direct-io --no-augment --json out.json test.h5");
  const Options options = parse({std::istream_iterator<std::string>(line), {}});
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
  EXPECT_EQ(options.big_batch, 4);
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

TEST(TrainerOptions, HelpNamesEveryOptionAndNeedsNoFile) {
  EXPECT_TRUE(parse({"--help", "--whatever"}).help);
  EXPECT_TRUE(parse({"-h"}).help);
  Options defaults;
  defaults.learning_rate = 0.05;
  const std::string help = describe_options(defaults);
  for (const char* const name :
       {"--loader",    "--order",    "--seed",        "--epochs",        "--batch",
        "--lr",        "--width",    "--stem-stride", "--no-augment",    "--limit-images",
        "--eval",      "--echo",     "--big-batch",   "--memory-budget", "--window-bytes",
        "--direct-io", "--resident", "--threads",     "--json",          "(default 0.05)"}) {
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
}

TEST(TrainerOptions, SizesAreBytesOrBinaryUnits) {
  const auto budget = [](const std::string& text) {
    return parse({"a", "--memory-budget", text}).memory_budget;
  };
  EXPECT_EQ(budget("1"), 1);
  EXPECT_EQ(budget("64KiB"), 65536);
  EXPECT_EQ(budget("8589934591GiB"), std::int64_t{8589934591} << 30);
  for (const char* const text : {"0", "-1", "3TB", "3 MiB", "MiB", "1.5GiB", "8589934592GiB", ""}) {
    expect_usage_error({"a", "--memory-budget", text}, "not a size such as 512MiB");
  }
}

TEST(TrainerOptions, WhatCannotBeMeantIsAnError) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "expected TRAIN.h5"},
      {{"a", "b", "c"}, "expected TRAIN.h5"},
      {{"a", "--wdith", "3"}, "unknown option --wdith"},
      {{"a", "--batch"}, "--batch needs a value"},
      {{"a", "--batch", "1"}, "--batch 1: not a number in range"},
      {{"a", "--batch", "1048577"}, "not a number in range"},
      {{"a", "--epochs", "1x"}, "--epochs 1x: not a number"},
      {{"a", "--epochs", "0"}, "--epochs 0"},
      {{"a", "--seed", "-1"}, "--seed -1"},
      {{"a", "--seed", "18446744073709551616"}, "--seed"},
      {{"a", "--lr", "nan"}, "--lr nan"},
      {{"a", "--lr", "-0.1"}, "--lr -0.1"},
      {{"a", "--order", "sorted"}, "expected one of chunk_shuffled, random"},
      {{"a", "--loader", "gpu"}, "expected one of device, host, naive"},
      {{"a", "--eval", "never"}, "expected one of each, last"},
      {{"a", "--resident", "on"}, "expected one of auto, off"},
      {{"a", "--json", ""}, "--json needs the name of a file"},
      {{"a", "--loader", "naive", "--echo", "2"}, "--echo needs --loader device or host"},
      {{"a", "--big-batch", "2", "--loader", "host"}, "--big-batch needs --loader device"},
  };
  for (const auto& [words, part] : cases) expect_usage_error(words, part);
}

}  // namespace
}  // namespace trainer
