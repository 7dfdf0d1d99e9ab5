/// Options that come as Python keywords.
#pragma once

#include <string>
#include <type_traits>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chunkio/error.hpp>
#include <chunkio/option_names.hpp>

namespace chunkio::python {

namespace nb = nanobind;

/// An option with a closed set of values, by the name of one. `name` is that of the option.
template <class Option>
Option named(const std::string& name, const std::string& given) {
  try {
    return from_string<Option>(given);
  } catch (const Error& error) {
    throw error.with_message(name + ": " + error.what());
  }
}

/// Reads keywords into the members of an option struct, each once; those that were not given leave
/// the struct's defaults. Options with a closed set of values are strings.
class Keywords {
 public:
  /// The caller's dictionary stays as it is.
  explicit Keywords(const nb::dict& keywords)
      : left_(nb::cast<nb::dict>(keywords.attr("copy")())) {}

  template <class T>
  Keywords& read(const char* name, T& value) {
    if (!left_.contains(name)) return *this;
    const nb::object given = left_[name];
    left_.attr("pop")(name);
    if constexpr (std::is_enum_v<T>) {
      value = named<T>(name, cast<std::string>(name, given));
    } else {
      value = cast<T>(name, given);
    }
    return *this;
  }
  /// An option of its own kind, as it was given; None if it was not.
  [[nodiscard]] nb::object take(const char* name) { return left_.attr("pop")(name, nb::none()); }
  /// \throws TypeError for a keyword that nobody read.
  void require_none_left() const {
    for (const auto& [name, value] : left_) {
      throw nb::type_error(("there is no option " + shown(name)).c_str());
    }
  }

 private:
  template <class T>
  static T cast(const char* name, const nb::object& given) {
    try {
      return nb::cast<T>(given);
    } catch (const std::bad_cast&) {
      throw nb::type_error((std::string(name) + " cannot be " + shown(given)).c_str());
    }
  }
  /// As Python writes it: any object has that, and it is always text.
  static std::string shown(nb::handle object) { return nb::cast<std::string>(nb::repr(object)); }

  nb::dict left_;
};

}  // namespace chunkio::python
