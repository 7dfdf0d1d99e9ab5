/// Where a remote object is: https://host/train.h5 or s3://bucket/train.h5.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chunkio::io {

/// A key of an object store. Never in a message.
struct StoreKey {
  std::string id = {};
  std::string secret = {};
  std::string token = {};  ///< Of a session; empty: none.
};

struct ObjectAddress {
  std::string name = {};  ///< For messages: without user, password and query, which may be secret.
  std::string url = {};   ///< What is asked for.
  std::string region = {};           ///< Of S3.
  std::optional<StoreKey> key = {};  ///< Of S3, by which requests are signed; absent: they are not.
};

/// Whether a path is the address of a remote object: http://, https:// or s3://.
[[nodiscard]] bool is_remote(std::string_view path) noexcept;

/// Finds out what `path` stands for. Of s3://, endpoint, region and key come from where the AWS
/// programs look for them: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION,
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, and the profile AWS_PROFILE of
/// ~/.aws/credentials and ~/.aws/config. Without a key, requests are those of anybody.
/// \throws Error invalid_argument: no host, bucket or object in it.
[[nodiscard]] ObjectAddress find_object(const std::string& path);

}  // namespace chunkio::io
