#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>

#include "support/errors.hpp"

namespace {

using chunkio::Ranks;
using chunkio::test::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>> kPairs{
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"}};

/// Exactly these of the launchers' variables are set; all are as before afterwards.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const auto& [rank, world_size] : kPairs) {
      for (const std::string& name : {rank, world_size}) {
        if (const char* value = std::getenv(name.c_str())) before_[name] = value;
        ::unsetenv(name.c_str());
      }
    }
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
      set_.push_back(name);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> set_;
};

std::string refusal_of(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  std::string message = refusal([] { (void)Ranks::from_environment(); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(Ranks, ComeFromEachLauncher) {
  for (const auto& [rank, world_size] : kPairs) {
    SCOPED_TRACE(rank);
    const Environment environment({{rank, "3"}, {world_size, "8"}});
    const Ranks ranks = Ranks::from_environment();
    EXPECT_EQ(ranks.rank, 3);
    EXPECT_EQ(ranks.world_size, 8);
    EXPECT_EQ(ranks.origin, rank + " and " + world_size);
  }
}

TEST(Ranks, TheFirstLauncherOfTheListWins) {
  std::map<std::string, std::string> variables;
  // From the last to the first, each with ranks of its own.
  for (std::size_t i = kPairs.size(); i-- > 0;) {
    variables[kPairs[i].first] = std::to_string(i);
    variables[kPairs[i].second] = std::to_string(10 + i);
    const Environment environment(variables);
    const Ranks ranks = Ranks::from_environment();
    EXPECT_EQ(ranks.rank, static_cast<std::int64_t>(i));
    EXPECT_EQ(ranks.world_size, static_cast<std::int64_t>(10 + i));
  }
}

TEST(Ranks, NoneIsAnErrorThatNamesWhatWouldDo) {
  const std::string message = refusal_of({});
  for (const auto& [rank, world_size] : kPairs) {
    EXPECT_THAT(message, AllOf(HasSubstr(rank), HasSubstr(world_size)));
  }
  EXPECT_THAT(message, HasSubstr("rank and world_size"));
}

TEST(Ranks, HalfAPairIsAnError) {
  for (const auto& [rank, world_size] : kPairs) {
    EXPECT_THAT(refusal_of({{rank, "0"}}), HasSubstr(rank + " is set but " + world_size));
    EXPECT_THAT(refusal_of({{world_size, "2"}}), HasSubstr(world_size + " is set but " + rank));
  }
  // A whole pair of another launcher does not mend it.
  EXPECT_THAT(refusal_of({{"RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}),
              HasSubstr("RANK is set but WORLD_SIZE is not"));
}

TEST(Ranks, ImpossibleValuesAreErrorsThatNameThem) {
  for (const auto& [rank, world_size] : kPairs) {
    for (const auto& [r, size] : std::vector<std::pair<std::string, std::string>>{
             {"-1", "4"}, {"4", "4"}, {"5", "4"}, {"0", "0"}, {"0", "-2"}, {"-3", "-2"}}) {
      EXPECT_THAT(refusal_of({{rank, r}, {world_size, size}}),
                  AllOf(HasSubstr(rank + " = '" + r + "'"),
                        HasSubstr(world_size + " = '" + size + "'"), HasSubstr("cannot be")));
    }
  }
}

TEST(Ranks, WhatIsNoNumberIsAnErrorThatNamesIt) {
  for (const std::string text :
       {"", " ", "one", "1.0", "1e0", "0x1", "+1", " 1", "1 ", "1,2", "99999999999999999999"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(refusal_of({{"RANK", text}, {"WORLD_SIZE", "4"}}),
                AllOf(HasSubstr("RANK = '" + text + "'"), HasSubstr("whole number")));
    EXPECT_THAT(refusal_of({{"PMI_RANK", "0"}, {"PMI_SIZE", text}}),
                AllOf(HasSubstr("PMI_SIZE = '" + text + "'"), HasSubstr("whole number")));
  }
}

TEST(Ranks, ErrorsAreOneShortLineWhateverTheValue) {
  const std::string message =
      refusal_of({{"RANK", "1\n2\x1b[31m" + std::string(5000, 'x')}, {"WORLD_SIZE", "4"}});
  EXPECT_THAT(message, HasSubstr("'1?2?[31mxxx"));
  EXPECT_LT(message.size(), 200U);
}

}  // namespace
