/// What the environment and the files of the AWS programs say.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace chunkio::io {

/// \returns the value of the first variable that is set to something; empty: none is.
[[nodiscard]] std::string from_environment(std::initializer_list<const char*> names);

/// The profile AWS_PROFILE, else "default", of ~/.aws/credentials and ~/.aws/config, or of the
/// files that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name.
class AwsProfile {
 public:
  AwsProfile();
  /// Empty: neither file says anything of `name`.
  [[nodiscard]] std::string operator[](std::string_view name) const;

 private:
  std::string profile_;
};

}  // namespace chunkio::io
