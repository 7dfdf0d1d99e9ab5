#include "stream_text.hpp"

#include <string>

#include <gtest/gtest.h>

namespace h5pack {
namespace {

/// On one line, so that it does not matter where a paragraph is broken.
std::string end_text(const chunkio::LoaderStats& stats) {
  EpochReport total;
  total.stats = stats;
  const std::string text = stream_end_text({}, total, false);
  std::string line;
  for (const char c : text) {
    const char next = c == '\n' ? ' ' : c;
    if (next != ' ' || line.empty() || line.back() != ' ') line += next;
  }
  return line;
}

/// Digests are what it waits for.
chunkio::LoaderStats waiting_stats() {
  chunkio::LoaderStats stats;
  stats.batches = 100;
  stats.images = 10'000;
  stats.bytes_delivered = 1'000'000'000;
  stats.bytes_read = 1'000'000'000;
  stats.chunk_loads = 100;
  stats.num_threads = 2;
  stats.seconds = 10;
  stats.stall_seconds = 9;
  stats.decode_seconds = 20;
  stats.facts = {.source = chunkio::SourceKind::mapped,
                 .num_cpus = 2,
                 .group_samples = 100,
                 .prefetch_depth = 4,
                 .picture_bytes = 1'000'000'000,
                 .spare_bytes = 0};
  stats.facts.verify = chunkio::Verify::always;
  return stats;
}

TEST(StreamText, AdviceNamesTheOptionOfThisProgram) {
  const chunkio::LoaderStats stats = waiting_stats().since({});
  EXPECT_NE(end_text(stats).find("Compare digests in the first epoch only (verify = first_epoch "
                                 "(--verify first_epoch))."),
            std::string::npos)
      << end_text(stats);
}

TEST(StreamText, NoAdviceIsNoLine) { EXPECT_EQ(end_text({}), ""); }

}  // namespace
}  // namespace h5pack
