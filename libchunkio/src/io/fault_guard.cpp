#include "io/fault_guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>

#include <chunkio/error.hpp>

#include "base/positional_io.hpp"

namespace chunkio::io {
namespace {

/// A guarded mapping. Read by the handler, so atomics that need no lock; `end` is written last and
/// cleared first, and 0 means that the entry is free.
struct Range {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  /// Pages that the handler was about to replace by zeros.
  std::atomic<std::uint64_t> faults{0};
  /// Of `faults`, those whose zeros are gone again. Not touched by the handler.
  std::atomic<std::uint64_t> repaired{0};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

constexpr std::size_t kMaxRanges = 4096;

// A signal handler has no argument to carry its state, so this is one of the few objects of static
// storage.
std::array<Range, kMaxRanges> g_ranges;
struct sigaction g_previous;
std::mutex g_mutex;  // guards taking and freeing entries, and the installation
bool g_installed = false;

// Faults of this thread. The handler may only touch it because before_copy() did: in a library
// that is loaded late, the first access of a thread can allocate.
constinit thread_local std::atomic<std::uint64_t> t_faults{0};

/// Whether a thread's own access raised the signal, so that returning repeats the access. News of a
/// bad page that nobody touched yet, which the kernel sends to processes that asked for it, has an
/// address too, but interrupts any access.
bool is_fault(const siginfo_t& info) { return info.si_code > 0 && info.si_code != BUS_MCEERR_AO; }

/// Does what would have been done without us.
void pass_on(int signal_number, siginfo_t* info, void* context) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal_number, info, context);
    return;
  }
  if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal_number);
    return;
  }
  // The kernel ignores no fault, only signals that were sent.
  if (g_previous.sa_handler == SIG_IGN && !is_fault(*info)) return;
  // The default action ends the process, so nobody misses the guard.
  ::signal(signal_number, SIG_DFL);
  if (!is_fault(*info)) ::raise(signal_number);  // taken once this handler has returned
}

void on_sigbus(int signal_number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  // A signal that was sent has no address: its sender stands in the same bytes.
  const auto address = is_fault(*info) ? reinterpret_cast<std::uintptr_t>(info->si_addr) : 0;
  for (Range& range : g_ranges) {
    const std::uintptr_t end = range.end.load(std::memory_order_acquire);
    if (end == 0 || address >= end || address < range.begin.load(std::memory_order_relaxed))
      continue;
    range.faults.fetch_add(1);
    t_faults.fetch_add(1, std::memory_order_relaxed);
    const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    void* page = reinterpret_cast<void*>(address / page_size * page_size);
    // The system call itself is safe in a handler; what sanitizers, profilers and allocators put in
    // the place of ::mmap may not be.
    const bool zeros = ::syscall(SYS_mmap, page, page_size, long{PROT_READ},
                                 long{MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED}, -1L,
                                 0L) == reinterpret_cast<long>(page);
    if (zeros) {
      errno = saved_errno;
      return;
    }
    break;
  }
  pass_on(signal_number, info, context);
  errno = saved_errno;
}

void install() {
  // If the program has restored the default meanwhile, our handler is installed again. A handler of
  // the program stays, since it may call ours: calling each other would never end.
  struct sigaction current {};
  const bool has_handler = ::sigaction(SIGBUS, nullptr, &current) == 0 &&
                           ((current.sa_flags & SA_SIGINFO) != 0 ||
                            (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN));
  if (g_installed && has_handler) return;
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (::sigaction(SIGBUS, &action, &g_previous) != 0) {
    throw base::system_error(errno, "install a handler for", "SIGBUS",
                             "choose another source than mapped");
  }
  g_installed = true;
}

}  // namespace

FaultGuard::FaultGuard(std::byte* begin, std::size_t size, int fd)
    : begin_(begin), size_(size), fd_(fd), index_(kMaxRanges) {
  const std::lock_guard lock(g_mutex);
  install();
  for (std::size_t i = 0; i < kMaxRanges; ++i) {
    if (g_ranges[i].end.load(std::memory_order_relaxed) != 0) continue;
    g_ranges[i].repaired.store(g_ranges[i].faults.load());
    g_ranges[i].begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_relaxed);
    g_ranges[i].end.store(reinterpret_cast<std::uintptr_t>(begin) + size,
                          std::memory_order_release);
    index_ = i;
    return;
  }
  throw Error(ErrorCode::out_of_resources,
              "more than " + std::to_string(kMaxRanges) +
                  " files are mapped at once; choose the scatter source");
}

FaultGuard::~FaultGuard() {
  const std::lock_guard lock(g_mutex);
  g_ranges[index_].end.store(0, std::memory_order_release);
}

FaultGuard::Mark FaultGuard::before_copy() const {
  const Range& range = g_ranges[index_];
  for (;;) {
    const Mark mark{.in_mapping = range.faults.load(),
                    .in_thread = t_faults.load(std::memory_order_relaxed)};
    if (range.repaired.load() == mark.in_mapping) return mark;
    map_anew();
  }
}

FaultGuard::Outcome FaultGuard::after_copy(const Mark& mark) const noexcept {
  // Adding nothing is, unlike a load, not done before what was copied is read. (A fence would do,
  // but ThreadSanitizer knows none.)
  const std::uint64_t in_mapping = g_ranges[index_].faults.fetch_add(0, std::memory_order_acq_rel);
  if (t_faults.load(std::memory_order_relaxed) != mark.in_thread) return Outcome::faulted;
  return in_mapping == mark.in_mapping ? Outcome::whole : Outcome::disturbed;
}

void FaultGuard::map_anew() const {
  Range& range = g_ranges[index_];
  const std::lock_guard lock(mapping_);
  // No copy runs, so what the handler has counted it has replaced.
  const std::uint64_t faults = range.faults.load();
  if (range.repaired.load() == faults) return;
  if (::mmap(begin_, size_, PROT_READ, MAP_SHARED | MAP_FIXED, fd_, 0) != begin_) {
    throw base::system_error(errno, "map", "a file again", "choose the scatter source");
  }
  range.repaired.store(faults);
}

}  // namespace chunkio::io
