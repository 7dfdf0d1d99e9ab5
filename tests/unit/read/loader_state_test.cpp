#include "read/loader_state.hpp"

#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio::read {
namespace {

using nlohmann::json;

LoaderState some_state() {
  return {.epoch = 3,
          .step = 120,
          .seed = std::numeric_limits<std::uint64_t>::max(),
          .samples = 50'000,
          .group_samples = 341,
          .window_groups = 256,
          .lanes = 8,
          .global_batch = 512,
          .order = OrderMode::random,
          .uneven = Uneven::exact,
          .drop_last = true,
          .selection = "0123456789abcdef",
          .fingerprint = "fedcba9876543210"};
}

void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  SCOPED_TRACE(text.substr(0, 200));
  test::expect_error(ErrorCode::invalid_argument, parts, [&] { (void)parse_state(text); });
}

TEST(LoaderState, ReadsWhatItWrites) {
  for (const OrderMode order :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const Uneven uneven : {Uneven::pad, Uneven::drop, Uneven::exact}) {
      LoaderState state = some_state();
      state.order = order;
      state.uneven = uneven;
      state.drop_last = !state.drop_last;
      const std::string text = to_json(state);
      EXPECT_LT(text.size(), 512U);
      EXPECT_EQ(text.find('\n'), std::string::npos);
      const LoaderState read = parse_state(text);
      EXPECT_EQ(to_json(read), text);
      EXPECT_EQ(read.seed, state.seed);
      EXPECT_EQ(read.epoch, 3);
      EXPECT_EQ(read.step, 120);
      EXPECT_NO_THROW(require_same_order(read, state, "f.h5"));
    }
  }
  // White space and the order of members do not matter.
  EXPECT_EQ(to_json(parse_state(json::parse(to_json(some_state())).dump(2))),
            to_json(some_state()));
}

TEST(LoaderState, RefusesWhatIsNotAState) {
  const std::string good = to_json(some_state());
  expect_refused("", {"not a loader state"});
  expect_refused("hello", {"not a loader state"});
  expect_refused("[]", {"not a JSON object"});
  expect_refused("{}", {"'chunkio_state' is missing"});
  expect_refused("17", {"not a JSON object"});
  expect_refused(good + good, {"not a loader state"});
  expect_refused(good + std::string(1, '\0') + "more", {"not a JSON object"});
  expect_refused(std::string(5000, ' ') + good, {"too long"});
  expect_refused(std::string(4000, '['), {"not a JSON object"});
  for (std::size_t length = 0; length < good.size(); ++length) {
    expect_refused(good.substr(0, length), {"not a loader state"});
  }
}

TEST(LoaderState, RefusesEveryMissingRepeatedOrUnknownMember) {
  const json good = json::parse(to_json(some_state()));
  for (const auto& [name, value] : good.items()) {
    json without = good;
    without.erase(name);
    expect_refused(without.dump(), {"'" + name + "' is missing"});
    std::string twice = good.dump();
    twice.insert(1, json(name).dump() + ":" + value.dump() + ",");
    expect_refused(twice, {"'" + name + "' is there twice"});
  }
  json more = good;
  more["path"] = "/data";
  expect_refused(more.dump(), {"'path' is not known"});
  more = good;
  more["a\nb\x1b[31m"] = 1;
  expect_refused(more.dump(), {"a member is not known"});
}

TEST(LoaderState, RefusesValuesOfAnotherKind) {
  const json good = json::parse(to_json(some_state()));
  const std::vector<json> odd = {json(),           json(true),       json(-1),
                                 json(1.5),        json(1.0),        json("x"),
                                 json::array({1}), json::object({}), json(1e300)};
  for (const auto& [name, value] : good.items()) {
    for (const json& other : odd) {
      if (value.is_boolean() && other.is_boolean()) continue;
      json changed = good;
      changed[name] = other;
      expect_refused(changed.dump(), {"'" + name + "'"});
    }
  }
  const auto with = [&](const char* name, const json& value) {
    json changed = good;
    changed[name] = value;
    return changed.dump();
  };
  for (const char* name : {"samples", "group_samples", "window_groups", "lanes", "global_batch"}) {
    expect_refused(with(name, 0), {name, "from 1"});
    expect_refused(with(name, std::uint64_t{1} << 63), {name});
  }
  expect_refused(with("epoch", (std::uint64_t{1} << 62) + 1), {"epoch"});
  EXPECT_NO_THROW((void)parse_state(with("epoch", std::uint64_t{1} << 62)));
  expect_refused(with("selection", "0123456789ABCDEF"), {"selection"});
  EXPECT_NO_THROW((void)parse_state(with("selection", "all")));
  expect_refused(with("fingerprint", "all"), {"fingerprint"});
  expect_refused(with("order", "shuffled"), {"order"});
  expect_refused(with("chunkio_state", 3), {"version 3", "versions 1 to 2"});
  expect_refused(with("chunkio_state", 0), {"version 0", "versions 1 to 2"});
}

TEST(LoaderState, NamesTheVersionOfItsOrder) {
  LoaderState state = some_state();
  EXPECT_EQ(to_json(state).find(R"({"chunkio_state":1,"epoch":3,)"), 0U);
  state.order_version = 2;
  EXPECT_EQ(to_json(state).find(R"({"chunkio_state":2,"epoch":3,)"), 0U);
  EXPECT_EQ(parse_state(to_json(state)).order_version, 2);
  LoaderState own = some_state();
  own.group_samples = 7;
  test::expect_error(ErrorCode::invalid_argument,
                     {"f.h5", "version of the order is 2 in the state and 1 here"},
                     [&] { require_same_order(state, own, "f.h5"); });
}

TEST(LoaderState, NamesEveryDifferenceWithBothValues) {
  const LoaderState own = some_state();
  const auto refused = [&](const std::function<void(LoaderState&)>& change,
                           const std::vector<std::string>& parts) {
    LoaderState state = own;
    change(state);
    std::vector<std::string> all = parts;
    all.emplace_back("f.h5");
    test::expect_error(ErrorCode::invalid_argument, all,
                       [&] { require_same_order(state, own, "f.h5"); });
  };
  refused([](LoaderState& s) { s.seed = 7; },
          {"seed is 7 in the state and 18446744073709551615 here"});
  refused([](LoaderState& s) { s.samples = 49'999; },
          {"samples is 49999 in the state and 50000 here"});
  refused([](LoaderState& s) { s.group_samples = 340; }, {"340 in the state and 341 here"});
  refused([](LoaderState& s) { s.window_groups = 255; }, {"255 in the state and 256 here"});
  refused([](LoaderState& s) { s.lanes = 4; }, {"lanes is 4 in the state and 8 here"});
  refused([](LoaderState& s) { s.global_batch = 64; },
          {"batch_size * world_size", "64 in the state and 512 here"});
  refused([](LoaderState& s) { s.order = OrderMode::sequential; },
          {"order is sequential in the state and random here"});
  refused([](LoaderState& s) { s.uneven = Uneven::pad; },
          {"uneven is pad in the state and exact here"});
  refused([](LoaderState& s) { s.drop_last = false; },
          {"drop_last is false in the state and true here"});
  refused([](LoaderState& s) { s.selection = "all"; },
          {"selection", "all in the state and 0123456789abcdef here"});
  refused([](LoaderState& s) { s.fingerprint = "0000000000000000"; },
          {"another file", "0000000000000000", "fedcba9876543210"});
  refused(
      [](LoaderState& s) {
        s.seed = 1;
        s.lanes = 2;
      },
      {"seed is 1", "lanes is 2"});
  // The place is not part of the order.
  LoaderState elsewhere = own;
  elsewhere.epoch = 0;
  elsewhere.step = 0;
  EXPECT_NO_THROW(require_same_order(elsewhere, own, "f.h5"));
}

TEST(LoaderState, FingerprintOfAPackedFileIsOfItsContentsAndNothingElse) {
  const test::ScratchFolder folder;
  const auto pack = [&](const std::string& name, const test::PackedFile& file) {
    test::write_packed(folder.file(name), file);
    return contents_fingerprint(Dataset::open(folder.file(name)));
  };
  const std::string fingerprint = pack("a.h5", {});
  EXPECT_EQ(fingerprint.size(), 16U);
  std::filesystem::copy_file(folder.file("a.h5"), folder.file("copy.h5"));
  EXPECT_EQ(contents_fingerprint(Dataset::open(folder.file("copy.h5"))), fingerprint);

  std::set<std::string> all{fingerprint};
  all.insert(pack("b.h5", {.num_samples = 101}));
  all.insert(pack("c.h5", {.chunk_samples = 8}));
  all.insert(pack("d.h5", {.layout = Layout::nchw}));
  all.insert(pack("e.h5", {.height = 4, .width = 5}));
  EXPECT_EQ(all.size(), 5U);
}

TEST(LoaderState, FingerprintTellsForeignFilesAndTheirDatasetsApart) {
  const test::ScratchFolder folder;
  const std::string path = test::h5py_file(folder, "splits");
  const auto fingerprint = [](const std::string& file, const std::string& images) {
    return contents_fingerprint(Dataset::open(file, {.images = images}));
  };
  // Same shape, chunks and bytes; only the names and the images differ, or only the names.
  const std::string first = fingerprint(path, "train/images");
  EXPECT_NE(fingerprint(path, "test/images"), first);
  EXPECT_NE(fingerprint(path, "copy/images"), first);

  std::filesystem::copy_file(path, folder.file("copy.h5"));
  EXPECT_EQ(fingerprint(folder.file("copy.h5"), "train/images"), first);

  // The same file with other images.
  for (const std::string changed :
       {"splits_changed_first", "splits_changed_middle", "splits_changed_last"}) {
    const std::string other = test::h5py_file(folder, changed);
    EXPECT_NE(fingerprint(other, "train/images"), first) << changed;
  }
}

TEST(LoaderState, SelectionDigestTellsSetsApart) {
  EXPECT_EQ(selection_digest(nullptr, 10), "all");
  const RowSelection all({{0, 10}});
  EXPECT_EQ(selection_digest(&all, 10), "all");
  const RowSelection some({{0, 3}, {5, 9}});
  const RowSelection others({{0, 3}, {5, 8}});
  const RowSelection same({{6, 9}, {0, 3}, {5, 6}});
  EXPECT_EQ(selection_digest(&some, 10).size(), 16U);
  EXPECT_NE(selection_digest(&some, 10), selection_digest(&others, 10));
  EXPECT_EQ(selection_digest(&some, 10), selection_digest(&same, 10));
}

}  // namespace
}  // namespace chunkio::read
