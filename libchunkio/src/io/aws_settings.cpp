#include "io/aws_settings.hpp"

#include <cstdlib>
#include <fstream>

namespace chunkio::io {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// What the section of an AWS file says of `name`; empty: nothing.
std::string setting(const std::string& path, std::string_view section, std::string_view name) {
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = trimmed(line);
    if (text.starts_with('[')) {
      inside = trimmed(text.substr(1, text.find(']') - 1)) == section;
      continue;
    }
    const std::size_t equals = text.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    if (trimmed(text.substr(0, equals)) == name)
      return std::string(trimmed(text.substr(equals + 1)));
  }
  return {};
}

std::string file(const char* variable, const char* name) {
  const std::string given = from_environment({variable});
  return given.empty() ? from_environment({"HOME"}) + "/.aws/" + name : given;
}

}  // namespace

std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

AwsProfile::AwsProfile() : profile_(from_environment({"AWS_PROFILE"})) {
  if (profile_.empty()) profile_ = "default";
}

std::string AwsProfile::operator[](std::string_view name) const {
  std::string found = setting(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile_, name);
  if (!found.empty()) return found;
  return setting(file("AWS_CONFIG_FILE", "config"),
                 profile_ == "default" ? profile_ : "profile " + profile_, name);
}

}  // namespace chunkio::io
