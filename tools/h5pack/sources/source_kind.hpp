/// One kind of source: all that the rest of h5pack knows of it.
///
/// Adding one takes a file like folder_source.cpp, a line in source_kinds.cpp, a test and the docs:
/// its packing command, `h5pack append`, `tune`, `export --names` and `verify --against` follow.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "h5pack/sources/listing.hpp"

namespace h5pack {

/// What a command line says of a source.
struct SourceRequest {
  std::string input = {};  ///< DIR or FILE.
  /// The kind's own options by flag, such as "--root"; empty or absent: not given.
  std::map<std::string, std::string> options = {};
  /// List missing images, too: reading them fails later.
  bool keep_missing = false;
};

/// Where a packed file says that it came from.
struct RecordedOrigin {
  std::string file;       ///< The packed file, for messages.
  nlohmann::json source;  ///< Listing::source of then.
  std::string path;       ///< Where the source is now.
  bool moved = false;     ///< `path` is not the recorded one.
};

/// Text under `name` in what a file records; empty if there is none.
[[nodiscard]] std::string recorded_text(const nlohmann::json& recorded, const char* name);

/// An option that one kind of source has, whose value is a text.
struct SourceOption {
  const char* flag;
  const char* type_name;
  const char* description;
};

/// Texts are for the help. Functions block on I/O and throw what the listing functions throw.
struct SourceKind {
  const char* name;  ///< Of the command, and `kind` in what a file records.
  const char* what;  ///< What it packs: the object of "Pack" or "Append".
  const char* input_name;
  const char* input;
  const char* output;                   ///< When it is packed by itself.
  std::array<const char*, 2> examples;  ///< Whole command lines.
  /// The same when it is appended.
  std::array<const char*, 2> append_examples;
  std::span<const SourceOption> options;
  /// Whether `path` looks like a source of this kind.
  bool (*is_at)(const std::string& path);
  Listing (*list)(const SourceRequest& request);
  Listing (*list_again)(const RecordedOrigin& origin);

  /// The flags of `options`.
  [[nodiscard]] std::vector<std::string> flags() const;
};

/// All of them, in the order of the help.
[[nodiscard]] std::span<const SourceKind* const> source_kinds() noexcept;

/// The kind of that name; null if there is none.
[[nodiscard]] const SourceKind* find_source_kind(std::string_view name) noexcept;

/// The kind of what is at `path`: the most particular one, null if it is none of them. Blocks on
/// I/O.
[[nodiscard]] const SourceKind* source_kind_at(const std::string& path);

}  // namespace h5pack
