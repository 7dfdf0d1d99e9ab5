#include "io/object_address.hpp"

#include <algorithm>
#include <array>

#include <chunkio/error.hpp>

#include "io/aws_settings.hpp"
#include "io/store_keys.hpp"
#include "io/web_text.hpp"

namespace chunkio::io {
namespace {

constexpr std::string_view kS3 = "s3://";

/// Without the '?', and what comes behind a '#'.
std::string_view query_of(std::string_view url, std::size_t host) {
  const std::size_t begin = url.find_first_of("?#", host);
  if (begin == std::string_view::npos || url[begin] == '#') return {};
  return url.substr(begin + 1, url.find('#', begin) - begin - 1);
}

/// Of a query, what names the object: without what a signature of it takes, which is another one
/// each time (S3, Google Cloud Storage, CloudFront, Azure).
std::string lasting_part(std::string_view query) {
  constexpr std::array<std::string_view, 19> kOfSignatures = {"AWSAccessKeyId",
                                                              "Expires",
                                                              "GoogleAccessId",
                                                              "Key-Pair-Id",
                                                              "Policy",
                                                              "Signature",
                                                              "se",
                                                              "sig",
                                                              "ske",
                                                              "skoid",
                                                              "sks",
                                                              "skt",
                                                              "sktid",
                                                              "skv",
                                                              "sp",
                                                              "spr",
                                                              "sr",
                                                              "st",
                                                              "sv"};
  std::string lasting;
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(parameter.size() + 1, query.size()));
    const std::string_view name = parameter.substr(0, parameter.find('='));
    if (name.starts_with("X-Amz-") || name.starts_with("X-Goog-") ||
        std::find(kOfSignatures.begin(), kOfSignatures.end(), name) != kOfSignatures.end()) {
      continue;
    }
    lasting += '?';
    lasting += parameter;
  }
  return lasting;
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
  const AwsProfile profile;
  ObjectAddress address{.name = path};
  address.region = from_environment({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (address.region.empty()) address.region = profile["region"];
  if (address.region.empty()) address.region = "us-east-1";
  address.keys = StoreKeys::find(profile, address.region);
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
  address.place = address.url;
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
  address.place = address.name + lasting_part(query_of(path, host));
  if (slash == std::string_view::npos || slash == shown || slash + 1 == bare.size()) {
    throw not_an_address(address.name, "https://host/train.h5");
  }
  return address;
}

}  // namespace chunkio::io
