#include "cli/option_flags.hpp"

#include <string>

#include <gtest/gtest.h>

namespace cli {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

TEST(OptionFlags, ALibraryOptionHasTheFlagThatDoesTheSame) {
  EXPECT_EQ(flag_of("overwrite"), "--force");
  EXPECT_EQ(flag_of("overwrite = true"), "--force");
  EXPECT_EQ(flag_of("num_threads = 8"), "--threads 8");
  EXPECT_EQ(flag_of("order = chunk_shuffled"), "--order chunk-shuffled");
  EXPECT_EQ(flag_of("images = a_b"), "--images a_b");
  EXPECT_EQ(flag_of("resident = host"), "--resident host");
  // An option of DeviceLoader of the same name.
  EXPECT_EQ(flag_of("resident = require"), "");
  EXPECT_EQ(flag_of("echo = 2"), "");
  EXPECT_EQ(flag_of(""), "");
}

TEST(OptionFlags, TheFlagStandsBehindTheOption) {
  EXPECT_EQ(with_flag("a.h5 exists; set overwrite", "overwrite"),
            "a.h5 exists; set overwrite (--force)");
  EXPECT_EQ(with_flag("Raise num_threads to the 8 CPUs (now 2).", "num_threads = 8"),
            "Raise num_threads (--threads) to the 8 CPUs (now 2).");
  EXPECT_EQ(with_flag("Keep them in memory (resident = host): it fits.", "resident = host"),
            "Keep them in memory (resident = host (--resident host)): it fits.");
  EXPECT_EQ(with_flag("Choose another name.", "overwrite"), "Choose another name.");
  EXPECT_EQ(with_flag("Use each image twice (echo = 2).", "echo = 2"),
            "Use each image twice (echo = 2).");
}

TEST(OptionFlags, PartsOfWordsAndPathsAreNoOption) {
  EXPECT_EQ(
      with_flag("/images/reorder holds several images_a; name the option images, not images_b",
                "images"),
      "/images/reorder holds several images_a; name the option images (--images), not "
      "images_b");
  EXPECT_EQ(with_flag("go on with resume; the same with --resume does", "resume"),
            "go on with resume (--resume); the same with --resume does");
}

TEST(OptionFlags, AnErrorNamesFlagsThatTheCommandHas) {
  const Error error(ErrorCode::output_exists, "a is left over; set resume, or overwrite", "resume",
                    "overwrite");
  EXPECT_EQ(with_flags(error), "a is left over; set resume (--resume), or overwrite (--force)");
  EXPECT_EQ(with_flags(error, [](const std::string& flag) { return flag == "--force"; }),
            "a is left over; set resume, or overwrite (--force)");
  EXPECT_EQ(with_flags(error.with_message("b: set overwrite")), "b: set overwrite (--force)");
}

}  // namespace
}  // namespace cli
