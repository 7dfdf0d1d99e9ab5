/// Adds to the library's messages the flags that set the options they name.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <chunkio/bottleneck.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

namespace cli {

/// \param setting  an option of the library as a program writes it: "overwrite", "num_threads = 8".
/// \return what does the same on the command line: "--force", "--threads 8"; empty if nothing does.
///         Pure.
[[nodiscard]] std::string flag_of(std::string_view setting);

/// \param text     what the library says.
/// \param setting  an option in it.
/// \return the text with the flag behind the option: "set overwrite (--force)"; as it was if there
///         is none, or the text does not name the option. Pure.
[[nodiscard]] std::string with_flag(std::string text, std::string_view setting);

/// The message of the library with flags behind the options that it names.
/// \param accepted  whether the command that runs knows the flag; others are not named. Empty: it
///                  knows all.
[[nodiscard]] std::string with_flags(
    const chunkio::Error& error, const std::function<bool(const std::string& flag)>& accepted = {});

/// What would help, with the flag for it.
[[nodiscard]] std::string with_flag(const chunkio::Suggestion& suggestion);

/// DatasetInfo::why_no_labels with the flag for what it proposes. Pure.
[[nodiscard]] std::string why_no_labels(const chunkio::DatasetInfo& info);

/// "none", and why, if a dataset looks like labels. Pure. \pre no labels.
[[nodiscard]] std::string no_labels_text(const chunkio::DatasetInfo& info);

}  // namespace cli
