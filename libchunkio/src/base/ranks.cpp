#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

namespace chunkio {
namespace {

/// The variables of one launcher.
struct Launcher {
  const char* name;
  const char* rank;
  const char* world_size;
};

// torchrun first: under Slurm or mpirun it starts several ranks in what is one task to them.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
};

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

/// NAME = 'value' on one line, whatever the value holds.
std::string assignment(const char* name, std::string_view value) {
  constexpr std::size_t kMost = 40;
  std::string text = std::string(name) + " = '";
  for (const char c : value.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (value.size() > kMost ? "...'" : "'");
}

std::int64_t number(const char* name, std::string_view value) {
  std::int64_t parsed = 0;
  const char* const end = value.data() + value.size();
  const auto [stopped, status] = std::from_chars(value.data(), end, parsed);
  if (status != std::errc() || stopped != end) {
    invalid(assignment(name, value) +
            " is not a whole number: set it as the launcher would, or give rank and world_size");
  }
  return parsed;
}

}  // namespace

std::optional<Ranks> Ranks::find_in_environment() {
  for (const Launcher& launcher : kLaunchers) {
    const char* const rank_text = std::getenv(launcher.rank);
    const char* const size_text = std::getenv(launcher.world_size);
    if (rank_text == nullptr && size_text == nullptr) continue;
    if (rank_text == nullptr || size_text == nullptr) {
      const char* const set = rank_text != nullptr ? launcher.rank : launcher.world_size;
      const char* const missing = rank_text != nullptr ? launcher.world_size : launcher.rank;
      invalid(std::string(set) + " is set but " + missing + " is not (" + launcher.name +
              " sets both): set both, or neither, or give rank and world_size");
    }
    Ranks ranks{.rank = number(launcher.rank, rank_text),
                .world_size = number(launcher.world_size, size_text),
                .origin = std::string(launcher.rank) + " and " + launcher.world_size};
    if (ranks.world_size < 1 || ranks.rank < 0 || ranks.rank >= ranks.world_size) {
      invalid(assignment(launcher.rank, rank_text) + " and " +
              assignment(launcher.world_size, size_text) +
              " cannot be: 0 <= rank < world size is needed");
    }
    return ranks;
  }
  return std::nullopt;
}

Ranks Ranks::from_environment() {
  if (const std::optional<Ranks> ranks = find_in_environment()) return *ranks;
  std::string names;
  for (const Launcher& launcher : kLaunchers) {
    names += (names.empty() ? "" : ", ") + std::string(launcher.rank) + " and " +
             launcher.world_size + " (" + launcher.name + ")";
  }
  invalid(
      "the environment names no rank: start with torchrun, mpirun or srun, or give rank and "
      "world_size; looked for " +
      names);
}

}  // namespace chunkio
