#include "io/http_client.hpp"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>
#include <chunkio/version.hpp>

#include "io/aws_settings.hpp"
#include "io/store_keys.hpp"
#include "io/web_text.hpp"

#ifdef CHUNKIO_HAS_CURL
#include <curl/curl.h>
#endif

namespace chunkio::io {

#ifdef CHUNKIO_HAS_CURL

namespace {

constexpr long kConnectSeconds = 10;
/// So much of what a store says of an error is looked at.
constexpr std::size_t kErrorBytes = 4096;
/// SHA-256, of the body of a request that has none.
constexpr const char* kDigestOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Of an answer that is a text.
constexpr std::size_t kAnswerBytes = std::size_t{64} << 10;

bool is_header(std::string_view line, std::string_view name) {
  return line.size() >= name.size() && ::strncasecmp(line.data(), name.data(), name.size()) == 0;
}

template <class Number>
bool read_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool skip(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

/// "bytes 0-99/1000", or "bytes */1000" where nothing of the range exists.
void read_content_range(std::string_view text, HttpReply& reply) {
  ByteRange range;
  std::int64_t last = 0;
  if (!skip(text, "bytes ")) return;
  if (!skip(text, "*")) {
    if (!read_number(text, range.begin) || !skip(text, "-") || !read_number(text, last)) return;
    range.end = last + 1;
    reply.range = range;
  }
  std::int64_t bytes = 0;
  if (skip(text, "/") && read_number(text, bytes)) reply.object_bytes = bytes;
}

/// A request while it lasts.
struct Transfer {
  std::int64_t begin = 0;
  std::span<std::byte> out;
  HttpReply reply = {};
  std::string tag = {}, modified = {};
  std::string error_text = {};  // what the server says of an error
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size * count);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // another answer, after one that led elsewhere
    transfer.reply = {};
    transfer.tag = transfer.modified = {};
    transfer.error_text.clear();
    std::string_view rest = line.substr(std::min(line.find(' '), line.size()));
    static_cast<void>(skip(rest, " ") && read_number(rest, transfer.reply.status));
    return size * count;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  if (is_header(line, "etag:")) transfer.tag = value;
  if (is_header(line, "last-modified:")) transfer.modified = value;
  if (is_header(line, "content-range:")) read_content_range(value, transfer.reply);
  if (is_header(line, "retry-after:")) {
    int seconds = 0;  // a date is not understood, and is no reason to wait
    if (read_number(value, seconds)) transfer.reply.retry_after_seconds = std::max(seconds, 0);
  }
  return size * count;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t bytes = size * count;
  HttpReply& reply = transfer.reply;
  if (reply.status != 206) {
    if (reply.status < 300) return CURL_WRITEFUNC_ERROR;  // it sends the whole object
    const std::size_t room = kErrorBytes - std::min(kErrorBytes, transfer.error_text.size());
    transfer.error_text.append(data, std::min(bytes, room));
    return bytes;
  }
  if (!reply.range || reply.range->begin != transfer.begin ||
      bytes > transfer.out.size() - reply.received) {
    return CURL_WRITEFUNC_ERROR;  // other bytes than were asked for
  }
  std::memcpy(transfer.out.data() + reply.received, data, bytes);
  reply.received += bytes;
  return bytes;
}

std::size_t on_answer(char* data, std::size_t size, std::size_t count, void* user) {
  auto& body = *static_cast<std::string*>(user);
  body.append(data, std::min(size * count, kAnswerBytes - body.size()));
  return size * count;
}

/// While it lasts, a server that is gone ends no program: a library that encrypts writes as if to a
/// pipe.
class NoPipeSignal {
 public:
  NoPipeSignal() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    constexpr timespec kAtOnce{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &kAtOnce) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list_); }
  void add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list_ = longer;
  }
  [[nodiscard]] curl_slist* get() const noexcept { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

/// A handle that keeps its connection, in a set of its own: only so a request can be stopped at
/// once.
struct HttpClient::Connection {
  Connection() : set(curl_multi_init()), handle(curl_easy_init()) {
    if (set == nullptr || handle == nullptr) {
      close();
      throw std::bad_alloc();
    }
  }
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  void close() noexcept {
    if (handle != nullptr) curl_easy_cleanup(handle);
    if (set != nullptr) curl_multi_cleanup(set);
  }
  template <class Value>
  void option(CURLoption name, Value value) {
    curl_easy_setopt(handle, name, value);
  }
  /// \returns what libcurl makes of it; CURLE_ABORTED_BY_CALLBACK: stopped.
  CURLcode perform(const std::stop_token& stop) {
    const NoPipeSignal no_signal;
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(set); });
    if (curl_multi_add_handle(set, handle) != CURLM_OK) return CURLE_FAILED_INIT;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    for (int running = 1; running > 0 && !stop.stop_requested();) {
      if (curl_multi_perform(set, &running) != CURLM_OK) break;
      if (running > 0) curl_multi_poll(set, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(set, &left)) {
      if (message->msg == CURLMSG_DONE) result = message->data.result;
    }
    curl_multi_remove_handle(set, handle);
    return result;
  }

  CURLM* set;
  CURL* handle;
};

HttpClient::HttpClient()
    : certificates_(from_environment({"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})),
      process_(::getpid()) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) {
    throw Error(ErrorCode::out_of_resources,
                std::string("libcurl cannot start: ") + curl_easy_strerror(started));
  }
}

HttpClient::~HttpClient() = default;

std::shared_ptr<HttpClient> HttpClient::shared() {
  static std::mutex mutex;
  static std::weak_ptr<HttpClient> of_process;
  const std::lock_guard lock(mutex);
  std::shared_ptr<HttpClient> client = of_process.lock();
  if (!client) of_process = client = std::shared_ptr<HttpClient>(new HttpClient);
  return client;
}

std::unique_ptr<HttpClient::Connection> HttpClient::take() {
  {
    const std::lock_guard lock(mutex_);
    if (process_ != ::getpid()) {
      // After a fork: what is said through them is for the parent, which closes them.
      for (std::unique_ptr<Connection>& connection : idle_) static_cast<void>(connection.release());
      idle_.clear();
      process_ = ::getpid();
    }
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>();
}

void HttpClient::give_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
}

HttpReply HttpClient::get(const ObjectAddress& object, const StoreKey* key, std::int64_t begin,
                          std::span<std::byte> out, const std::string& validator, long silence,
                          const std::stop_token& stop) {
  std::unique_ptr<Connection> connection = take();
  Transfer transfer{.begin = begin, .out = out};
  const std::string range =
      std::to_string(begin) + "-" + std::to_string(begin + std::ssize(out) - 1);
  HeaderList headers;
  // A weak tag never matches, and a time is no tag: what comes back is compared with either.
  if (validator.starts_with('"')) headers.add("If-Match: " + validator);
  curl_easy_reset(connection->handle);  // keeps the connection
  connection->option(CURLOPT_URL, object.url.c_str());
  connection->option(CURLOPT_PROTOCOLS_STR, "http,https");
  // Nobody is led from a connection that cannot be overheard to one that can.
  connection->option(CURLOPT_REDIR_PROTOCOLS_STR,
                     object.url.starts_with("https:") ? "https" : "http,https");
  connection->option(CURLOPT_FOLLOWLOCATION, key != nullptr ? 0L : 1L);
  connection->option(CURLOPT_MAXREDIRS, 5L);
  if (!certificates_.empty()) connection->option(CURLOPT_CAINFO, certificates_.c_str());
  connection->option(CURLOPT_NOSIGNAL, 1L);
  const std::string agent = "chunkio/" + std::string(version());
  connection->option(CURLOPT_USERAGENT, agent.c_str());
  // Requests share no connection, so the later protocol would only add its own flow control.
  connection->option(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  connection->option(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  connection->option(CURLOPT_LOW_SPEED_LIMIT, 1L);
  connection->option(CURLOPT_LOW_SPEED_TIME, silence);
  connection->option(CURLOPT_BUFFERSIZE, 512L << 10);
  connection->option(CURLOPT_RANGE, range.c_str());
  connection->option(CURLOPT_HEADERFUNCTION, &on_header);
  connection->option(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  connection->option(CURLOPT_WRITEFUNCTION, &on_body);
  connection->option(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  std::array<char, CURL_ERROR_SIZE> failure{};
  connection->option(CURLOPT_ERRORBUFFER, failure.data());
  std::string provider, user;
  if (key != nullptr) {
    provider = "aws:amz:" + object.region + ":s3";
    user = key->id + ":" + key->secret;
    connection->option(CURLOPT_AWS_SIGV4, provider.c_str());
    connection->option(CURLOPT_USERPWD, user.c_str());
    // S3 wants it, and libcurl 7.88 does not add it.
    headers.add(std::string("x-amz-content-sha256: ") + kDigestOfNothing);
    if (!key->token.empty()) headers.add("x-amz-security-token: " + key->token);
  }
  connection->option(CURLOPT_HTTPHEADER, headers.get());
  const CURLcode result = connection->perform(stop);
  HttpReply& reply = transfer.reply;
  reply.validator = transfer.tag.empty() ? transfer.modified : transfer.tag;
  reply.store_code = error_code_of(transfer.error_text);
  reply.stopped = stop.stop_requested();
  reply.no_server = result == CURLE_COULDNT_RESOLVE_HOST || result == CURLE_COULDNT_CONNECT;
  if (result != CURLE_OK) {
    reply.failure = failure[0] != '\0' ? failure.data() : curl_easy_strerror(result);
    connection.reset();  // what is left of the answer is in its way
  } else {
    connection->option(CURLOPT_ERRORBUFFER, nullptr);
    give_back(std::move(connection));
  }
  return std::move(reply);
}

HttpAnswer HttpClient::ask(const HttpQuestion& question) {
  Connection connection;
  HttpAnswer answer;
  HeaderList headers;
  for (const std::string& line : question.headers) headers.add(line);
  connection.option(CURLOPT_URL, question.url.c_str());
  connection.option(CURLOPT_PROTOCOLS_STR, "http,https");
  connection.option(CURLOPT_CUSTOMREQUEST, question.method.c_str());
  if (question.method != "GET") connection.option(CURLOPT_COPYPOSTFIELDS, question.body.c_str());
  if (!certificates_.empty()) connection.option(CURLOPT_CAINFO, certificates_.c_str());
  if (!question.through_proxy) connection.option(CURLOPT_NOPROXY, "*");
  connection.option(CURLOPT_NOSIGNAL, 1L);
  connection.option(CURLOPT_TIMEOUT_MS, static_cast<long>(1000 * question.seconds));
  connection.option(CURLOPT_HTTPHEADER, headers.get());
  connection.option(CURLOPT_WRITEFUNCTION, &on_answer);
  connection.option(CURLOPT_WRITEDATA, static_cast<void*>(&answer.body));
  const CURLcode result = connection.perform({});
  if (result == CURLE_OK) {
    curl_easy_getinfo(connection.handle, CURLINFO_RESPONSE_CODE, &answer.status);
  } else {
    answer.failure = curl_easy_strerror(result);
  }
  return answer;
}

#else

struct HttpClient::Connection {};
HttpClient::HttpClient() : process_(0) {}
HttpClient::~HttpClient() = default;

std::shared_ptr<HttpClient> HttpClient::shared() {
  throw Error(ErrorCode::unsupported,
              "this library was built without libcurl, which reads remote files; copy the file "
              "here, or build it with libcurl");
}

HttpReply HttpClient::get(const ObjectAddress&, const StoreKey*, std::int64_t, std::span<std::byte>,
                          const std::string&, long, const std::stop_token&) {
  return {};
}

HttpAnswer HttpClient::ask(const HttpQuestion&) { return {}; }

#endif

}  // namespace chunkio::io
