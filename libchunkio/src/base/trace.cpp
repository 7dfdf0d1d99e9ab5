#include "base/trace.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#ifdef CHUNKIO_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace chunkio::base {
namespace {

struct Appearance {
  const char* name;
  std::uint32_t colour;  // 0xAARRGGBB
};

// Waits are grey, what the processor does is green, storage blue, the bus orange.
constexpr std::uint32_t kWait = 0xFF9E9E9E;
constexpr std::uint32_t kWork = 0xFF43A047;
constexpr std::uint32_t kStorage = 0xFF1E88E5;
constexpr std::uint32_t kBus = 0xFFFB8C00;
constexpr std::uint32_t kWhole = 0xFF5E35B1;

// By Stage.
constexpr std::array<Appearance, 20> kAppearances{{
    {"plan window", kWork},
    {"prefetch", kStorage},
    {"row group", kWhole},
    {"read", kStorage},
    {"decode", kWork},
    {"verify", kWork},
    {"copy", kWork},
    {"read ahead", kStorage},
    {"wait for input", kWait},
    {"wait for buffer", kWait},
    {"hand over", kWhole},
    {"wait for batch", kWait},
    {"normalize", kWork},
    {"upload", kBus},
    {"wait for copy", kWait},
    {"wait for device buffer", kWait},
    {"device hand over", kWhole},
    {"wait for upload", kWait},
    {"wait for output", kWait},
    {"kernel", kWork},
}};
static_assert(static_cast<std::size_t>(Stage::kernel) + 1 == kAppearances.size());

constexpr const Appearance& appearance(Stage stage) noexcept {
  return kAppearances[static_cast<std::size_t>(stage)];
}

#ifdef CHUNKIO_HAS_NVTX
/// Null where no profiler is attached. Never destroyed: ranges may end after static destructors.
/// NVTX sets itself up in the first call of any of its functions, through pointers that are not
/// atomic, so every other call comes after this one.
nvtxDomainHandle_t domain() noexcept {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("chunkio");
  return made;
}
#endif

}  // namespace

std::string_view to_string(Stage stage) noexcept { return appearance(stage).name; }

#ifdef CHUNKIO_HAS_NVTX

TraceRange::TraceRange(Stage stage) noexcept {
  nvtxDomainHandle_t const to = domain();
  if (to == nullptr) return;
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = appearance(stage).colour;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = appearance(stage).name;
  nvtxDomainRangePushEx(to, &attributes);
}

TraceRange::~TraceRange() {
  if (domain() != nullptr) nvtxDomainRangePop(domain());
}

void name_this_thread(const char* name) noexcept {
  ::pthread_setname_np(::pthread_self(), name);
  static_cast<void>(domain());
  nvtxNameOsThreadA(static_cast<std::uint32_t>(::gettid()), name);
}

#else

TraceRange::TraceRange(Stage) noexcept {}
TraceRange::~TraceRange() = default;
void name_this_thread(const char* name) noexcept { ::pthread_setname_np(::pthread_self(), name); }

#endif

}  // namespace chunkio::base
