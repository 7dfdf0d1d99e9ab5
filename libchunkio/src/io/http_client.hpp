/// Ranges of remote objects, asked for by HTTP.
///
/// A request has a connection of its own while it lasts, and connections are kept open for the
/// next: as many requests are under way as threads ask. That is what object stores are made for,
/// which give each connection a share of their bandwidth.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/byte_source.hpp>

#include "io/object_address.hpp"

namespace chunkio::io {

struct StoreKey;

/// What came of a request.
struct HttpReply {
  long status = 0;  ///< Of HTTP; 0: there was no answer.
  /// Why it ended early, as libcurl says it; empty: it did not.
  std::string failure = {};
  bool no_server = false;               ///< The host has no address, or takes no connections.
  bool stopped = false;                 ///< On request.
  std::size_t received = 0;             ///< Bytes of the range that are there, from its first on.
  std::optional<ByteRange> range = {};  ///< That the server says it sent.
  std::int64_t object_bytes = -1;       ///< Of the whole object; -1: it does not say.
  std::string validator = {};           ///< The entity tag, else the time of modification.
  std::string store_code = {};     ///< What an object store calls the error, such as AccessDenied.
  double retry_after_seconds = 0;  ///< As the server wants it.
};

/// A question whose answer is a short text.
struct HttpQuestion {
  std::string method = "GET";
  std::string url = {};
  std::vector<std::string> headers = {};
  std::string body = {};
  double seconds = 10;  ///< That it may take.
  /// Not of what is on this machine, or beside it.
  bool through_proxy = true;
};

struct HttpAnswer {
  long status = 0;           ///< Of HTTP; 0: there was no answer.
  std::string failure = {};  ///< Why not, as libcurl says it.
  std::string body = {};     ///< Its first 64 KiB. May be secret.
};

/// Thread-safe.
class HttpClient {
 public:
  /// That of this process, while anybody holds it.
  /// \throws Error unsupported: this library was built without libcurl.
  [[nodiscard]] static std::shared_ptr<HttpClient> shared();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Asks for bytes [begin, begin + out.size()), once. Blocks until they are there, or none has
  /// come for too long.
  /// \param key        that signs the request, of an object store; null: nothing does.
  /// \param validator  of which version they shall be; empty: of any.
  /// \param silence    that is too long, in seconds.
  /// \throws std::bad_alloc; all else is in the reply.
  [[nodiscard]] HttpReply get(const ObjectAddress& object, const StoreKey* key, std::int64_t begin,
                              std::span<std::byte> out, const std::string& validator, long silence,
                              const std::stop_token& stop);
  /// \throws std::bad_alloc; all else is in the answer.
  [[nodiscard]] HttpAnswer ask(const HttpQuestion& question);

 private:
  struct Connection;
  HttpClient();
  [[nodiscard]] std::unique_ptr<Connection> take();
  void give_back(std::unique_ptr<Connection> connection);

  /// Certificates of those who vouch for servers, of AWS_CA_BUNDLE, CURL_CA_BUNDLE or
  /// SSL_CERT_FILE; empty: those of the system.
  const std::string certificates_;
  std::mutex mutex_;
  pid_t process_;                                  // whose connections they are
  std::vector<std::unique_ptr<Connection>> idle_;  // the one used last is at the end
};

}  // namespace chunkio::io
