/// chunkio-probe FILE: looks at a file of unknown origin before another process opens it. See
/// OpenOptions::probe.
///
/// It ends with 0 if it could look at everything, also where it found damage, since the other
/// process will find that too.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

namespace {

void limit(__rlimit_resource resource, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(resource, &both);
}

/// A file must not take more of the machine than one with good contents does.
void limit_this_process() {
  // The one that waits may be killed meanwhile.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CPU, 15);
  limit(RLIMIT_NOFILE, 64);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // They reserve terabytes, and end with an exit code what is to be seen as a crash.
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
#else
  limit(RLIMIT_AS, rlim_t{1} << 30);
  // Each thread would reserve 64 MiB of that for what it allocates.
  ::mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: chunkio-probe FILE\n", stderr);
    return 2;
  }
  limit_this_process();
  try {
    chunkio::walk_file(argv[1]);
  } catch (const chunkio::Error&) {
    // The reader has better words for it.
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return ::write(STDOUT_FILENO, "1", 1) == 1 ? 0 : 1;
}
