/// The kinds of sources that packing commands have in common.
#pragma once

#include <array>
#include <string_view>

#include "pack_command.hpp"
#include "sources/listing.hpp"

namespace h5pack {

/// One kind of source: a command of its own, and one of `h5pack append`. Texts are for the help.
struct SourceKind {
  const char* name;  ///< Of the command.
  const char* what;  ///< What it packs: the object of "Pack" or "Append".
  const char* input_name;
  const char* input;
  const char* output;                   ///< When it is packed by itself.
  std::array<const char*, 2> examples;  ///< Whole command lines.
  /// The same when it is appended.
  std::array<const char*, 2> append_examples;
  Listing (*list)(const PackCommand&);

  [[nodiscard]] bool is_csv() const noexcept { return std::string_view(name) == "csv"; }
};

[[nodiscard]] const std::array<SourceKind, 4>& source_kinds() noexcept;

}  // namespace h5pack
