/// What runs leave for the next: journals, indices of remote files, states. Its kind (1 byte), and
/// the text or the records. Digests are made to match, so that what is behind them is reached.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "fuzz/fuzz_target.hpp"
#include "io/remote_index.hpp"
#include "read/loader_state.hpp"
#include "support/scratch.hpp"
#include "write/encoded_part.hpp"
#include "write/journal.hpp"
#include "write/run_description.hpp"

namespace chunkio::fuzz {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string& scratch_file() {
  static const test::ScratchFolder folder;
  static const std::string path = folder.file("input");
  return path;
}

void write_scratch(std::span<const std::byte> bytes) {
  test::write_bytes(scratch_file(),
                    {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

void read_states(std::span<const std::byte> bytes) {
  const read::LoaderState state = read::parse_state(text_of(bytes));
  if (read::to_json(read::parse_state(read::to_json(state))) != read::to_json(state)) std::abort();
}

void read_descriptions(std::span<const std::byte> bytes) {
  static const std::string kNow = write::describe_run(
      R"({"seed":7})", {.num_samples = 3, .height = 4, .width = 4, .channels = 3}, {}, 2);
  (void)write::first_difference(text_of(bytes), kNow);
}

void read_journal(std::span<const std::byte> bytes) {
  write_scratch(bytes);
  if (auto journal = write::Journal::take_up(scratch_file())) {
    for (const write::ChunkRecord& record : journal->take_chunks()) {
      (void)write::from_record(record);
    }
    journal->forget_saved();
  }
}

/// A journal of one record, which has any note.
void read_record(std::span<const std::byte> bytes) {
  InputReader reader(bytes);
  write::ChunkRecord record{.chunk = reader.take<std::int64_t>(),
                            .num_rows = reader.take<std::int64_t>(),
                            .digest = reader.take<std::uint64_t>(),
                            .note = {}};
  record.note = text_of(reader.rest());
  ::unlink(scratch_file().c_str());
  {
    auto journal = write::Journal::create(scratch_file(), {.num_chunks = 3, .run = "run"});
    journal.append({&record, 1});
    journal.file().keep();
  }
  auto again = write::Journal::take_up(scratch_file());
  if (!again || again->take_chunks() != std::vector{record}) std::abort();
  (void)write::from_record(record);
}

void read_index(std::span<const std::byte> bytes) {
  write_scratch(bytes);
  const io::ObjectVersion object{"https://host/a.h5", "https://host/a.h5", "\"1\"", 1'000'000};
  const io::RemoteIndex index = io::RemoteIndex::load(scratch_file(), object);
  std::vector<std::byte> out(100);
  for (std::int64_t begin = 0; begin < object.bytes; begin += 7777) (void)index.read(begin, out);
}

/// The parts of an index, whose head has their digest.
void read_parts(std::span<const std::byte> bytes) {
  const std::string head =
      "{\"chunkio_index\":1,\"objects\":[{\"bytes\":1000000,\"digest\":\"" +
      base::digest_text(base::digest(bytes)) + "\",\"part_bytes\":" + std::to_string(bytes.size()) +
      ",\"place\":\"" + io::place_digest("https://host/a.h5") + "\",\"version\":\"\\\"1\\\"\"}]}\n";
  const auto raw = std::as_bytes(std::span(head));
  std::vector<std::byte> file(raw.begin(), raw.end());
  file.insert(file.end(), bytes.begin(), bytes.end());
  read_index(file);
}

}  // namespace

void run(std::span<const std::byte> input) {
  InputReader reader(input);
  const auto kind = reader.take<std::uint8_t>();
  try {
    switch (kind % 6) {
      case 0:
        return read_states(reader.rest());
      case 1:
        return read_descriptions(reader.rest());
      case 2:
        return read_journal(reader.rest());
      case 3:
        return read_record(reader.rest());
      case 4:
        return read_index(reader.rest());
      default:
        return read_parts(reader.rest());
    }
  } catch (const Error&) {
  }
}

}  // namespace chunkio::fuzz
