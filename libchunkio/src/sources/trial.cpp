#include "sources/trial.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace chunkio::sources {
namespace {

constexpr double kMargin = 1.05;

}  // namespace

Trial::Trial(std::vector<std::string> names, TrialLimits limits)
    : names_(std::move(names)),
      limits_(limits),
      settled_(names_.size() == 1),
      dropped_(names_.size(), false),
      slow_(names_.size(), false),
      turns_(names_.size() * limits_.num_turns) {}

bool Trial::over(const Turn& turn) const {
  return turn.given_bytes >= limits_.turn_bytes && turn.num_running == 0;
}

std::size_t Trial::turns_over(std::size_t way) const {
  std::size_t count = 0;
  for (std::size_t turn = way; turn < turns_.size(); turn += names_.size()) {
    count += over(turns_[turn]) ? 1U : 0U;
  }
  return count;
}

Trial::Share Trial::begin(std::int64_t bytes) {
  if (settled()) return {.way = choice()};
  const std::lock_guard lock(mutex_);
  const auto is_full = [this](std::size_t turn) {
    return !has_turns(turn % names_.size()) || turns_[turn].given_bytes >= limits_.turn_bytes;
  };
  // From the first on, since some of it may have been given up.
  std::size_t turn = 0;
  while (turn < turns_.size() && is_full(turn)) ++turn;
  // The last of the turns are not over yet.
  if (turn == turns_.size()) return {.way = choice()};
  turns_[turn].given_bytes += bytes;
  ++turns_[turn].num_running;
  return {.way = turn % names_.size(), .turn = turn};
}

void Trial::end(const Share& share, std::int64_t bytes, double seconds) {
  if (!share.turn) return;
  const std::lock_guard lock(mutex_);
  Turn& turn = turns_[*share.turn];
  --turn.num_running;
  turn.done_bytes += bytes;
  turn.seconds += seconds;
  if (settled_) return;
  leave_out_slow_ways();
  settle_if_over();
}

void Trial::give_up(const Share& share, std::int64_t bytes) {
  if (!share.turn) return;
  const std::lock_guard lock(mutex_);
  Turn& turn = turns_[*share.turn];
  --turn.num_running;
  turn.given_bytes -= bytes;
}

bool Trial::drop(std::size_t way) {
  const std::lock_guard lock(mutex_);
  if (dropped_[way]) return true;
  if (std::count(dropped_.begin(), dropped_.end(), false) == 1) return false;
  dropped_[way] = true;
  if (choice() == way) {
    const auto left = std::find(dropped_.begin(), dropped_.end(), false);
    choice_ = static_cast<std::size_t>(left - dropped_.begin());
  }
  settle_if_over();
  return true;
}

void Trial::leave_out_slow_ways() {
  const std::size_t first = choice();
  for (std::size_t way = 0; way < names_.size(); ++way) {
    const bool as_many = turns_over(way) == turns_over(first);
    if (has_turns(way) && as_many && speed(way) < speed(first)) slow_[way] = true;
  }
}

void Trial::settle_if_over() {
  if (settled_) return;
  std::size_t left = 0;
  for (std::size_t way = 0; way < names_.size(); ++way) left += has_turns(way) ? 1U : 0U;
  for (std::size_t turn = 0; left > 1 && turn < turns_.size(); ++turn) {
    if (has_turns(turn % names_.size()) && !over(turns_[turn])) return;
  }
  // Until now the choice is the first of those that are left.
  std::size_t best = choice();
  double least = kMargin * speed(best);
  for (std::size_t way = 0; way < names_.size(); ++way) {
    if (!has_turns(way) || speed(way) <= least) continue;
    best = way;
    least = speed(way);
  }
  choice_.store(best, std::memory_order_relaxed);
  settled_.store(true, std::memory_order_release);
}

double Trial::speed(std::size_t way) const {
  std::vector<double> speeds;
  for (std::size_t turn = way; turn < turns_.size(); turn += names_.size()) {
    if (!over(turns_[turn]) || turns_[turn].seconds <= 0) continue;
    speeds.push_back(static_cast<double>(turns_[turn].done_bytes) / turns_[turn].seconds);
  }
  if (speeds.empty()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

std::string Trial::describe() const {
  if (names_.size() == 1) return {};
  const std::lock_guard lock(mutex_);
  bool measured = false;
  for (std::size_t way = 0; way < names_.size(); ++way) measured = measured || speed(way) > 0;
  if (!measured && !settled_) {
    std::string text = "to be tried:";
    for (const std::string& name : names_) text += (&name == &names_.front() ? " " : ", ") + name;
    return text;
  }
  std::string text = settled_ ? "tried:" : "being tried:";
  for (std::size_t way = 0; way < names_.size(); ++way) {
    text += (way == 0 ? " " : ", ") + names_[way];
    const double gigabytes = speed(way) / 1e9;
    if (dropped_[way]) {
      text += " (failed)";
    } else if (gigabytes > 0) {
      char figure[32];
      std::snprintf(figure, sizeof(figure), gigabytes < 0.1 ? " %.2g" : " %.1f", gigabytes);
      text += figure;
    } else {
      text += " (not yet)";
    }
  }
  text += " GB/s a thread";
  if (settled_) text += "; in use: " + names_[choice()];
  return text;
}

}  // namespace chunkio::sources
