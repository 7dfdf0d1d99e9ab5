// Draws a labelled folder of small images, so that the quick start needs no download:
// OUT/train/CLASS/*.jpg and OUT/test/CLASS/*.jpg (four to one), ten classes that a person can tell
// apart.
//
// Every image is a function of (seed, number) alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

namespace {

constexpr double kPi = std::numbers::pi;
/// Images are drawn this many times larger and averaged down: smooth edges.
constexpr int kOversampling = 3;
/// One image in this many goes to test/.
constexpr int kTestEvery = 5;

/// SplitMix64: the same numbers on every platform, unlike the standard distributions.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t number)
      : state_(seed * 0xD1B54A32D192ED03u + number * 0x8CB92BA72F3D8DD7u) {}

  std::uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

/// A figure is a set of closed outlines in [-1,1]^2, y downwards, filled by the even-odd rule.
using Outline = std::vector<cv::Point2d>;
using Figure = std::vector<Outline>;

cv::Point2d on_circle(double radius, double angle) {
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

Outline circle(double radius) {
  Outline outline;
  for (int i = 0; i < 96; ++i) outline.push_back(on_circle(radius, 2 * kPi * i / 96));
  return outline;
}

Outline rectangle(double left, double top, double right, double bottom) {
  return {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
}

Figure draw_circle() { return {circle(0.9)}; }
Figure draw_square() { return {rectangle(-0.78, -0.78, 0.78, 0.78)}; }
Figure draw_triangle() { return {{{0, -0.95}, {0.95, 0.75}, {-0.95, 0.75}}}; }
Figure draw_ring() { return {circle(0.92), circle(0.55)}; }

Figure draw_star() {
  Outline outline;
  for (int i = 0; i < 10; ++i) {
    outline.push_back(on_circle(i % 2 == 0 ? 1.0 : 0.42, kPi * i / 5 - kPi / 2));
  }
  return {outline};
}

Figure draw_cross() {
  Outline outline;
  for (const cv::Point2d turn : {cv::Point2d(1, 0), {0, 1}, {-1, 0}, {0, -1}}) {
    for (const cv::Point2d p : {cv::Point2d(-0.28, -0.92), {0.28, -0.92}, {0.28, -0.28}}) {
      outline.emplace_back(turn.x * p.x - turn.y * p.y, turn.y * p.x + turn.x * p.y);
    }
  }
  return {outline};
}

Figure draw_stripes() {
  Figure figure;
  for (int i = 0; i < 4; ++i) {
    const double top = -0.9 + 0.515 * i;
    figure.push_back(rectangle(-0.9, top, 0.9, top + 0.257));
  }
  return figure;
}

Figure draw_checkerboard() {
  Figure figure;
  for (int row = 0; row < 4; ++row) {
    for (int column = row % 2; column < 4; column += 2) {
      const double left = -0.9 + 0.45 * column;
      const double top = -0.9 + 0.45 * row;
      figure.push_back(rectangle(left, top, left + 0.45, top + 0.45));
    }
  }
  return figure;
}

Figure draw_spiral() {
  constexpr double turns = 2.4;
  constexpr double half_width = 0.085;
  Outline outer;
  Outline inner;
  for (int i = 0; i <= 150; ++i) {
    const double t = i / 150.0;
    const double radius = 0.06 + 0.82 * t;
    outer.push_back(on_circle(radius + half_width, 2 * kPi * turns * t));
    inner.push_back(on_circle(std::max(radius - half_width, 0.0), 2 * kPi * turns * t));
  }
  outer.insert(outer.end(), inner.rbegin(), inner.rend());
  return {outer};
}

Figure draw_heart() {
  Outline outline;
  for (int i = 0; i < 120; ++i) {
    const double t = 2 * kPi * i / 120;
    const double x = 16 * std::pow(std::sin(t), 3);
    const double y = 13 * std::cos(t) - 5 * std::cos(2 * t) - 2 * std::cos(3 * t) - std::cos(4 * t);
    outline.emplace_back(x / 17, -(y + 2.5) / 16);
  }
  return {outline};
}

struct ImageClass {
  std::string_view name;
  Figure (*draw)();
};

constexpr std::array<ImageClass, 10> kClasses = {{{"checkerboard", draw_checkerboard},
                                                  {"circle", draw_circle},
                                                  {"cross", draw_cross},
                                                  {"heart", draw_heart},
                                                  {"ring", draw_ring},
                                                  {"spiral", draw_spiral},
                                                  {"square", draw_square},
                                                  {"star", draw_star},
                                                  {"stripes", draw_stripes},
                                                  {"triangle", draw_triangle}}};

/// Hue in turns, saturation and value in 0..1, to BGR in 0..1.
cv::Scalar colour(double hue, double saturation, double value) {
  cv::Mat3f pixel(1, 1, cv::Vec3d(360 * (hue - std::floor(hue)), saturation, value));
  cv::cvtColor(pixel, pixel, cv::COLOR_HSV2BGR);
  return cv::Vec3d(pixel(0));
}

/// An image [H,W,3] in 0..1 that goes from one colour to another along a random direction.
cv::Mat3f gradient(cv::Size size, const cv::Scalar& from, const cv::Scalar& to, Random& random) {
  const double angle = random.uniform(0, 2 * kPi);
  cv::Mat3f image(size);
  image.forEach([&](cv::Vec3f& pixel, const int* at) {
    const double along = (at[1] * 2.0 / size.width - 1) * std::cos(angle) +
                         (at[0] * 2.0 / size.height - 1) * std::sin(angle);
    const double t = std::clamp(along / 2.4 + 0.5, 0.0, 1.0);
    for (int c = 0; c < 3; ++c) pixel[c] = static_cast<float>(from[c] * (1 - t) + to[c] * t);
  });
  return image;
}

/// Coverage of the figure, [H,W] in 0..1, after rotating, scaling and shifting it at random.
cv::Mat1f place(const Figure& figure, cv::Size size, Random& random) {
  const double half = std::min(size.width, size.height) / 2.0;
  const double scale = half * random.uniform(0.6, 0.9);
  const double angle = random.uniform(-0.25, 0.25);
  const double stretch = random.uniform(0.88, 1.14);
  // A small figure may stray further, as long as it stays inside.
  const double stray = std::min(0.2 * half, half - scale);
  const cv::Point2d centre(size.width / 2.0 + random.uniform(-stray, stray),
                           size.height / 2.0 + random.uniform(-stray, stray));
  constexpr int kFractionBits = 4;
  std::vector<std::vector<cv::Point>> outlines;
  for (const Outline& outline : figure) {
    std::vector<cv::Point>& points = outlines.emplace_back();
    for (const cv::Point2d& p : outline) {
      const double x = p.x * scale * stretch;
      const double y = p.y * scale / stretch;
      const cv::Point2d turned(x * std::cos(angle) - y * std::sin(angle),
                               x * std::sin(angle) + y * std::cos(angle));
      points.emplace_back((centre + turned) * (1 << kFractionBits));
    }
  }
  cv::Mat1f mask(size, 0);
  cv::fillPoly(mask, outlines, cv::Scalar(1), cv::LINE_8, kFractionBits);
  return mask;
}

/// image = image * (1 - mask) + paint * mask.
void blend(cv::Mat3f& image, const cv::Mat3f& paint, const cv::Mat1f& mask) {
  image.forEach([&](cv::Vec3f& pixel, const int* at) {
    const float covered = mask(at);
    pixel = pixel * (1 - covered) + paint(at) * covered;
  });
}

cv::Mat make_image(const ImageClass& kind, cv::Size size, Random random) {
  const cv::Size large(size.width * kOversampling, size.height * kOversampling);
  // Most figures are brighter than what is behind them, some darker: colour alone tells no class.
  const bool bright_figure = random.uniform(0, 1) < 0.9;
  const auto shade = [&](double hue, bool bright) {
    return bright ? colour(hue, random.uniform(0.25, 0.8), random.uniform(0.8, 1.0))
                  : colour(hue, random.uniform(0.4, 0.9), random.uniform(0.15, 0.5));
  };
  const double hue = random.uniform(0, 1);
  const double other_hue = hue + random.uniform(0.2, 0.8);
  cv::Mat3f image = gradient(large, shade(hue, !bright_figure),
                             shade(hue + random.uniform(-0.12, 0.12), !bright_figure), random);

  // Things that mean nothing: out-of-focus lights behind the figure.
  cv::Mat lights = image.clone();
  const int num_lights = static_cast<int>(random.uniform(2, 7));
  for (int i = 0; i < num_lights; ++i) {
    const cv::Point where(static_cast<int>(random.uniform(0, large.width)),
                          static_cast<int>(random.uniform(0, large.height)));
    const int radius = static_cast<int>(large.height * random.uniform(0.02, 0.12));
    cv::circle(lights, where, radius, colour(random.uniform(0, 1), 0.5, random.uniform(0.3, 0.9)),
               cv::FILLED);
  }
  cv::GaussianBlur(lights, lights, {}, large.height * 0.012);
  image = image * 0.55 + lights * 0.45;

  const cv::Mat1f mask = place(kind.draw(), large, random);
  cv::Mat1f shadow;
  const double drop = large.height * 0.03;
  const cv::Mat shift = (cv::Mat_<double>(2, 3) << 1, 0, drop, 0, 1, drop);
  cv::warpAffine(mask, shadow, shift, large);
  cv::GaussianBlur(shadow, shadow, {}, large.height * 0.025);
  shadow *= 0.4;
  blend(image, cv::Mat3f(large, cv::Vec3f()), shadow);
  blend(image,
        gradient(large, shade(other_hue, bright_figure),
                 shade(other_hue + random.uniform(-0.1, 0.1), bright_figure), random),
        mask);

  cv::Mat3f small;
  cv::resize(image, small, size, 0, 0, cv::INTER_AREA);
  const double grain = random.uniform(0.01, 0.05);
  for (cv::Vec3f& pixel : small) {
    for (float& value : pixel.val) value += static_cast<float>(random.uniform(-grain, grain));
  }
  cv::Mat bytes;
  small.convertTo(bytes, CV_8UC3, 255);
  return bytes;
}

void write_image(const std::filesystem::path& path, const cv::Mat& image) {
  if (!cv::imwrite(path.string(), image, {cv::IMWRITE_JPEG_QUALITY, 90})) {
    throw std::runtime_error("cannot write " + path.string() +
                             ": is the folder writable, is the disk full?");
  }
}

void run(const std::filesystem::path& out, int count, std::uint64_t seed, cv::Size size) {
  if (std::filesystem::exists(out) && !std::filesystem::is_empty(out)) {
    throw std::runtime_error(out.string() + " is not empty; name a new folder or remove it first");
  }
  constexpr int num_classes = static_cast<int>(kClasses.size());
  for (const ImageClass& kind : kClasses) {
    for (const char* split : {"train", "test"}) {
      std::filesystem::create_directories(out / split / kind.name);
    }
  }
  // Consecutive numbers walk through the classes, so that all have the same count, give or take
  // one.
  for (int n = 0; n < count; ++n) {
    const ImageClass& kind = kClasses[static_cast<std::size_t>(n % num_classes)];
    const int i = n / num_classes;
    std::array<char, 16> file{};
    std::snprintf(file.data(), file.size(), "%05d.jpg", i);
    const char* split = i % kTestEvery == kTestEvery - 1 ? "test" : "train";
    write_image(out / split / kind.name / file.data(),
                make_image(kind, size, Random(seed, static_cast<std::uint64_t>(n))));
  }
  std::printf("%d images of %dx%d in %d classes written to %s\n", count, size.height, size.width,
              num_classes, out.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string out;
  int count = 3000;
  std::uint64_t seed = 1;
  std::array<int, 2> size = {64, 64};  // height, width
  CLI::App app(
      "Draws a labelled folder of small images: OUT/train/CLASS/*.jpg and OUT/test/CLASS/*.jpg.",
      "chunkio-make-pictures");
  app.add_option("OUT", out, "Folder to write; must not exist or be empty")->required();
  app.add_option("--count", count, "Images in all")
      ->check(CLI::Range(kTestEvery * static_cast<int>(kClasses.size()), 999'990))
      ->capture_default_str();
  app.add_option("--seed", seed, "Another seed draws other images")->capture_default_str();
  app.add_option("--size", size, "HEIGHTxWIDTH in pixels")
      ->delimiter('x')
      ->check(CLI::Range(8, 2048))
      ->default_str("64x64");
  try {
    app.parse(argc, argv);
    cv::setNumThreads(1);  // images are too small for more
    run(out, count, seed, {size[1], size[0]});
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunkio-make-pictures: %s\n", error.what());
    return 1;
  }
}
