#include "write/run_description.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "write/partial_file.hpp"

namespace chunkio::write {
namespace {

// Of single values only: the destructor of a tree of them allocates, and where that fails it ends
// the process.
using json = nlohmann::json;
/// Names and values of a flat JSON object, the values as JSON, in order, so that the caller decides
/// which difference is told first.
using Members = std::vector<std::pair<std::string, std::string>>;

// On-disk names: never change.
constexpr const char* kIdentity = "identity";
constexpr const char* kSpecification = "specification";

std::string digest_of(const std::vector<std::string>& texts) {
  base::RunningDigest digest;
  for (const std::string& text : texts) {
    digest.add(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  }
  return std::to_string(digest.value());
}

/// Names from files need not be UTF-8.
std::string dump(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string object_text(const Members& members) {
  std::string text;
  for (const auto& [name, value] : members) {
    text += (text.empty() ? "" : ",") + dump(json(name)) + ":" + value;
  }
  return "{" + text + "}";
}

/// Reads one flat object: the whole of a text, or that behind a name of an outer object.
class MemberReader final : public json::json_sax_t {
 public:
  /// \param of  a name of the outer object; empty: there is none.
  explicit MemberReader(std::string of) : of_(std::move(of)), depth_wanted_(of_.empty() ? 1 : 2) {}

  /// Absent: it is not there, or holds something else than strings, numbers and booleans.
  [[nodiscard]] std::optional<Members> read(const std::string& text) && {
    if (!json::sax_parse(text, this) || !found_) return std::nullopt;
    return std::move(members_);
  }

  bool null() override { return !inside_; }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(value); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool key(string_t& name) override {
    name_ = name;
    return true;
  }
  bool start_object(std::size_t /*size*/) override {
    if (inside_) return false;
    inside_ = ++depth_ == depth_wanted_ && (depth_ == 1 || name_ == of_);
    found_ = found_ || inside_;
    return true;
  }
  bool end_object() override {
    --depth_;
    inside_ = false;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    ++depth_;
    return !inside_;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  template <class T>
  bool add(const T& value) {
    if (inside_) members_.emplace_back(name_, dump(json(value)));
    return true;
  }

  const std::string of_;
  const int depth_wanted_;
  int depth_ = 0;
  bool inside_ = false;
  bool found_ = false;
  std::string name_;
  Members members_;
};

const std::string* find(const Members& members, const std::string& name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

std::string shown(const std::string* value) {
  constexpr std::size_t kShown = 100;
  if (value == nullptr) return "not there";
  return value->size() > kShown ? value->substr(0, kShown) + "..." : *value;
}

std::optional<std::string> difference_of_members(const Members& before, const Members& now) {
  // First what there is now, in its order, then what is there no more.
  for (const Members* run : {&now, &before}) {
    for (const auto& [name, unused] : *run) {
      const std::string* const was = find(before, name);
      const std::string* const is = find(now, name);
      if (was != nullptr && is != nullptr && *was == *is) continue;
      return dump(json(name)) + " was " + shown(was) + " and is now " + shown(is);
    }
  }
  return std::nullopt;
}

}  // namespace

FieldDigests digest_fields(const std::vector<FieldData>& fields) {
  FieldDigests digests;
  for (const FieldData& field : fields) {
    base::RunningDigest digest;
    field.for_each_block([&](std::span<const std::byte> rows) { digest.add(rows); });
    digests[field.info.name] = digest.value();
  }
  return digests;
}

std::string describe_run(const std::string& identity, const DatasetSpec& spec,
                         const FieldDigests& fields, std::int64_t chunk_samples,
                         const std::string& filter) {
  const std::optional<Members> told = MemberReader("").read(identity);
  if (!told) {
    throw Error(ErrorCode::invalid_argument,
                "the identity of a run must be a JSON object of strings, numbers and booleans");
  }
  Members specification;
  const auto add = [&](const std::string& name, const auto& value) {
    specification.emplace_back(name, dump(json(value)));
  };
  add("num_samples", spec.num_samples);
  add("height", spec.height);
  add("width", spec.width);
  add("channels", spec.channels);
  add("layout", std::string(to_string(spec.layout)));
  add("channel_order", spec.channel_order);
  add("chunk_samples", chunk_samples);
  add("split", spec.split);
  add("order", spec.order);
  add("seed", spec.seed);
  add("options", spec.options_json);
  add("class_names", digest_of(spec.class_names));
  add("attribute_names", digest_of(spec.attribute_names));
  // Journals from before there were filters do not have it.
  if (filter != "none") add("filter", filter);
  if (spec.shard) {
    add("shard", std::to_string(spec.shard->index) + "/" + std::to_string(spec.shard->count) +
                     " of " + spec.shard->set);
  }
  for (const FieldData& field : spec.fields) {
    add("field " + field.info.name, std::string(to_string(field.info.dtype)) + " " +
                                        field.info.row_shape.to_string() + " " +
                                        std::to_string(fields.at(field.info.name)));
  }
  return object_text(
      {{kIdentity, object_text(*told)}, {kSpecification, object_text(specification)}});
}

void check_same_run(const std::string& before, const std::string& now, const std::string& target) {
  std::optional<std::string> difference;
  try {
    difference = first_difference(before, now);
  } catch (const Error& error) {
    throw Error(error.code(), journal_of(target) + ": " + error.what() + "; " + kStartAgain,
                "overwrite", "resume");
  }
  if (difference) {
    throw Error(ErrorCode::invalid_argument,
                partial_of(target) + " was begun by another run: " + *difference +
                    "; give the same input and options, or " + kStartAgain,
                "overwrite", "resume");
  }
}

std::optional<std::string> first_difference(const std::string& before, const std::string& now) {
  for (const char* part : {kIdentity, kSpecification}) {
    const std::optional<Members> old_part = MemberReader(part).read(before);
    if (!old_part) {
      throw Error(ErrorCode::corrupt_data,
                  std::string("the journal does not have the run's ") + part);
    }
    const std::optional<Members> new_part = MemberReader(part).read(now);
    if (auto difference = difference_of_members(*old_part, new_part.value())) return difference;
  }
  return std::nullopt;
}

}  // namespace chunkio::write
