// The most memory that h5pack has had (ru_maxrss, which is VmHWM) when it packs few and many files.
// They are names of a few small images (hard links): what grows with their number is what h5pack
// knows of each file, and chunks are full in both.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures/packing_case.hpp"
#include "harness/child_process.hpp"

namespace bench {
namespace {

constexpr std::int64_t kImages = 64;

double peak_mebibytes(const PackingCase& packing, const JpegFolder& images) {
  const std::string output = packing.scratch.file("memory.h5");
  const ChildResult result =
      run_child({"/proc/self/exe", kPeakOf, packing.options.h5pack, "folder", images.path, "-o",
                 output, "--quiet", "--threads", std::to_string(packing.options.threads)});
  if (result.exit_code != 0) throw std::runtime_error("h5pack: " + result.complaint());
  std::filesystem::remove(output);
  // The last line: h5pack writes before.
  const std::size_t line = result.out.find_last_of('\n', result.out.size() - 2);
  return std::stod(result.out.substr(line == std::string::npos ? 0 : line + 1)) / 1024;
}

}  // namespace

void measure_pack_memory(PackingCase& packing, Report& report) {
  const PackingOptions& options = packing.options;
  const std::string size = kSmall.name;
  const JpegFolder originals = draw_jpeg_folder(packing.scratch.file("originals"), kSmall, kImages);
  const JpegFolder few =
      link_jpeg_folder(packing.scratch.file("few"), originals, options.few_files);
  const JpegFolder many =
      link_jpeg_folder(packing.scratch.file("many"), originals, options.many_files);
  const std::string output = packing.scratch.file("checked.h5");
  static_cast<void>(packing.pack_folder(few, output));
  check_packed(output, few, options.threads);
  std::filesystem::remove(output);

  std::vector<double> growth;
  std::vector<double> peak_few;
  std::vector<double> peak_many;
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    peak_few.push_back(peak_mebibytes(packing, few));
    peak_many.push_back(peak_mebibytes(packing, many));
    growth.push_back(peak_many.back() - peak_few.back());
  }
  const auto files = [](std::int64_t count) { return std::to_string(count) + " files"; };
  report.add({"peak RSS growth from " + files(options.few_files) + " to " +
                  files(options.many_files) + ", MiB",
              size, growth, at_most(64)});
  report.add({"peak RSS, " + files(options.few_files) + ", MiB", size, peak_few});
  report.add({"peak RSS, " + files(options.many_files) + ", MiB", size, peak_many});
}

int peak_of_main(const std::vector<std::string>& arguments) {
  const std::vector<char*> words = exec_words(arguments);
  const pid_t child = ::fork();
  if (child < 0) return 126;
  if (child == 0) {
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage {};
  while (::wait4(child, &status, 0, &usage) < 0) {
    if (errno != EINTR) return 126;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  std::printf("%ld\n", usage.ru_maxrss);
  return 0;
}

}  // namespace bench
