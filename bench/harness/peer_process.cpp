#include "harness/peer_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "harness/child_process.hpp"

namespace bench {
namespace {

std::vector<std::string> command(const Peer& peer, const PeerTask& task) {
  std::vector<std::string> words = {task.environment + "/bin/python",
                                    peer_script(peer.script),
                                    task.data,
                                    "--threads",
                                    std::to_string(task.threads),
                                    "--dir",
                                    task.folder};
  if (task.batch_size) {
    words.insert(words.end(), {"--batch", std::to_string(*task.batch_size)});
  }
  return words;
}

}  // namespace

std::string peer_script(const std::string& name) {
  return std::string(CHUNKIO_PEER_SCRIPTS) + "/" + name;
}

PeerProcess::PeerProcess(const Peer& peer, const PeerTask& task)
    : PeerProcess(command(peer, task), task.folder + "/" + peer.script + ".log") {}

PeerProcess::PeerProcess(const std::vector<std::string>& arguments, std::string log)
    : log_(std::move(log)) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::vector<char*> words = exec_words(arguments);
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  child_ = ::fork();
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child_ == 0) {
    ::setpgid(0, 0);  // so that its workers can be ended with it
    const int error = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    if (error >= 0) ::dup2(error, STDERR_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::setpgid(child_, child_);
  ::close(in[0]);
  ::close(out[1]);
  requests_.reset(::fdopen(in[1], "w"));
  answers_.reset(::fdopen(out[0], "r"));
  try {
    about_ = read_line();
  } catch (...) {
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    throw;
  }
}

PeerProcess::~PeerProcess() {
  requests_.reset();
  ::kill(-child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

nlohmann::ordered_json PeerProcess::read_line() {
  std::string line;
  for (int c = std::fgetc(answers_.get()); c != '\n'; c = std::fgetc(answers_.get())) {
    if (c != EOF) {
      line += static_cast<char>(c);
      continue;
    }
    std::string last = "it wrote nothing to standard error";
    std::ifstream file(log_);
    for (std::string text; std::getline(file, text);) {
      if (text.find_first_not_of(" \t\r") != std::string::npos) last = text;
    }
    throw std::runtime_error("ended early: " + last);
  }
  return nlohmann::ordered_json::parse(line);
}

PeerProcess::Epoch PeerProcess::run_epoch() {
  if (std::fputc('\n', requests_.get()) == EOF || std::fflush(requests_.get()) != 0) {
    throw std::runtime_error("does not answer");
  }
  const nlohmann::ordered_json answer = read_line();
  return {answer.at("seconds").get<double>(), answer.at("images").get<std::int64_t>()};
}

void try_peer(const Peer& peer, const std::string& environment, Figure row, Report& report,
              const std::function<void()>& measure) {
  row.target = peer.target;
  if (environment.empty()) {
    row.note = "no --peers; bench/peers/setup.sh makes the environment";
  } else if (!peer.module.empty()) {
    std::ifstream file(environment + "/" + peer.module + "-reason.txt");
    std::getline(file, row.note);
  }
  if (row.note.empty()) {
    try {
      return measure();
    } catch (const std::exception& error) {
      row.note = peer.script + " " + error.what();
      row.failed = true;
    }
  }
  report.add(std::move(row));
}

}  // namespace bench
