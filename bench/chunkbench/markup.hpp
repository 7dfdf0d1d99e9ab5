/// HTML as text, element by element, everything escaped.
///
/// One thread at a time.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// `text` for the inside of an element or of a quoted attribute. Control characters and bytes that
/// are no UTF-8 become visible (cli::escape); line breaks stay.
[[nodiscard]] std::string escape_html(std::string_view text);

/// Attributes of an element. Values are escaped, names are not: they are constants of the program.
using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

class Markup {
 public:
  /// Begins an element that close() ends.
  Markup& open(const char* tag, Attributes attributes = {});
  /// Begins a <section> with its heading and a line on how to read it.
  Markup& begin_section(const std::string& id, std::string_view title, std::string_view note);
  /// Ends the innermost element.
  Markup& close();
  /// A whole element.
  Markup& leaf(const char* tag, Attributes attributes, std::string_view text);
  Markup& leaf(const char* tag, std::string_view text) { return leaf(tag, {}, text); }
  Markup& text(std::string_view text);
  /// \param markup  a constant of the program: nothing is escaped.
  Markup& raw(std::string_view markup);

  [[nodiscard]] const std::string& str() const noexcept { return text_; }

 private:
  std::string text_;
  std::vector<const char*> open_;
};

}  // namespace bench
