#include "io/store_keys.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "io/http_client.hpp"
#include "io/web_text.hpp"

namespace chunkio::io {
namespace {

using Clock = std::chrono::system_clock;
using Json = nlohmann::json;

/// A key is asked for again so long before it expires.
constexpr std::chrono::minutes kBeforeExpiry{5};
/// Not more often, where a place goes on giving a key that expires soon.
constexpr std::chrono::seconds kAskEvery{1};
/// How long it is believed that there is no instance, or that it has no key.
constexpr std::chrono::minutes kNoInstance{1};
constexpr double kInstanceSeconds = 1;
constexpr int kInstanceTimes = 2;
constexpr double kSeconds = 10;

/// \returns no time: the text is none.
std::optional<Clock::time_point> time_of(const std::string& text) {
  std::tm broken{};
  // Fractions of a second and the Z are left over: all times are of Greenwich.
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &broken) == nullptr) return std::nullopt;
  return Clock::from_time_t(::timegm(&broken));
}

/// Without the end of the last line.
std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.empty()) {
    throw Error(ErrorCode::io_failed,
                "cannot get a key of the object store: " + path + " is not there, or empty");
  }
  return text;
}

Error no_key(const std::string& place, const HttpAnswer& answer) {
  std::string why = answer.failure;
  if (why.empty()) why = "HTTP status " + std::to_string(answer.status);
  if (const std::string code = error_code_of(answer.body); !code.empty()) why += ", " + code;
  return Error(ErrorCode::io_failed,
               "cannot get a key of the object store from " + place + ": " + why);
}

/// What containers and instances answer. \throws Error io_failed.
StoreKey key_of_json(const HttpAnswer& answer, const std::string& place) {
  const Json json = Json::parse(answer.body, nullptr, false);
  const auto member = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  StoreKey key{.id = member("AccessKeyId"),
               .secret = member("SecretAccessKey"),
               .token = member("Token"),
               .expires = time_of(member("Expiration"))};
  if (answer.status != 200 || !key.complete()) throw no_key(place, answer);
  return key;
}

StoreKey key_of_environment() {
  return {.id = from_environment({"AWS_ACCESS_KEY_ID"}),
          .secret = from_environment({"AWS_SECRET_ACCESS_KEY"}),
          .token = from_environment({"AWS_SESSION_TOKEN"})};
}

StoreKey key_of_profile(const AwsProfile& profile) {
  return {.id = profile["aws_access_key_id"],
          .secret = profile["aws_secret_access_key"],
          .token = profile["aws_session_token"]};
}

struct WebIdentity {
  std::string role = {}, token_file = {}, session = {}, service = {};

  [[nodiscard]] bool complete() const { return !role.empty() && !token_file.empty(); }
  [[nodiscard]] StoreKey ask() const {
    // The file is written anew while the program runs.
    const HttpAnswer answer = HttpClient::shared()->ask(
        {.method = "POST",
         .url = service,
         .headers = {"Content-Type: application/x-www-form-urlencoded"},
         .body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" +
                 percent_encoded(role) + "&RoleSessionName=" + percent_encoded(session) +
                 "&WebIdentityToken=" + percent_encoded(contents(token_file)),
         .seconds = kSeconds});
    StoreKey key{.id = xml_element(answer.body, "AccessKeyId"),
                 .secret = xml_element(answer.body, "SecretAccessKey"),
                 .token = xml_element(answer.body, "SessionToken"),
                 .expires = time_of(xml_element(answer.body, "Expiration"))};
    if (answer.status != 200 || !key.complete()) {
      throw no_key(service + " for the web identity in " + token_file, answer);
    }
    return key;
  }
};

std::string token_service(const AwsProfile& profile, const std::string& region) {
  std::string endpoint = from_environment({"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) endpoint = profile["endpoint_url"];
  return endpoint.empty() ? "https://sts." + region + ".amazonaws.com/" : endpoint;
}

/// Whether a place of keys may be asked without encryption: it is this machine, or beside it.
bool is_near(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  constexpr std::array<std::string_view, 6> kHosts = {
      "127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  return std::any_of(kHosts.begin(), kHosts.end(), [url](std::string_view host) {
    if (!url.starts_with(host)) return false;
    const std::string_view rest = url.substr(host.size());
    return rest.empty() || rest.front() == '/' || rest.front() == ':';
  });
}

/// \param variable  that led to the address, which may tell who is allowed to ask.
StoreKey ask_container(const std::string& url, const std::string& variable) {
  if (!url.starts_with("https://") && !is_near(url)) {
    throw Error(ErrorCode::io_failed, "cannot get a key of the object store: " + variable +
                                          " is an address of another machine without https://");
  }
  std::string permission = from_environment({"AWS_CONTAINER_AUTHORIZATION_TOKEN"});
  const std::string file = from_environment({"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"});
  if (!file.empty()) permission = contents(file);
  HttpQuestion question{.url = url, .seconds = kSeconds, .through_proxy = false};
  if (!permission.empty()) question.headers.push_back("Authorization: " + permission);
  return key_of_json(HttpClient::shared()->ask(question), "the container (" + variable + ")");
}

/// \returns none: this is no instance, or it has no role.
std::optional<StoreKey> ask_instance(const std::string& service) {
  const std::shared_ptr<HttpClient> client = HttpClient::shared();
  HttpAnswer session;
  for (int times = 0; times < kInstanceTimes && session.status != 200; ++times) {
    session = client->ask({.method = "PUT",
                           .url = service + "/latest/api/token",
                           .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                           .seconds = kInstanceSeconds,
                           .through_proxy = false});
  }
  if (session.status != 200) return std::nullopt;
  const auto get = [&](const std::string& url) {
    return client->ask({.url = url,
                        .headers = {"X-aws-ec2-metadata-token: " + session.body},
                        .seconds = kSeconds,
                        .through_proxy = false});
  };
  const std::string keys = service + "/latest/meta-data/iam/security-credentials/";
  const HttpAnswer roles = get(keys);
  if (roles.status == 404) return std::nullopt;
  const std::string role = roles.body.substr(0, roles.body.find('\n'));
  if (roles.status != 200 || role.empty()) throw no_key(keys, roles);
  return key_of_json(get(keys + percent_encoded(role)), keys + role);
}

/// Those of places that were asked.
class Places {
 public:
  static Places& of_process() {
    static Places places;
    return places;
  }
  /// \throws Error io_failed.
  std::shared_ptr<StoreKeys> find(const std::string& place, const StoreKeys::Ask& ask) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<StoreKeys>& keys = keys_[place];
    if (!keys) keys = std::make_shared<StoreKeys>(ask(), ask);
    return keys;
  }
  /// Null: it has none. \throws Error io_failed.
  std::shared_ptr<StoreKeys> find_of_instance(const std::string& service) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<StoreKeys>& keys = keys_[service];
    if (keys || std::chrono::steady_clock::now() < ask_instance_) return keys;
    const std::optional<StoreKey> first = ask_instance(service);
    if (!first) {
      ask_instance_ = std::chrono::steady_clock::now() + kNoInstance;
      return nullptr;
    }
    keys = std::make_shared<StoreKeys>(*first, [service] {
      std::optional<StoreKey> next = ask_instance(service);
      if (!next) throw no_key(service, {.failure = "the instance has no role any more"});
      return *std::move(next);
    });
    return keys;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<StoreKeys>> keys_;
  std::chrono::steady_clock::time_point ask_instance_ = {};
};

}  // namespace

std::shared_ptr<StoreKeys> StoreKeys::find(const AwsProfile& profile, const std::string& region) {
  const auto fixed = [](StoreKey key) {
    return std::make_shared<StoreKeys>(std::move(key), nullptr);
  };
  const auto of_web_identity = [&](WebIdentity identity) {
    identity.service = token_service(profile, region);
    if (identity.session.empty()) identity.session = "chunkio";
    return Places::of_process().find(
        identity.service + "\n" + identity.role + "\n" + identity.token_file,
        [identity] { return identity.ask(); });
  };
  if (StoreKey key = key_of_environment(); key.complete()) return fixed(std::move(key));
  const WebIdentity of_environment{.role = from_environment({"AWS_ROLE_ARN"}),
                                   .token_file = from_environment({"AWS_WEB_IDENTITY_TOKEN_FILE"}),
                                   .session = from_environment({"AWS_ROLE_SESSION_NAME"})};
  if (of_environment.complete()) return of_web_identity(of_environment);
  if (StoreKey key = key_of_profile(profile); key.complete()) return fixed(std::move(key));
  const WebIdentity of_profile{.role = profile["role_arn"],
                               .token_file = profile["web_identity_token_file"],
                               .session = profile["role_session_name"]};
  if (of_profile.complete()) return of_web_identity(of_profile);

  constexpr const char* kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  constexpr const char* kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
  const std::string path = from_environment({kRelative});
  const std::string container =
      path.empty() ? from_environment({kFull}) : "http://169.254.170.2" + path;
  if (!container.empty()) {
    return Places::of_process().find(container, [container, of = path.empty() ? kFull : kRelative] {
      return ask_container(container, of);
    });
  }
  if (from_environment({"AWS_EC2_METADATA_DISABLED"}) == "true") return nullptr;
  std::string instance = from_environment({"AWS_EC2_METADATA_SERVICE_ENDPOINT"});
  if (instance.empty()) instance = "http://169.254.169.254";
  while (instance.ends_with('/')) instance.pop_back();
  return Places::of_process().find_of_instance(instance);
}

StoreKeys::StoreKeys(StoreKey first, Ask ask)
    : ask_(std::move(ask)), key_(std::move(first)), asked_(Clock::now()) {}

StoreKey StoreKeys::current() {
  std::unique_lock lock(mutex_);
  const auto is_good = [this] {
    const Clock::time_point now = Clock::now();
    return !key_.expires || now < *key_.expires - kBeforeExpiry || now < asked_ + kAskEvery ||
           (asking_ && now < *key_.expires);
  };
  while (!is_good() && asking_) answered_.wait(lock);
  if (is_good()) return key_;
  // The others go on with the key that there is.
  asking_ = true;
  lock.unlock();
  std::optional<StoreKey> next;
  std::exception_ptr failure;
  try {
    next = ask_();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  asking_ = false;
  asked_ = Clock::now();
  if (next) key_ = *std::move(next);
  answered_.notify_all();
  if (failure && asked_ >= *key_.expires) std::rethrow_exception(failure);
  return key_;
}

}  // namespace chunkio::io
