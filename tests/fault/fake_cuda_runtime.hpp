/// A CUDA runtime and driver that need no driver and no GPU.
///
/// The linker puts the functions of fake_cuda_runtime.cpp in the place of the runtime's (--wrap):
/// memory of a device is memory of the host, streams do their work at once, and the kernel does
/// nothing. Any call can be made to fail. The driver's functions, which the library asks the
/// runtime for, are replaced where it asks.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

struct Call {
  std::string function;
  int device = 0;  // That of the calling thread.
};

/// What a test asks of the runtime, and what happened.
struct Runtime {
  int devices = 2;
  int driver = CUDART_VERSION;
  std::string missing = {};                         // A function that the driver does not have.
  std::map<std::string, cudaError_t> failing = {};  // Every call of a function.
  cudaError_t lost = cudaSuccess;                   // Every call of any function.

  std::vector<Call> calls = {};           // On a device.
  std::map<std::string, int> given = {};  // Handles and memory of a function, not given back.
  std::set<int> contexts = {};            // Devices that have one.
  std::map<void*, unsigned> events = {};  // Flags of each.
};

extern Runtime g_runtime;                       // Nobody else calls while a test looks at it.
extern thread_local int g_device;               // What the thread chose.
extern thread_local std::vector<int> g_pushed;  // The driver's stack, with devices for contexts.
extern thread_local cudaError_t g_last;

}  // namespace fake_cuda
