/// Where a remote object is: https://host/train.h5 or s3://bucket/train.h5.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace chunkio::io {

class StoreKeys;

struct ObjectAddress {
  std::string name = {};  ///< For messages: without user, password and query, which may be secret.
  std::string url = {};   ///< What is asked for.
  /// The same for everybody who may read it, and another one for each object. Never in a message.
  std::string place = {};
  std::string region = {};  ///< Of S3.
  /// Of S3, by which requests are signed; null: they are not.
  std::shared_ptr<StoreKeys> keys = {};
};

/// Whether a path is the address of a remote object: http://, https:// or s3://.
[[nodiscard]] bool is_remote(std::string_view path) noexcept;

/// Finds out what `path` stands for. Of s3://, endpoint, region and key come from where the AWS
/// programs look for them: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION,
/// the profile (aws_settings.hpp), and what StoreKeys::find() says. Without a key, requests are
/// those of anybody.
/// \throws Error invalid_argument: no host, bucket or object in it; io_failed: as
///         StoreKeys::find().
[[nodiscard]] ObjectAddress find_object(const std::string& path);

}  // namespace chunkio::io
