#include "device/echo_deal.hpp"

#include <cstddef>
#include <numeric>
#include <utility>

#include "base/keyed_permutation.hpp"
#include "base/philox.hpp"

namespace chunkio::device {

void deal_rows(const EchoKey& key, std::int64_t echo_pass, std::span<std::int32_t> rows) {
  std::iota(rows.begin(), rows.end(), 0);
  if (echo_pass == 0) return;
  const base::PhiloxKey stream_key = base::stream_key(
      key.seed, static_cast<std::uint64_t>(key.epoch),
      base::low_word(static_cast<std::uint64_t>(key.rank)), base::StreamPurpose::echo);
  base::PhiloxStream stream(stream_key, static_cast<std::uint64_t>(key.first_batch) << 32 |
                                            static_cast<std::uint64_t>(echo_pass));
  base::fisher_yates(rows.size(), stream, [rows](std::uint64_t i, std::uint64_t j) {
    std::swap(rows[static_cast<std::size_t>(i)], rows[static_cast<std::size_t>(j)]);
  });
}

}  // namespace chunkio::device
