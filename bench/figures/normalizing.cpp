// The table of figures about normalising on the CPU: Normalizer against the memory, a loop of one
// line, and PyTorch.
//
// Each round times, one after the other, on the same images (uint8 NHWC, in huge pages):
//
//   normalizer  batches normalised into one output buffer, as a trainer would have them
//   memcpy      as many bytes read and written (half of input plus output, copied), same threads
//   streaming   the same with non-temporal stores
//   loop        (v / 255 - mean) / std pixel by pixel, one thread, of a part of the images
//   torch       permute, to, sub_, div_ on as many threads (with --torch)
//   stores      float32 NHWC only: the conversion as a bare loop with AVX2, once with ordinary and
//               once with non-temporal stores, which Normalizer uses for outputs beyond the cache
//
// Random resized crops are those of resized_crops.cpp.
//
// What is timed is compared with the loop first.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <nlohmann/json.hpp>

#include <chunkio/normalizer.hpp>

#include "base/host_memory.hpp"
#include "base/streaming_copy.hpp"
#include "figures/normalizing.hpp"
#include "figures/suites.hpp"
#include "harness/copies.hpp"
#include "harness/drawn_images.hpp"
#include "harness/epoch_case.hpp"
#include "harness/figure.hpp"
#include "harness/in_parallel.hpp"
#include "harness/machine.hpp"
#include "harness/noise.hpp"
#include "harness/peer_process.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::DType;
using chunkio::Layout;
using chunkio::base::HostBuffer;

/// Images that the loop takes in a round: it is slow.
constexpr std::int64_t kLoopBytes = std::int64_t{8} << 20;

/// What everybody writes first.
void loop(const ImageSize& size, const std::uint8_t* image, Layout layout, float* output) {
  const std::int64_t pixels = size.height * size.width;
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < size.channels; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const auto value = static_cast<float>(image[p * size.channels + c]) / 255.0F;
      output[layout == Layout::nchw ? c * pixels + p : p * size.channels + c] =
          (value - static_cast<float>(kMean[i])) / static_cast<float>(kStd[i]);
    }
  }
}

/// Values that repeat the channels, and lanes of AVX2 that they fill.
constexpr std::size_t kPattern = 24;
constexpr std::size_t kLanes = 8;

#if defined(__x86_64__)
/// \pre count is a multiple of kPattern, output aligned to 32 bytes, AVX2 and FMA are there.
template <bool streaming>
__attribute__((target("avx2,fma"))) void convert(const std::uint8_t* values, std::size_t count,
                                                 const float* scale, const float* bias,
                                                 float* output) {
  for (std::size_t at = 0; at < count; at += kPattern) {
    for (std::size_t i = 0; i < kPattern; i += kLanes) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + at + i));
      const __m256 made = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
                                          _mm256_loadu_ps(scale + i), _mm256_loadu_ps(bias + i));
      if constexpr (streaming) {
        _mm256_stream_ps(output + at + i, made);
      } else {
        _mm256_store_ps(output + at + i, made);
      }
    }
  }
  if constexpr (streaming) _mm_sfence();
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
template <bool streaming>
void convert(const std::uint8_t*, std::size_t, const float*, const float*, float*) {}
bool has_avx2() { return false; }
#endif

float value_at(const std::byte* output, std::size_t i, DType dtype) {
  if (dtype == DType::float32) {
    float value = 0;
    std::memcpy(&value, output + 4 * i, 4);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, output + 2 * i, 2);
  if (dtype == DType::bfloat16) {
    const std::uint32_t bits = std::uint32_t{half} << 16;
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  const int exponent = (half >> 10) & 31;
  const auto fraction = static_cast<float>(half & 1023) / 1024.0F;
  const float size =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (half >> 15) != 0 ? -size : size;
}

}  // namespace

std::unique_ptr<PeerProcess> start_torch(const NormalizingOptions& options,
                                         const std::string& script,
                                         std::initializer_list<std::int64_t> sizes,
                                         std::int64_t threads,
                                         const std::vector<std::string>& more) {
  if (options.torch.empty()) return nullptr;
  std::vector<std::string> words = {options.torch, peer_script(script)};
  for (const std::int64_t size : sizes) words.push_back(std::to_string(size));
  words.insert(words.end(), {"--batch", std::to_string(options.batch_size), "--threads",
                             std::to_string(threads)});
  words.insert(words.end(), more.begin(), more.end());
  return std::make_unique<PeerProcess>(
      words, (std::filesystem::temp_directory_path() / (script + ".log")).string());
}

void check_normalized(const Setting& setting, const std::uint8_t* images, std::int64_t count,
                      const std::byte* output) {
  const auto elements = static_cast<std::size_t>(setting.size.bytes());
  const float precision = setting.dtype == DType::float32   ? 1e-5F
                          : setting.dtype == DType::float16 ? 1.5e-3F
                                                            : 1.2e-2F;
  std::vector<float> expected(elements);
  for (std::int64_t i = 0; i < count; ++i) {
    loop(setting.size, images + i * setting.size.bytes(), setting.layout, expected.data());
    for (std::size_t e = 0; e < elements; ++e) {
      const float got = value_at(output, static_cast<std::size_t>(i) * elements + e, setting.dtype);
      if (!(std::abs(got - expected[e]) <= precision * std::max(1.0F, std::abs(expected[e])))) {
        throw std::runtime_error(setting.name() + ": image " + std::to_string(i) +
                                 " is not what the loop makes of it");
      }
    }
  }
}

namespace {

class Measurement {
 public:
  Measurement(const NormalizingOptions& options, const Setting& setting, const HostBuffer& images)
      : options_(options),
        setting_(setting),
        images_(images),
        num_images_(static_cast<std::int64_t>(images.size()) / setting.size.bytes()),
        normalizer_(info_of(setting.size),
                    {.dtype = setting.dtype,
                     .layout = setting.layout,
                     .mean = {kMean.begin(), kMean.end()},
                     .std = {kStd.begin(), kStd.end()}},
                    setting.threads),
        output_(normalizer_.output_bytes(num_images_)),
        moved_bytes_(num_images_ * setting.size.bytes() +
                     static_cast<std::int64_t>(output_.size())) {
    for (std::int64_t i = 0; i < options_.batch_size; ++i) ids_.push_back(i);
  }

  void run(Report& report) {
    normalize();
    check_normalized(setting_, bytes(), num_images_, output_.data());
    const auto peer = start_torch(
        options_, "normalize_torch.py",
        {setting_.size.height, setting_.size.width, setting_.size.channels, num_images_},
        setting_.threads,
        {"--dtype", std::string(to_string(setting_.dtype)), "--layout",
         std::string(to_string(setting_.layout))});
    const bool bare = setting_.dtype == DType::float32 && setting_.layout == Layout::nhwc &&
                      setting_.size.channels == 3 && has_avx2();
    if (bare) {
      // Of both, so that what is compared is right.
      for (const auto how : {&convert<false>, &convert<true>}) {
        std::memset(output_.data(), 0, output_.size());
        convert_all(how);
        check_normalized(setting_, bytes(), whole_images(), output_.data());
      }
    }
    copy(&plain_copy);  // The first one pays for the pages of its buffers.
    std::vector<double> normalizer, plain, streaming, loops, torch, ordinary, non_temporal;
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      normalizer.push_back(seconds_of([&] { normalize(); }));
      plain.push_back(seconds_of([&] { copy(&plain_copy); }));
      streaming.push_back(seconds_of([&] { copy(&chunkio::base::streaming_copy); }));
      loops.push_back(seconds_of_loop());
      if (bare) {
        ordinary.push_back(seconds_of([&] { convert_all(&convert<false>); }));
        non_temporal.push_back(seconds_of([&] { convert_all(&convert<true>); }));
      }
      if (peer) {
        const PeerProcess::Epoch epoch = peer->run_epoch();
        torch.push_back(epoch.seconds * static_cast<double>(num_images_) /
                        static_cast<double>(epoch.images));
      }
    }
    const auto ratio = [&](const std::vector<double>& others) {
      return ratios(others, normalizer);
    };
    const std::string name = setting_.name();
    const std::vector<double> images(normalizer.size(), static_cast<double>(num_images_));
    report.add({"normalizing, images/s", name, ratios(images, normalizer)});
    report.add({"normalizing, bytes in + out, GB/s", name,
                gigabytes_per_second(static_cast<double>(moved_bytes_), normalizer)});
    report.add({"normalizing / memcpy of as many bytes", name, ratio(plain)});
    report.add({"normalizing / non-temporal copy of as many bytes", name, ratio(streaming)});
    report.add({"normalizing / loop over pixels (one thread)", name, ratio(loops)});
    if (bare) {
      report.add({"bare conversion, non-temporal / ordinary stores", name,
                  ratios(ordinary, non_temporal)});
      report.add({"normalizing / bare conversion, ordinary stores", name, ratio(ordinary)});
    }
    if (peer) report.add({"normalizing / PyTorch", name, ratio(torch)});
    nlohmann::ordered_json detail = {{"pictures", num_images_},
                                     {"bytes", moved_bytes_},
                                     {"seconds",
                                      {{"normalizer", normalizer},
                                       {"memcpy", plain},
                                       {"streaming", streaming},
                                       {"loop", loops},
                                       {"torch", torch},
                                       {"ordinary stores", ordinary},
                                       {"non-temporal stores", non_temporal}}}};
    if (peer) detail["torch"] = peer->about();
    report.add_detail(name, "normalizing", std::move(detail));
  }

 private:
  [[nodiscard]] const std::uint8_t* bytes() const {
    return reinterpret_cast<const std::uint8_t*>(images_.data());
  }

  void normalize() {
    for (std::int64_t first = 0; first < num_images_; first += options_.batch_size) {
      const std::int64_t count = std::min(options_.batch_size, num_images_ - first);
      const chunkio::Tensor batch(
          images_.data() + first * setting_.size.bytes(), DType::uint8,
          {count, setting_.size.height, setting_.size.width, setting_.size.channels});
      normalizer_(batch, std::span(ids_).first(static_cast<std::size_t>(count)), 0,
                  output_.bytes().subspan(normalizer_.output_bytes(first),
                                          normalizer_.output_bytes(count)));
    }
  }

  /// Reads half of the bytes that normalising moves, and writes as many, in pieces of an image or
  /// so, between which the threads alternate. From memory that nobody else uses to memory that
  /// nobody else uses.
  void copy(Copy how) {
    const std::int64_t half = moved_bytes_ / 2;
    static constexpr std::int64_t kPiece = std::int64_t{64} << 10;
    const std::int64_t pieces = (half + kPiece - 1) / kPiece;
    if (!target_) {
      target_.emplace(static_cast<std::size_t>(half));
      source_.emplace(static_cast<std::size_t>(half));
      fill_with_noise(source_->bytes());
      std::memset(target_->data(), 1, target_->size());
    }
    in_parallel(pieces, setting_.threads, [&] {
      return [this, how, half](std::int64_t i) {
        const std::int64_t first = i * kPiece;
        how(target_->data() + first, source_->data() + first,
            static_cast<std::size_t>(std::min(kPiece, half - first)));
        chunkio::base::store_fence();
      };
    });
  }

  using Convert = void (*)(const std::uint8_t*, std::size_t, const float*, const float*, float*);

  static constexpr std::int64_t kPieceValues = std::int64_t{kPattern} * 2048;

  /// Images that convert_all() converts to the end.
  [[nodiscard]] std::int64_t whole_images() const {
    return num_images_ * setting_.size.bytes() / kPieceValues * kPieceValues /
           setting_.size.bytes();
  }

  void convert_all(Convert how) {
    std::array<float, kPattern> scale{};
    std::array<float, kPattern> bias{};
    for (std::size_t i = 0; i < kPattern; ++i) {
      scale[i] = static_cast<float>(1 / (255 * kStd[i % 3]));
      bias[i] = static_cast<float>(-kMean[i % 3] / kStd[i % 3]);
    }
    auto* const output = reinterpret_cast<float*>(output_.data());
    in_parallel(num_images_ * setting_.size.bytes() / kPieceValues, setting_.threads, [&] {
      return [&, how](std::int64_t i) {
        how(bytes() + i * kPieceValues, static_cast<std::size_t>(kPieceValues), scale.data(),
            bias.data(), output + i * kPieceValues);
      };
    });
  }

  [[nodiscard]] double seconds_of_loop() {
    const std::int64_t count =
        std::clamp<std::int64_t>(kLoopBytes / setting_.size.bytes(), 1, num_images_);
    std::vector<float> output(static_cast<std::size_t>(count * setting_.size.bytes()));
    const double seconds = seconds_of([&] {
      for (std::int64_t i = 0; i < count; ++i) {
        loop(setting_.size, bytes() + i * setting_.size.bytes(), setting_.layout,
             output.data() + i * setting_.size.bytes());
      }
    });
    return seconds * static_cast<double>(num_images_) / static_cast<double>(count);
  }

  const NormalizingOptions& options_;
  const Setting setting_;
  const HostBuffer& images_;
  std::int64_t num_images_;
  chunkio::Normalizer normalizer_;
  HostBuffer output_;
  std::int64_t moved_bytes_;
  std::vector<std::int64_t> ids_;
  std::optional<HostBuffer> source_;
  std::optional<HostBuffer> target_;
};

struct Normalizing {
  NormalizingOptions options;
  ImageSize size = kImageSizes[0];
  std::optional<HostBuffer> images;
};

void add_options(NormalizingOptions& options, CLI::App& app) {
  add_bytes(app, "--bytes", options.bytes, "Image bytes of each size");
  add_count(app, "--batch", options.batch_size, "Samples a batch");
  add_rounds(app, options.rounds);
  app.add_option("--threads", options.threads, "Numbers of threads, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--torch", options.torch, "A Python with PyTorch; without it no peer runs");
}

void describe(const NormalizingOptions& options, Report& report) {
  report.add_line(gibibytes(options.bytes) + " of images for each size, batches of " +
                  std::to_string(options.batch_size) + "; " + std::to_string(options.rounds) +
                  " interleaved rounds, median (range)");
  note_small_data(options.bytes, report);
}

void measure(const Normalizing& state, Report& report) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      for (const std::int64_t threads : state.options.threads) {
        Measurement(state.options, {state.size, dtype, layout, threads}, *state.images).run(report);
      }
    }
  }
}

}  // namespace

Suite normalizing_suite() {
  const auto state = std::make_shared<Normalizing>();
  return {.name = "normalizing",
          .description = "Figures about normalising on the CPU",
          .source = "figures/normalizing.cpp",
          .add_options = [state](CLI::App& app) { add_options(state->options, app); },
          .begin = [state](Report& report) { describe(state->options, report); },
          .prepare =
              [state](const ImageSize& size) {
                const std::int64_t count =
                    std::max<std::int64_t>(state->options.bytes / size.bytes(), 1);
                state->size = size;
                state->images.emplace(static_cast<std::size_t>(count * size.bytes()));
                fill_with_noise(state->images->bytes());
              },
          .finish = [state] { state->images.reset(); },
          .experiments = {{"normalizer", [state](Report& report) { measure(*state, report); }},
                          {"resized crops", [state](Report& report) {
                             // Of images of a size of their own.
                             if (std::string_view(state->size.name) == kImageSizes[0].name) {
                               measure_resized_crops(state->options, report);
                             }
                           }}}};
}

}  // namespace bench
