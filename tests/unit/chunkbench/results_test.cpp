#include "chunkbench/results.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/error.hpp>

namespace {

using namespace bench;
using Json = nlohmann::ordered_json;

Results everything() {
  Results results;
  results.created = "2026-11-22T10:00:00Z";
  results.complete = true;
  results.versions = {{"hdf5", "1.10.8"}, {"chunkio", "0.1.0"}};
  results.machine = {{"cpu", "a"}, {"cpus", 2}, {"disks", {"b", nullptr}}};
  results.dataset = {"train.h5", {1'000, 8, 8, 3}, 192'000, {"deflate"}};
  results.options.rounds = 5;
  results.options.cold = true;
  results.options.batch_size = 256;
  results.options.seed = ~std::uint64_t{0};
  results.options.images_per_trial = 500;
  results.options.limit = ShapedDisk{"custom", 1e8, 0.01, 4};
  results.options.memory_limit = 1 << 30;
  results.options.throttled_device = "8:0 1e8";
  results.options.notes = {"a note"};
  results.ceilings = {{"storage", {{3, 2, 4}, 5}, {2, 3, 4, 3, 3}}};
  Cell cell;
  cell.chunk_bytes = 1'920;
  cell.chunk_samples = 10;
  cell.cache_bytes = 0;
  cell.order = "random";
  cell.source = "h5dread";
  cell.threads = 3;
  cell.status = CellStatus::pruned;
  cell.reason = "slow";
  cell.rounds = {{500, 0.25, 0.125, 96'000, 500}};
  cell.images_per_second = Sampled{{2'000, 2'000, 2'000}, 1};
  cell.bytes_per_second = Sampled{{384'000, 384'000, 384'000}, 1};
  cell.hit_rate = {0.5, std::nullopt};
  cell.read_amplification = {std::nullopt, 1.25};
  cell.chunk_loads = {500, 500};
  cell.stages = StageSeconds{1, 2, 3, 4, 5, 6};
  results.cells = {cell};
  results.shuffle = {{"chunk_shuffled", 1'920, 19'200, 0.75, std::nullopt, true}};
  results.ladder = {{"a variant", {{1, 1, 1}, 1}, 0.5, 2.0}};
  results.time.seconds_total = 10;
  results.time.seconds_measured = 9;
  return results;
}

TEST(SweepResults, ReadAgainTheyAreTheSame) {
  const Json json = to_json(everything());
  EXPECT_EQ(to_json(parse_results(json.dump(), "x")), json);
  EXPECT_EQ(json["cells"][0]["status"], "pruned");
  EXPECT_EQ(json["cells"][0]["stages"]["output_wait"], 6.0);
  EXPECT_EQ(json["options"]["seed"], ~std::uint64_t{0});
  EXPECT_EQ(json["cells"][0]["images_per_second"],
            (Json{{"median", 2'000.0}, {"min", 2'000.0}, {"max", 2'000.0}, {"n", 1}}));
}

TEST(SweepResults, WhatIsAbsentIsNull) {
  Results results = everything();
  results.ladder.clear();
  results.options.limit.reset();
  results.cells[0].status = CellStatus::pending;
  results.cells[0].images_per_second.reset();
  results.cells[0].stages.reset();
  const Json json = to_json(results);
  EXPECT_TRUE(json["ladder"].is_null());
  EXPECT_TRUE(json["options"]["limit"].is_null());
  EXPECT_TRUE(json["cells"][0]["stages"].is_null());
  const Results again = parse_results(json.dump(), "x");
  EXPECT_FALSE(again.options.limit);
  EXPECT_FALSE(again.cells[0].images_per_second);
  EXPECT_TRUE(again.ladder.empty());
}

TEST(SweepResults, MembersThatAreNotKnownAreIgnored) {
  Json json = to_json(everything());
  json["later"] = {{"a", 1}};
  json["cells"][0]["later"] = 1;
  EXPECT_NO_THROW(static_cast<void>(parse_results(json.dump(), "x")));
}

/// Whether `damage` may stand at `path` as well as `value` does.
bool may_be(const std::string& path, const Json& value, const Json& damage) {
  // What describes the machine and the versions is free.
  if (path.starts_with("/machine/") || path.starts_with("/versions/")) return true;
  static const std::set<std::string> kOptional = {"/dataset/identity",
                                                  "/dataset/labels",
                                                  "/options/images_per_trial",
                                                  "/options/limit/bytes_per_second",
                                                  "/options/limit/request_seconds",
                                                  "/options/limit/queue_depth",
                                                  "/options/memory_limit",
                                                  "/options/throttled_device",
                                                  "/cells/0/reason",
                                                  "/cells/0/hit_rate/predicted",
                                                  "/cells/0/read_amplification/measured",
                                                  "/cells/0/chunk_loads/predicted",
                                                  "/cells/0/chunk_loads/measured",
                                                  "/shuffle/0/label_entropy",
                                                  "/shuffle/0/chosen",
                                                  "/ladder/0/read_amplification",
                                                  "/time/seconds_preparing"};
  if (damage.is_null()) return kOptional.contains(path);
  if (damage.is_string()) return value.is_string() && !path.ends_with("/status");
  if (damage.is_boolean()) return value.is_boolean();
  return false;
}

// Every value of the file, damaged in turn, is named with the file, unless it can be what was
// found.
TEST(SweepResults, NoDamageIsTakenForAResult) {
  const Json whole = to_json(everything()).flatten();
  for (const auto& [path, value] : whole.items()) {
    for (const Json& damage : {Json("x"), Json(-1), Json(1e300), Json(true), Json(nullptr)}) {
      Json flat = whole;
      flat[path] = damage;
      const std::string text = flat.unflatten().dump();
      try {
        static_cast<void>(parse_results(text, "some.json"));
        if (damage == value) continue;
        EXPECT_TRUE(may_be(path, value, damage)) << path << " is " << damage;
      } catch (const chunkio::Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("'some.json'")) << path;
        EXPECT_TRUE(error.code() == chunkio::ErrorCode::corrupt_data ||
                    error.code() == chunkio::ErrorCode::unsupported)
            << path;
      }
    }
  }
}

TEST(SweepResults, NoBeginningIsTakenForTheWhole) {
  const std::string text = to_json(everything()).dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(static_cast<void>(parse_results(text.substr(0, length), "x")), chunkio::Error)
        << length;
  }
}

}  // namespace
