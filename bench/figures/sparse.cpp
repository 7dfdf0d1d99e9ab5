// The table of figures about rows of a sparse matrix: a Loader and a Densifier against the memory,
// and against other ways to the same batches.
//
// The matrix has the shape of MovieLens-20M: 138,493 users, 26,744 items, about 20 million values;
// users differ in length as a log-normal distribution with its median and mean, and items are as
// frequent as a power law has it. Each round times, one after the other, all in the page cache:
//
//   loader           epochs of CSR batches through chunkio::Loader
//   copy             the same rows from memory to memory in delivered order, with as many threads
//   dense            Densifier on those batches: float32 [500, 26,744]
//   zero and write   the same threads zero each row and write its values, by memset or by
//                    non-temporal stores: the faster counts
//   peers            (--peers) the same batches, dense, by other loaders, from Python both

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>

#include "base/host_memory.hpp"
#include "base/streaming_copy.hpp"
#include "figures/suites.hpp"
#include "harness/epoch_case.hpp"
#include "harness/figure.hpp"
#include "harness/in_parallel.hpp"
#include "harness/peer_process.hpp"
#include "harness/scratch_folder.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::base::HostBuffer;

constexpr const char* kMatrix = "MovieLens-20M-shaped";
constexpr std::int64_t kEpochs = 4;

struct SparseOptions {
  std::int64_t rows = 138'493;
  std::int64_t columns = 26'744;
  std::int64_t batch_size = 500;
  std::int64_t threads = 2;
  std::int64_t rounds = 5;
  std::string folder = std::filesystem::temp_directory_path().string();
  std::string peers;
};

/// Rows of ratings from 0.5 to 5.
struct Matrix {
  std::int64_t num_columns = 0;
  std::vector<std::int64_t> indptr = {0};
  std::vector<std::int64_t> columns = {};
  std::vector<float> values = {};

  [[nodiscard]] std::int64_t num_rows() const {
    return static_cast<std::int64_t>(indptr.size()) - 1;
  }
  [[nodiscard]] std::int64_t length(std::int64_t row) const {
    return indptr[static_cast<std::size_t>(row) + 1] - indptr[static_cast<std::size_t>(row)];
  }
};

/// Of the same numbers each time.
Matrix draw_matrix(std::int64_t rows, std::int64_t num_columns) {
  // Users of MovieLens-20M rated 20 to 9,254 films, half of them up to 68, 144 on average.
  constexpr double kMedian = 68;
  constexpr double kMean = 144;
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> length_of(std::log(kMedian),
                                                std::sqrt(2 * std::log(kMean / kMedian)));
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<bool> taken(static_cast<std::size_t>(num_columns));
  Matrix matrix{.num_columns = num_columns};
  std::vector<std::int64_t> row;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto length =
        std::clamp<std::int64_t>(std::llround(length_of(random)), 20, num_columns / 3);
    row.clear();
    while (static_cast<std::int64_t>(row.size()) < length) {
      // Column k comes about as 1 / (k + 1).
      const double rank = std::exp(uniform(random) * std::log(static_cast<double>(num_columns)));
      const auto column = std::min(static_cast<std::int64_t>(rank), num_columns) - 1;
      if (taken[static_cast<std::size_t>(column)]) continue;
      taken[static_cast<std::size_t>(column)] = true;
      row.push_back(column);
    }
    std::sort(row.begin(), row.end());
    for (const std::int64_t column : row) {
      taken[static_cast<std::size_t>(column)] = false;
      matrix.columns.push_back(column);
      matrix.values.push_back(0.5F * static_cast<float>(1 + random() % 10));
    }
    matrix.indptr.push_back(static_cast<std::int64_t>(matrix.columns.size()));
  }
  return matrix;
}

void write_matrix(const std::string& path, const Matrix& matrix) {
  chunkio::SparseSpec spec{.num_columns = matrix.num_columns};
  for (std::int64_t row = 0; row < matrix.num_rows(); ++row) {
    spec.row_lengths.push_back(matrix.length(row));
  }
  chunkio::SparseWriter writer(path, spec);
  writer.write_rows(0, matrix.num_rows(), matrix.columns, std::as_bytes(std::span(matrix.values)));
  writer.close();
}

/// What is measured on: the matrix in memory, as the file has it, and in the file.
class Sparse {
 public:
  explicit Sparse(const SparseOptions& options)
      : options_(options),
        scratch_(options.folder),
        path_(scratch_.file("matrix.h5ad")),
        matrix_(draw_matrix(options.rows, options.columns)),
        columns_(matrix_.columns.begin(), matrix_.columns.end()),
        dense_(static_cast<std::size_t>(options.batch_size * options.columns) * sizeof(float)) {
    write_matrix(path_, matrix_);
    loader_.emplace(open_loader());
    order_ = check_epoch();
  }

  [[nodiscard]] std::int64_t num_values() const { return matrix_.indptr.back(); }

  void measure_csr(Report& report) {
    const std::size_t value_bytes = sizeof(float) + sizeof(std::int32_t);
    HostBuffer target(value_bytes * static_cast<std::size_t>(options_.batch_size) *
                      static_cast<std::size_t>(options_.threads) * longest_row());
    std::vector<double> loads;
    std::vector<double> copies;
    for (std::int64_t round = -1; round < options_.rounds; ++round) {
      // The first makes the pages of all buffers, and is not counted.
      const double load = kEpochs * rate([&] { run_epochs(*loader_, kEpochs); });
      const double copy = rate([&] { copy_rows(target.bytes()); });
      if (round < 0) continue;
      loads.push_back(load);
      copies.push_back(copy);
    }
    report.add({"CSR batches, rows/s", kMatrix, loads, at_least(1e6)});
    report.add({"CSR batches / copies in memory", kMatrix, ratios(loads, copies)});
  }

  void measure_dense(Report& report) {
    const chunkio::Densifier densify(options_.columns, {}, options_.threads);
    const std::vector<Rows> batches = take_batches();
    std::int64_t num_rows = 0;
    for (const Rows& rows : batches) {
      check_dense(rows, densify);
      num_rows += static_cast<std::int64_t>(rows.ids.size());
    }
    struct Way {
      const char* name;
      std::function<void(const Rows&)> write;
      std::vector<double> rates = {};
    };
    std::array<Way, 3> ways = {
        {{"Densifier", [&](const Rows& rows) { densify(rows.tensor(), output(rows)); }},
         {"memset", [&](const Rows& rows) { zero_and_write(rows, zero_by_memset); }},
         {"non-temporal stores",
          [&](const Rows& rows) { zero_and_write(rows, zero_by_streaming); }}}};
    for (std::int64_t round = -1; round < options_.rounds; ++round) {
      for (Way& way : ways) {
        const double seconds = seconds_of([&] {
          for (const Rows& rows : batches) way.write(rows);
        });
        if (round >= 0) way.rates.push_back(static_cast<double>(num_rows) / seconds);
      }
    }
    std::vector<double> faster;
    for (std::size_t i = 0; i < ways[1].rates.size(); ++i) {
      faster.push_back(std::max(ways[1].rates[i], ways[2].rates[i]));
    }
    report.add({"Densifier / zeroing rows and writing values", kMatrix,
                ratios(ways[0].rates, faster), at_least(0.8)});
    const auto row_bytes = static_cast<double>(options_.columns * std::int64_t{sizeof(float)});
    for (const Way& way : ways) {
      std::vector<double> speed;
      for (const double rows : way.rates) speed.push_back(rows * row_bytes / 1e9);
      report.add({std::string(way.name) + ", GB/s of float32", kMatrix, speed});
    }
  }

  /// Both from Python, each in a process of its own.
  void compare(const Peer& ours, const std::vector<Peer>& peers, Report& report) {
    PeerProcess our_process(ours, task());
    report.add_detail(kMatrix, ours.script, {{"about", our_process.about()}});
    for (const Peer& peer : peers) {
      const std::string row = "dense batches, chunkio / " + peer.name;
      try_peer(peer, options_.peers, {row, kMatrix}, report, [&] {
        PeerProcess process(peer, task());
        std::vector<double> our_rates;
        std::vector<double> rates;
        for (std::int64_t round = 0; round < options_.rounds; ++round) {
          our_rates.push_back(rate_of(our_process));
          rates.push_back(rate_of(process));
        }
        report.add({row, kMatrix, ratios(our_rates, rates), peer.target,
                    "its best: " + process.about().at("best").get<std::string>()});
        report.add({peer.name + ", rows/s", kMatrix, rates});
        report.add({"chunkio beside it, rows/s", kMatrix, our_rates});
        report.add_detail(kMatrix, peer.script, {{"about", process.about()}});
      });
    }
  }

 private:
  /// A batch that is kept: its rows, and where their values begin.
  struct Rows {
    std::vector<std::int64_t> ids = {};
    std::vector<std::int32_t> indptr = {0};
    std::vector<std::int32_t> columns = {};
    std::vector<float> values = {};
    std::int64_t num_columns = 0;

    [[nodiscard]] chunkio::SparseTensor tensor() const {
      const auto view = [](const auto& numbers, chunkio::DType dtype) {
        return chunkio::Tensor(reinterpret_cast<const std::byte*>(numbers.data()), dtype,
                               chunkio::Shape{static_cast<std::int64_t>(numbers.size())});
      };
      return {.indptr = view(indptr, chunkio::DType::int32),
              .indices = view(columns, chunkio::DType::int32),
              .values = view(values, chunkio::DType::float32),
              .columns = num_columns};
    }
  };
  using Zero = void (*)(std::byte* target, std::size_t size);

  [[nodiscard]] chunkio::Loader open_loader() const {
    return chunkio::Loader(chunkio::Dataset::open(path_), {.batch_size = options_.batch_size,
                                                           .seed = 7,
                                                           .io = {.num_threads = options_.threads,
                                                                  .num_epochs = kEpoch + kEpochs}});
  }

  /// Compares every row with the matrix. Returns the rows in delivered order.
  std::vector<std::int64_t> check_epoch() {
    std::vector<std::int64_t> order;
    std::vector<bool> seen(static_cast<std::size_t>(matrix_.num_rows()));
    for (const chunkio::Batch& batch : loader_->epoch(kEpoch)) {
      const chunkio::SparseTensor rows = batch.sparse();
      std::int64_t at = 0;
      for (const std::int64_t row : batch.sample_ids()) {
        const auto begin = static_cast<std::size_t>(matrix_.indptr[static_cast<std::size_t>(row)]);
        const auto length = static_cast<std::size_t>(matrix_.length(row));
        const std::span<const std::int32_t> columns = rows.indices.values<std::int32_t>();
        const std::span<const float> values = rows.values.values<float>();
        const auto from = static_cast<std::size_t>(at);
        if (seen.at(static_cast<std::size_t>(row)) || from + length > columns.size() ||
            !std::equal(columns.begin() + at, columns.begin() + at + std::ptrdiff_t(length),
                        columns_.begin() + std::ptrdiff_t(begin)) ||
            !std::equal(values.begin() + at, values.begin() + at + std::ptrdiff_t(length),
                        matrix_.values.begin() + std::ptrdiff_t(begin))) {
          throw std::runtime_error("the loader delivered a wrong row " + std::to_string(row));
        }
        seen[static_cast<std::size_t>(row)] = true;
        order.push_back(row);
        at += std::ptrdiff_t(length);
      }
    }
    if (order.size() != seen.size()) throw std::runtime_error("the loader left out rows");
    return order;
  }

  /// A gigabyte of dense rows or more: what is written last is never in the cache.
  [[nodiscard]] std::vector<Rows> take_batches() const {
    constexpr std::size_t kBatches = 40;
    std::vector<Rows> batches;
    const auto batch_size = static_cast<std::size_t>(options_.batch_size);
    for (std::size_t first = 0; first + batch_size <= order_.size() && batches.size() < kBatches;
         first += batch_size) {
      Rows rows{.num_columns = options_.columns};
      for (const std::int64_t row : std::span(order_).subspan(first, batch_size)) {
        const std::int64_t begin = matrix_.indptr[static_cast<std::size_t>(row)];
        const std::int64_t end = begin + matrix_.length(row);
        rows.ids.push_back(row);
        rows.columns.insert(rows.columns.end(), columns_.begin() + begin, columns_.begin() + end);
        rows.values.insert(rows.values.end(), matrix_.values.begin() + begin,
                           matrix_.values.begin() + end);
        rows.indptr.push_back(static_cast<std::int32_t>(rows.columns.size()));
      }
      batches.push_back(std::move(rows));
    }
    return batches;
  }

  [[nodiscard]] std::span<std::byte> output(const Rows& rows) const {
    return dense_.bytes().first(rows.ids.size() * static_cast<std::size_t>(options_.columns) *
                                sizeof(float));
  }

  /// All ways must write the same.
  void check_dense(const Rows& rows, const chunkio::Densifier& densify) const {
    zero_and_write(rows, zero_by_memset);
    const std::vector<std::byte> expected(output(rows).begin(), output(rows).end());
    zero_and_write(rows, zero_by_streaming);
    const bool same = std::equal(expected.begin(), expected.end(), output(rows).begin());
    densify(rows.tensor(), output(rows));
    if (!same || !std::equal(expected.begin(), expected.end(), output(rows).begin())) {
      throw std::runtime_error("dense rows differ");
    }
  }

  static void zero_by_memset(std::byte* target, std::size_t size) { std::memset(target, 0, size); }
  static void zero_by_streaming(std::byte* target, std::size_t size) {
    alignas(64) static constexpr std::array<std::byte, 16384> kZeros{};
    for (std::size_t at = 0; at < size; at += kZeros.size()) {
      chunkio::base::streaming_copy(target + at, kZeros.data(), std::min(kZeros.size(), size - at));
    }
  }

  void zero_and_write(const Rows& rows, Zero zero) const {
    const auto num_columns = static_cast<std::size_t>(options_.columns);
    in_parallel(static_cast<std::int64_t>(rows.ids.size()), options_.threads, [&] {
      return [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        std::byte* const row = dense_.data() + at * num_columns * sizeof(float);
        zero(row, num_columns * sizeof(float));
        chunkio::base::store_fence();
        for (auto k = static_cast<std::size_t>(rows.indptr[at]);
             k < static_cast<std::size_t>(rows.indptr[at + 1]); ++k) {
          reinterpret_cast<float*>(row)[rows.columns[k]] = rows.values[k];
        }
      };
    });
  }

  /// Every batch of the epoch into the same places, one for each thread.
  void copy_rows(std::span<std::byte> target) const {
    std::atomic<std::size_t> next_place = 0;
    const auto batch_size = static_cast<std::size_t>(options_.batch_size);
    const std::size_t place_bytes = target.size() / static_cast<std::size_t>(options_.threads);
    const auto num_batches = (order_.size() + batch_size - 1) / batch_size;
    in_parallel(
        static_cast<std::int64_t>(num_batches), options_.threads,
        [&] {
          std::byte* const place = target.data() + place_bytes * next_place++;
          return [&, place](std::int64_t batch) {
            std::byte* to = place;
            const std::size_t first = static_cast<std::size_t>(batch) * batch_size;
            for (std::size_t i = first; i < std::min(first + batch_size, order_.size()); ++i) {
              const auto begin =
                  static_cast<std::size_t>(matrix_.indptr[static_cast<std::size_t>(order_[i])]);
              const auto length = static_cast<std::size_t>(matrix_.length(order_[i]));
              std::memcpy(to, columns_.data() + begin, length * sizeof(std::int32_t));
              to += length * sizeof(std::int32_t);
              std::memcpy(to, matrix_.values.data() + begin, length * sizeof(float));
              to += length * sizeof(float);
            }
          };
        },
        1);
  }

  [[nodiscard]] std::size_t longest_row() const {
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < matrix_.num_rows(); ++row) {
      longest = std::max(longest, matrix_.length(row));
    }
    return static_cast<std::size_t>(longest);
  }

  /// Rows a second of work on all of them.
  template <class Work>
  [[nodiscard]] double rate(Work work) const {
    return static_cast<double>(matrix_.num_rows()) / seconds_of(work);
  }
  [[nodiscard]] double rate_of(PeerProcess& process) const {
    const PeerProcess::Epoch epoch = process.run_epoch();
    if (epoch.images != matrix_.num_rows()) throw std::runtime_error("left out rows");
    return static_cast<double>(epoch.images) / epoch.seconds;
  }
  [[nodiscard]] PeerTask task() const {
    return {.environment = options_.peers,
            .data = path_,
            .batch_size = options_.batch_size,
            .threads = options_.threads,
            .folder = scratch_.path().string()};
  }

  const SparseOptions& options_;
  ScratchFolder scratch_;
  std::string path_;
  Matrix matrix_;
  std::vector<std::int32_t> columns_;  // as the file has them
  HostBuffer dense_;
  std::optional<chunkio::Loader> loader_;
  std::vector<std::int64_t> order_;
};

using State = MadeWhenAsked<Sparse, SparseOptions>;

void measure_peers(State& state, Report& report) {
  const Peer ours{"chunkio", "chunkio_dense.py", "chunkio"};
  try_peer(ours, state.options.peers, {"dense batches, chunkio", kMatrix}, report, [&] {
    state.get().compare(ours,
                        {{"scipy, csr[rows].toarray()", "scipy_dense.py", "scipy"},
                         {"h5py + DataLoader", "h5py_dense.py", "scipy"},
                         {"AnnLoader", "annloader_dense.py", "anndata"},
                         {"annbatch", "annbatch_dense.py", "annbatch"}},
                        report);
  });
}

}  // namespace

Suite sparse_suite() {
  const auto state = std::make_shared<State>();
  return {
      .name = "sparse",
      .description = "Figures about rows of a sparse matrix",
      .source = "figures/sparse.cpp",
      .add_options =
          [state](CLI::App& app) {
            SparseOptions& options = state->options;
            add_count(app, "--rows", options.rows, "Rows of the matrix that is drawn");
            add_count(app, "--columns", options.columns, "Its columns", 100);
            add_count(app, "--batch", options.batch_size, "Rows a batch");
            add_count(app, "--threads", options.threads, "Threads that read");
            add_rounds(app, options.rounds);
            add_folder(app, options.folder);
            add_peers(app, options.peers);
          },
      .begin =
          [state](Report& report) {
            report.add_line(std::to_string(state->options.threads) + " threads; " +
                            std::to_string(state->options.rounds) +
                            " interleaved rounds, median (range); " +
                            std::to_string(state->get().num_values()) + " values in " +
                            std::to_string(state->options.rows) + " rows and " +
                            std::to_string(state->options.columns) + " columns");
          },
      .finish = [state] { state->made.reset(); },
      .experiments = {{"csr", [state](Report& report) { state->get().measure_csr(report); }},
                      {"dense", [state](Report& report) { state->get().measure_dense(report); }},
                      {"peers", [state](Report& report) { measure_peers(*state, report); }}}};
}

}  // namespace bench
