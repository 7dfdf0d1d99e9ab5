/// Keys of an object store, from where the AWS programs get them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "io/aws_settings.hpp"

namespace chunkio::io {

/// Never in a message.
struct StoreKey {
  std::string id = {};
  std::string secret = {};
  std::string token = {};  ///< Of a session; empty: none.
  /// When it is no longer valid; absent: it is not known to end.
  std::optional<std::chrono::system_clock::time_point> expires = {};

  [[nodiscard]] bool complete() const noexcept { return !id.empty() && !secret.empty(); }
};

/// The key of one place, which is asked for another one before it expires. Thread-safe.
class StoreKeys {
 public:
  /// Looks for a key, in this order:
  /// - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN;
  /// - a web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, which STS takes (the files are
  ///   those of Kubernetes);
  /// - the profile: a key, or web_identity_token_file and role_arn;
  /// - the container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or ..._FULL_URI;
  /// - the instance, by version 2 of its metadata service, unless AWS_EC2_METADATA_DISABLED is
  ///   true. It is given a second to answer, twice, once a minute.
  /// Those of a place are shared by all who look for them.
  /// \param region  of STS. \returns null: there is none.
  /// \throws Error io_failed: a place that was named gives none.
  [[nodiscard]] static std::shared_ptr<StoreKeys> find(const AwsProfile& profile,
                                                       const std::string& region);

  /// Asks the place for a key. \throws Error io_failed.
  using Ask = std::function<StoreKey()>;
  /// \param ask  for the next one; not called if `first` never expires.
  StoreKeys(StoreKey first, Ask ask);

  /// Blocks while the place is asked: one thread, if the key is still valid. \throws Error
  /// io_failed: the key has expired, and the place gives no other.
  [[nodiscard]] StoreKey current();

 private:
  using Clock = std::chrono::system_clock;

  Ask ask_;
  std::mutex mutex_;
  std::condition_variable answered_;
  // Guarded by mutex_.
  StoreKey key_;
  Clock::time_point asked_;
  bool asking_ = false;  // a thread is, without the mutex
};

}  // namespace chunkio::io
