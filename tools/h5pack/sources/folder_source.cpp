#include "h5pack/sources/folder_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/image/image_file.hpp"
#include "h5pack/sources/image_files.hpp"

namespace h5pack {

namespace {

namespace fs = std::filesystem;
using chunkio::Error;
using chunkio::ErrorCode;

/// Device and inode: what a folder is, by whatever path it was reached.
using FolderId = std::pair<::dev_t, ::ino_t>;

Error cannot_examine(const std::string& path, const std::error_code& why) {
  const std::string way_out = why == std::errc::filename_too_long
                                  ? "start in a folder nearer to it, or shorten names"
                                  : "give a folder of images that you may read";
  return Error(
      why == std::errc::no_such_file_or_directory ? ErrorCode::not_found : ErrorCode::io_failed,
      "cannot examine " + cli::quote(path) + ": " + why.message() + "; " + way_out);
}

FolderId folder_id(const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw cannot_examine(path, {errno, std::generic_category()});
  }
  return {status.st_dev, status.st_ino};
}

struct FolderContents {
  std::vector<std::string> folders;  // Names, sorted by bytes.
  std::vector<std::string> images;   // Names, sorted by bytes.
  std::int64_t not_regular = 0;      // Pipes, sockets and devices named like images.
};

FolderContents read_folder(const std::string& path) {
  std::error_code error;
  fs::directory_iterator entries(path, error);
  FolderContents contents;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    // Of what the folder itself says, where it does: only links are followed by a call each.
    std::error_code unknown;
    if (entries->is_directory(unknown)) {
      contents.folders.push_back(name);
    } else if (unknown && unknown != std::errc::no_such_file_or_directory &&
               unknown != std::errc::not_a_directory &&
               unknown != std::errc::too_many_symbolic_link_levels) {
      throw cannot_examine(path + "/" + name, unknown);
    } else if (format_by_name(name)) {
      // A link to nothing is an image that cannot be read.
      const bool dangling = entries->is_symlink(unknown) && !entries->is_other(unknown);
      if (entries->is_regular_file(unknown) || dangling) {
        contents.images.push_back(name);
      } else {
        ++contents.not_regular;
      }
    }
  }
  if (error) {
    throw Error(
        error == std::errc::no_such_file_or_directory ? ErrorCode::not_found : ErrorCode::io_failed,
        "cannot list folder " + cli::quote(path) + ": " + error.message() +
            "; give a folder of images that you may read");
  }
  std::sort(contents.folders.begin(), contents.folders.end());
  std::sort(contents.images.begin(), contents.images.end());
  return contents;
}

void note_not_regular(std::int64_t count, std::vector<std::string>& notes) {
  if (count == 1) {
    notes.push_back("1 entry named like an image is not a regular file and is skipped");
  } else if (count > 1) {
    notes.push_back(std::to_string(count) +
                    " entries named like images are not regular files and are skipped");
  }
}

/// All folders below (and with) `root`, each once, in the order of sorted(os.walk(...)): by path
/// bytes.
std::vector<std::pair<std::string, FolderContents>> walk(const std::string& root,
                                                         std::set<FolderId> visited) {
  std::vector<std::pair<std::string, FolderContents>> found;
  std::vector<std::string> pending{root};
  while (!pending.empty()) {
    const std::string path = std::move(pending.back());
    pending.pop_back();
    // A link back to a folder above, or to one already listed, would otherwise be walked for ever.
    if (!visited.insert(folder_id(path)).second) continue;
    FolderContents contents = read_folder(path);
    // Reversed, so that folders are visited in sorted order and of two paths to one the first
    // counts.
    for (auto it = contents.folders.rbegin(); it != contents.folders.rend(); ++it) {
      pending.push_back(path + "/" + *it);
    }
    found.emplace_back(path, std::move(contents));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return found;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// One folder that holds class folders, or images only.
struct Root {
  std::string name;  // Of the split.
  std::string path;
  FolderContents contents;
};

std::vector<std::string> class_union(const std::vector<Root>& roots) {
  std::vector<std::string> names;
  for (const Root& root : roots) {
    names.insert(names.end(), root.contents.folders.begin(), root.contents.folders.end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Lists one root. `class_sizes` counts the images of each class over all roots.
Split list_root(const Root& root, const std::vector<std::string>& class_names,
                std::vector<std::int64_t>& class_sizes, std::vector<std::string>& notes) {
  Split split;
  split.name = root.name;
  std::vector<std::string> paths;
  const FolderContents& top = root.contents;
  std::int64_t not_regular = top.not_regular;
  if (top.folders.empty()) {
    for (const std::string& name : top.images) paths.push_back(root.path + "/" + name);
  } else {
    if (!top.images.empty()) {
      notes.push_back(std::to_string(top.images.size()) + " images beside the class folders of " +
                      cli::quote(root.path) + " belong to no class and are skipped");
    }
    std::vector<std::int64_t> labels;
    for (const std::string& class_name : top.folders) {
      const auto label = std::lower_bound(class_names.begin(), class_names.end(), class_name) -
                         class_names.begin();
      for (const auto& [folder, contents] :
           walk(root.path + "/" + class_name, {folder_id(root.path)})) {
        not_regular += contents.not_regular;
        for (const std::string& name : contents.images) paths.push_back(folder + "/" + name);
      }
      class_sizes[static_cast<std::size_t>(label)] +=
          static_cast<std::int64_t>(paths.size() - labels.size());
      labels.resize(paths.size(), label);
    }
    split.fields.push_back(make_field("labels", labels));
  }
  note_not_regular(not_regular, notes);
  split.images = std::make_unique<ImageFiles>(std::move(paths));
  return split;
}

void check_found(const std::string& dir, const Listing& listing,
                 const std::vector<std::int64_t>& class_sizes) {
  const std::string kinds = " (.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp)";
  std::vector<std::string> empty;
  for (std::size_t i = 0; i < class_sizes.size(); ++i) {
    if (class_sizes[i] == 0) empty.push_back(listing.class_names[i]);
  }
  if (!empty.empty() && empty.size() < class_sizes.size()) {
    throw Error(ErrorCode::not_found, "no images" + kinds + " in class folder " + first_few(empty) +
                                          " of " + cli::quote(dir) +
                                          ": add some, or remove the folder");
  }
  for (const Split& split : listing.splits) {
    if (split.images->count() > 0) continue;
    throw Error(ErrorCode::not_found,
                "no images" + kinds + " in " +
                    cli::quote(split.name.empty() ? dir : dir + "/" + split.name) +
                    ": give a folder of images, or of class folders with images");
  }
}

}  // namespace

std::vector<std::string> list_flat_folder(const std::string& dir) {
  std::vector<std::string> paths;
  for (const std::string& name : read_folder(dir).images) paths.push_back(dir + "/" + name);
  return paths;
}

Listing list_folder(const std::string& dir_argument) {
  const std::string dir = without_trailing_slashes(dir_argument);
  struct ::stat status {};
  if (::stat(dir.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::not_found,
                cli::quote(dir) + " is a file, not a folder; for a manifest use h5pack csv");
  }
  FolderContents top = read_folder(dir);

  Listing listing;
  std::vector<Root> roots;
  for (const char* name : {"train", "val", "test"}) {
    if (std::binary_search(top.folders.begin(), top.folders.end(), name)) {
      roots.push_back({name, dir + "/" + name, {}});
    }
  }
  if (roots.size() >= 2) {
    listing.output_is_folder = true;
    if (top.folders.size() > roots.size() || !top.images.empty()) {
      listing.notes.push_back("only the splits train/, val/ and test/ of " + cli::quote(dir) +
                              " are packed; everything beside them is skipped");
    }
    for (Root& root : roots) root.contents = read_folder(root.path);
  } else {
    if (roots.size() == 1) {
      listing.notes.push_back(cli::quote(roots[0].name) +
                              " is taken as a class: splits are two or more of "
                              "train/, val/ and test/ (for this one alone give its own path)");
    }
    roots = {{"", dir, std::move(top)}};
  }
  listing.class_names = class_union(roots);
  std::vector<std::int64_t> class_sizes(listing.class_names.size(), 0);
  for (const Root& root : roots) {
    listing.splits.push_back(list_root(root, listing.class_names, class_sizes, listing.notes));
  }
  check_found(dir, listing, class_sizes);
  listing.source = {{"kind", "folder"}, {"path", dir}};
  return listing;
}

const SourceKind kFolderSource = {
    .name = "folder",
    .what = "a folder of images; its class folders give the labels",
    .input_name = "DIR",
    .input = "Folder of class folders, of images, or of train/, val/ and test/",
    .output = "File to write; a folder if DIR has splits",
    .examples = {"h5pack folder photos/ -o train.h5 --resize 64 --center-crop 64x64",
                 "h5pack folder photos/ -o train.h5 --resume --on-error skip --report bad.jsonl"},
    .append_examples = {"h5pack append train.h5 folder more-photos/ -o larger.h5",
                        "h5pack append train.h5 folder more-photos/ -o larger.h5 --order shuffled"},
    .options = {},
    .is_at =
        [](const std::string& path) {
          std::error_code unknown;
          return fs::is_directory(path, unknown);
        },
    .list = [](const SourceRequest& request) { return list_folder(request.input); },
    .list_again = [](const RecordedOrigin& origin) { return list_folder(origin.path); }};

}  // namespace h5pack
