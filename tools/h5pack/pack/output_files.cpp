#include "h5pack/pack/output_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace h5pack {

namespace {

namespace fs = std::filesystem;
using chunkio::Error;
using chunkio::ErrorCode;

/// A file is written under its name with one of these.
constexpr std::array<const char*, 3> kSuffixes = {"", ".partial", ".partial.journal"};

void check_writable(const std::string& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw Error(ErrorCode::io_failed, "cannot write in folder " + cli::quote(folder) + ": " +
                                        std::generic_category().message(errno) +
                                        "; choose another place with -o");
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void check_file(const std::string& path, bool force) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  if (fs::is_directory(status)) {
    throw Error(ErrorCode::io_failed, cli::quote(path) +
                                          " is a folder; name a file in it, such as " +
                                          cli::quote((fs::path(path) / "images.h5").string()));
  }
  if (fs::exists(fs::symlink_status(path, unknown)) && !force) {
    throw Error(ErrorCode::output_exists,
                cli::quote(path) + " exists; --force replaces it, or choose another place with -o");
  }
  // Renaming onto /dev/null, say, would put a file in its place.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorCode::output_exists,
                cli::quote(path) + " is not a regular file and is not replaced; choose another -o");
  }
}

/// Calls visit(check), which is to call check(input) for each of the inputs. \throws Error
/// output_exists if writing `path` would replace one of them, or what it is a link to.
template <class Visit>
void check_is_no_input(const std::string& path, Visit visit) {
  struct ::stat output {};
  if (::lstat(path.c_str(), &output) != 0) return;
  visit([&](const std::string& input) {
    for (const auto look : {&::lstat, &::stat}) {
      struct ::stat status {};
      if (look(input.c_str(), &status) == 0 && status.st_dev == output.st_dev &&
          status.st_ino == output.st_ino) {
        throw Error(ErrorCode::output_exists,
                    cli::quote(path) + " is one of the inputs; choose another -o");
      }
    }
  });
}

void check_is_no_input(const std::string& path, const Listing& listing) {
  check_is_no_input(path, [&](const auto& check) {
    check(listing.source.at("path").get<std::string>());
    for (const Split& split : listing.splits) split.images->visit_inputs(check);
  });
}

/// \throws Error not_found, io_failed if no file can be made beside `path`.
void check_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) {
    throw Error(ErrorCode::not_found, "no folder " + cli::quote(folder) +
                                          " for the output: make it first, or choose another -o");
  }
  check_writable(folder);
}

/// Which entry of which folder a file written to `path` becomes.
fs::path entry_of(const std::string& path) {
  std::error_code unknown;
  return fs::weakly_canonical(fs::absolute(folder_of(path), unknown), unknown) /
         fs::path(path).filename();
}

/// \throws Error invalid_argument if writing `report` would replace a packed file, or what it is
///         written to first.
void check_is_no_output(const std::vector<std::string>& outputs, const std::string& report) {
  for (const std::string& output : outputs) {
    for (const char* suffix : kSuffixes) {
      if (entry_of(output + suffix) != entry_of(report)) continue;
      throw Error(ErrorCode::invalid_argument, "--report must not be " + cli::quote(report) +
                                                   ", where images are packed to; name another");
    }
  }
}

/// The nearest folder above (or at) `path` that exists.
fs::path existing_ancestor(fs::path path) {
  std::error_code unknown;
  while (!path.empty() && !fs::exists(path, unknown)) {
    if (!path.has_parent_path() || path.parent_path() == path) return ".";
    path = path.parent_path();
  }
  return path.empty() ? fs::path(".") : path;
}

}  // namespace

std::vector<std::string> output_paths(const Listing& listing, const std::string& out,
                                      const std::optional<Shard>& shard) {
  std::vector<std::string> paths;
  for (const Split& split : listing.splits) {
    paths.push_back(listing.output_is_folder ? (fs::path(out) / (split.name + ".h5")).string()
                                             : out);
    if (shard) paths.back() = chunkio::shard_path(paths.back(), shard->index, shard->count);
  }
  return paths;
}

void check_output_file(const std::string& out, const std::string& input, bool force) {
  check_folder_of(out);
  check_file(out, force);
  for (const char* suffix : kSuffixes) {
    check_is_no_input(out + suffix, [&](const auto& check) { check(input); });
  }
}

void check_outputs(const Listing& listing, const std::string& out, const std::string& report,
                   bool force, const std::optional<Shard>& shard) {
  if (listing.output_is_folder) {
    const std::string extension = fs::path(out).extension().string();
    if ((extension == ".h5" || extension == ".hdf5") && !fs::is_directory(out)) {
      throw Error(ErrorCode::invalid_argument,
                  cli::quote(out) +
                      " would be a folder, with a file for each split: name a folder, such as -o " +
                      cli::quote(fs::path(out).replace_extension().string()));
    }
    const fs::path existing = existing_ancestor(out);
    if (!fs::is_directory(existing)) {
      throw Error(
          ErrorCode::io_failed,
          cli::quote(existing.string()) +
              " is a file, but this source has splits and needs a folder: choose another -o");
    }
    check_writable(existing.string());
  } else {
    check_folder_of(out);
  }
  const std::vector<std::string> outputs = output_paths(listing, out, shard);
  for (const std::string& path : outputs) {
    check_file(path, force);
    for (const char* suffix : kSuffixes) check_is_no_input(path + suffix, listing);
  }
  if (report.empty()) return;
  check_is_no_input(report, listing);
  check_is_no_output(outputs, report);
}

OutputFolder::OutputFolder(const std::string& path) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path folder = path; !folder.empty() && !fs::exists(folder, error);
       folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  std::reverse(missing.begin(), missing.end());
  for (const fs::path& folder : missing) {
    // "a/b/" yields "a/b/" and "a/b": the second finds it made.
    if (fs::create_directory(folder, error)) made_.push_back(folder.string());
    if (error) {
      throw Error(ErrorCode::io_failed,
                  "cannot make folder " + cli::quote(folder.string()) + ": " + error.message());
    }
  }
}

OutputFolder::~OutputFolder() {
  // rmdir refuses folders with anything in them, which is just what is wanted.
  for (auto it = made_.rbegin(); it != made_.rend(); ++it) ::rmdir(it->c_str());
}

}  // namespace h5pack
