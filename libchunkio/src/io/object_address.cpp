#include "io/object_address.hpp"

#include <array>
#include <cstdlib>
#include <fstream>

#include <chunkio/error.hpp>

namespace chunkio::io {
namespace {

constexpr std::string_view kS3 = "s3://";

/// Of the first variable that is set to something.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

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

/// What the profile says of `name` in the two files of AWS.
class Profile {
 public:
  [[nodiscard]] std::string operator[](std::string_view name) const {
    std::string found = setting(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile_, name);
    if (!found.empty()) return found;
    return setting(file("AWS_CONFIG_FILE", "config"),
                   profile_ == "default" ? profile_ : "profile " + profile_, name);
  }

 private:
  static std::string file(const char* variable, const char* name) {
    const std::string given = from_environment({variable});
    return given.empty() ? from_environment({"HOME"}) + "/.aws/" + name : given;
  }
  static std::string chosen() {
    const std::string given = from_environment({"AWS_PROFILE"});
    return given.empty() ? "default" : given;
  }

  std::string profile_ = chosen();
};

std::optional<StoreKey> find_key(const Profile& profile) {
  StoreKey key{.id = from_environment({"AWS_ACCESS_KEY_ID"}),
               .secret = from_environment({"AWS_SECRET_ACCESS_KEY"}),
               .token = from_environment({"AWS_SESSION_TOKEN"})};
  if (key.id.empty()) {
    key = {.id = profile["aws_access_key_id"],
           .secret = profile["aws_secret_access_key"],
           .token = profile["aws_session_token"]};
  }
  if (key.id.empty() || key.secret.empty()) return std::nullopt;
  return key;
}

/// As it stands in a URL: all but letters, digits, - . _ ~ and / becomes %XX.
std::string percent_encoded(std::string_view key) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char letter : key) {
    if (kPlain.find(letter) != std::string_view::npos) {
      text += letter;
      continue;
    }
    const auto byte = static_cast<unsigned char>(letter);
    text += '%';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Error not_an_address(const std::string& name, const char* form) {
  return Error(ErrorCode::invalid_argument,
               name + " names no object; write it as in '" + form + "'");
}

ObjectAddress find_in_s3(const std::string& path) {
  const std::string_view rest = std::string_view(path).substr(kS3.size());
  const std::size_t slash = rest.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == rest.size()) {
    throw not_an_address(path, "s3://bucket/train.h5");
  }
  const std::string bucket(rest.substr(0, slash));
  const std::string object = percent_encoded(rest.substr(slash + 1));
  const Profile profile;
  ObjectAddress address{.name = path};
  address.region = from_environment({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (address.region.empty()) address.region = profile["region"];
  if (address.region.empty()) address.region = "us-east-1";
  address.key = find_key(profile);
  std::string endpoint = from_environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) endpoint = profile["endpoint_url"];
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::string host = "s3." + address.region + ".amazonaws.com";
  if (!endpoint.empty()) {
    address.url = endpoint + "/" + bucket + "/" + object;
  } else if (bucket.find('.') != std::string::npos) {
    // The certificate of the store holds for one name before its own.
    address.url = "https://" + host + "/" + bucket + "/" + object;
  } else {
    address.url = "https://" + bucket + "." + host + "/" + object;
  }
  return address;
}

}  // namespace

bool is_remote(std::string_view path) noexcept {
  constexpr std::array<std::string_view, 3> kSchemes = {"http://", "https://", kS3};
  for (const std::string_view scheme : kSchemes) {
    if (path.starts_with(scheme)) return true;
  }
  return false;
}

ObjectAddress find_object(const std::string& path) {
  if (path.starts_with(kS3)) return find_in_s3(path);
  ObjectAddress address{.url = path};
  const std::size_t host = path.find("://") + 3;
  const std::size_t query = path.find_first_of("?#", host);
  const std::string_view bare = std::string_view(path).substr(0, query);
  const std::size_t slash = bare.find('/', host);
  const std::size_t user_end = bare.substr(0, slash).rfind('@');
  const std::size_t shown = user_end == std::string_view::npos ? host : user_end + 1;
  address.name = std::string(bare.substr(0, host)) + std::string(bare.substr(shown));
  if (slash == std::string_view::npos || slash == shown || slash + 1 == bare.size()) {
    throw not_an_address(address.name, "https://host/train.h5");
  }
  return address;
}

}  // namespace chunkio::io
