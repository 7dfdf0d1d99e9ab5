/// What runs leave for the next: journals, indices of remote files, states. Its kind (1 byte), and
/// the text or the records. Digests are made to match, so that what is behind them is reached.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
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

const io::ObjectVersion kObject{"https://host/a.h5", "https://host/a.h5", "1", 1'000'000};

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

void put_number(std::span<std::byte> bytes, std::uint64_t number) {
  std::memcpy(bytes.data(), &number, sizeof number);
}

/// The digests of the header, and of the record behind it, are put right: what they cover is where
/// it is changed.
void read_journal(std::span<const std::byte> bytes) {
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  constexpr std::size_t kStart = 20;  // magic, version, size of the body
  if (file.size() >= kStart + 8) {
    InputReader size(std::span<const std::byte>(file).subspan(12, 8));
    const std::size_t end = kStart + size.take<std::uint64_t>() % (file.size() - kStart - 7);
    put_number(std::span(file).subspan(12), end - kStart);
    const std::uint64_t header = base::digest(std::span<const std::byte>(file).first(end));
    put_number(std::span(file).subspan(end), header);
    const std::size_t record = end + 8;
    constexpr std::size_t kRecordStart = 12;  // kind, size of the body
    if (file.size() >= record + kRecordStart + 8) {
      const std::uint64_t body = file.size() - record - kRecordStart - 8;
      put_number(std::span(file).subspan(record + 4), body);
      base::RunningDigest digest;
      digest.add(std::as_bytes(std::span(&header, 1)));
      digest.add(std::as_bytes(std::span(&record, 1)));
      digest.add(std::span<const std::byte>(file).subspan(record, kRecordStart + body));
      put_number(std::span(file).last(8), digest.value());
    }
  }
  write_scratch(file);
  auto journal = write::Journal::take_up(scratch_file());
  if (!journal) throw Error(ErrorCode::corrupt_data, "no journal");
  for (const write::ChunkRecord& record : journal->take_chunks()) {
    (void)write::from_record(record);
  }
  journal->forget_saved();
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
  const io::RemoteIndex index = io::RemoteIndex::load(scratch_file(), kObject);
  std::vector<std::byte> out(100);
  for (std::int64_t begin = 0; begin < kObject.bytes; begin += 777) (void)index.read(begin, out);
}

/// The parts of an index file, the head of which is right.
void read_parts(std::span<const std::byte> bytes) {
  const std::string line =
      "{\"bytes\":1000000,\"digest\":\"" + base::digest_text(base::digest(bytes)) +
      "\",\"part_bytes\":" + std::to_string(bytes.size()) + ",\"parts_at\":0,\"place\":\"" +
      base::long_digest_text(kObject.place) + "\",\"version\":\"1\"}\n";
  const std::string file = "{\"chunkio_index\":1,\"head_bytes\":" + std::to_string(line.size()) +
                           "}\n" + line + text_of(bytes);
  read_index(std::as_bytes(std::span(file)));
}

}  // namespace

bool run(std::span<const std::byte> input) {
  constexpr std::array kReaders = {read_states, read_descriptions, read_journal,
                                   read_record, read_index,        read_parts};
  InputReader reader(input);
  const auto kind = reader.take<std::uint8_t>();
  try {
    kReaders[kind % kReaders.size()](reader.rest());
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace chunkio::fuzz
