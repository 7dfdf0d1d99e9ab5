/// What a test expects of an error: its code, and a message of one line that names what matters.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

namespace chunkio::test {

/// Runs `call`, which must throw an Error of that code whose message is one line and holds all of
/// `parts`.
template <class Call>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error, expected " << to_string(code);
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(to_string(error.code()), to_string(code)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    }
  }
}

/// The message of the invalid_argument error that `call` throws.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace chunkio::test
