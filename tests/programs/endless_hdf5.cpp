// Preloaded into a program, libhdf5 opens no dataset of that program and never returns: as it does
// with some hostile files, but with every version of it.
#include <unistd.h>

#include <cstdio>

extern "C" long H5Dopen2(long /*location*/, const char* /*name*/, long /*access*/) {
  std::fputs("libhdf5 does not return\n", stderr);
  for (;;) ::pause();
}
