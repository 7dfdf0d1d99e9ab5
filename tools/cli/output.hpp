/// stdout and stderr of the program: results that must arrive, and one-line errors.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace cli {

/// Makes the three standard streams safe to use: a closed one is opened on /dev/null (stdout so
/// that writing to it fails), or the next file opened would become "stdout"; SIGPIPE becomes an
/// error of print(). Call it first.
void prepare_standard_streams();

/// Writes results to stdout, all of `text` in one piece if the system takes it so: what several
/// processes print into one file, or up to 4,096 bytes into one pipe, is not mixed within a report.
/// \throws chunkio::Error io_failed: a full disk or closed pipe must not look like success.
void print(std::string_view text);

/// "PROGRAM: MESSAGE" on stderr, control characters escaped, always one line.
void print_error(std::string_view message, std::string_view program = "h5pack");

/// The error as its reader wants it: print_error() and, with --json, an object on stdout:
/// {"error": {"code": ..., "message": ...}}. Bytes of the message that are no UTF-8 become U+FFFD
/// there.
/// \param code  as chunkio::to_string(ErrorCode), or "usage".
void print_failure(std::string_view code, std::string_view message, bool json,
                   std::string_view program = "h5pack");

/// print_error() with "warning: " before the message: the command goes on.
void print_warning(std::string_view message);

/// True if `stream` is a terminal that takes colours and NO_COLOR is unset or empty.
bool use_colour(std::FILE* stream);

}  // namespace cli
