#include "harness/fio.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/child_process.hpp"
#include "harness/cold_file.hpp"

namespace bench {
namespace {

double run_fio(const std::string& path, const std::vector<std::string>& how,
               const std::function<bool()>& before_exec) {
  drop_from_page_cache(path);
  std::vector<std::string> arguments = {"fio",        "--name=read", "--filename=" + path,
                                        "--readonly", "--bs=1M",     "--output-format=json"};
  arguments.insert(arguments.end(), how.begin(), how.end());
  const ChildResult result = run_child(arguments, before_exec);
  if (result.exit_code != 0) throw std::runtime_error("fio: " + result.complaint());
  // Notes may precede the report.
  const std::size_t begin = result.out.find("\n{");
  const std::string report = begin == std::string::npos ? result.out : result.out.substr(begin);
  return nlohmann::json::parse(report).at("jobs").at(0).at("read").at("bw_bytes").get<double>();
}

}  // namespace

std::string reason_without_fio() {
  const ChildResult result = run_child({"fio", "--version"});
  if (result.exit_code == 0) return {};
  return result.exit_code == 127 ? "fio is not installed" : "fio: " + result.complaint();
}

std::string fio_version() {
  std::string version = run_child({"fio", "--version"}).out;
  while (version.ends_with('\n')) version.pop_back();
  return version;
}

FioRates measure_fio(const std::string& path, const std::function<bool()>& before_exec) {
  FioRates rates;
  rates.random_direct = run_fio(
      path, {"--ioengine=io_uring", "--iodepth=32", "--direct=1", "--rw=randread"}, before_exec);
  rates.sequential_buffered =
      run_fio(path, {"--ioengine=psync", "--direct=0", "--rw=read"}, before_exec);
  return rates;
}

double measure_sequential_fio(const std::string& path) {
  return std::max(
      run_fio(path, {"--ioengine=psync", "--direct=0", "--rw=read"}, {}),
      run_fio(path, {"--ioengine=io_uring", "--iodepth=32", "--direct=1", "--rw=read"}, {}));
}

}  // namespace bench
