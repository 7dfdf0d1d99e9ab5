#include "h5/file_contents.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"

namespace chunkio::h5 {
namespace {

constexpr std::size_t kMaxObjects = 10000;
constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxDescribed = 12;

using ObjectId = UniqueId<&H5Oclose>;
/// File number and address (or token): what makes an object itself, by whatever link it was
/// reached.
using ObjectKey = std::pair<unsigned long, std::array<unsigned char, 16>>;

ObjectKey object_key(hid_t object, const std::string& path) {
  ObjectKey key{};
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  check_status(H5Oget_info3(object, &info, H5O_INFO_BASIC), "inspect an object of", path);
  std::copy(std::begin(info.token.__data), std::end(info.token.__data), key.second.begin());
#else
  H5O_info_t info;
  check_status(H5Oget_info2(object, &info, H5O_INFO_BASIC), "inspect an object of", path);
  for (std::size_t i = 0; i < sizeof(info.addr); ++i) {
    key.second[i] = static_cast<unsigned char>(info.addr >> (8 * i));
  }
#endif
  key.first = info.fileno;
  return key;
}

struct LinkNames {
  std::vector<std::string> names;
  std::size_t room = 0;
  bool failed = false;
};

/// H5L_iterate_t; collects hard links. No exception may pass through libhdf5's frames.
herr_t collect_hard_link(hid_t /*group*/, const char* name, const H5L_info_t* info,
                         void* data) noexcept {
  auto& links = *static_cast<LinkNames*>(data);
  try {
    if (info->type != H5L_TYPE_HARD) return 0;
    if (links.names.size() >= links.room) return 1;
    links.names.emplace_back(name);
    return 0;
  } catch (...) {
    links.failed = true;
    return -1;
  }
}

class Walk {
 public:
  using Visit = std::function<void(hid_t, const std::string&, H5I_type_t)>;

  Walk(const std::string& path, const Visit& visit, std::vector<DamagedObject>& damaged)
      : path_(path), visit_(visit), damaged_(damaged) {}

  /// \param name  of the group; empty for the root.
  void visit_group(hid_t group, const std::string& name, int depth) {
    LinkNames links;
    links.room = kMaxObjects - std::min(kMaxObjects, num_objects_);
    const herr_t status =
        H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, &collect_hard_link, &links);
    if (links.failed) throw std::bad_alloc();
    const std::string action = "list group /" + printable(name) + " of";
    if (check_status(status, action, path_) > 0) complete_ = false;
    for (const std::string& link : links.names) {
      if (++num_objects_ > kMaxObjects) {
        complete_ = false;
        return;
      }
      visit_link(group, link, name.empty() ? link : name + "/" + link, depth);
    }
  }

  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  void visit_link(hid_t group, const std::string& link, const std::string& name, int depth) try {
    const ObjectId object(check_id(H5Oopen(group, link.c_str(), H5P_DEFAULT),
                                   "open " + printable(name) + " of", path_));
    if (!seen_.insert(object_key(object.get(), path_)).second) return;
    const H5I_type_t type = H5Iget_type(object.get());
    visit_(object.get(), name, type);
    if (type != H5I_GROUP) return;
    if (depth >= kMaxDepth) {
      complete_ = false;
    } else {
      visit_group(object.get(), name, depth + 1);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::hdf5_failed) throw;
    damaged_.push_back({name, error.what()});
  }

  const std::string& path_;
  const Visit& visit_;
  std::vector<DamagedObject>& damaged_;
  std::set<ObjectKey> seen_;
  std::size_t num_objects_ = 0;
  bool complete_ = true;
};

std::string_view link_kind(H5L_type_t type) {
  switch (type) {
    case H5L_TYPE_SOFT:
      return "a soft link";
    case H5L_TYPE_EXTERNAL:
      return "an external link";
    default:
      return "a user-defined link";
  }
}

}  // namespace

std::string DatasetSummary::describe() const {
  std::string text = printable(name) + " " + type;
  if (shape) text += " " + shape->to_string();
  if (!refusal.empty()) text += " (" + refusal + ")";
  return text;
}

DatasetSummary summarize(const DatasetId& dataset, const std::string& name, const std::string& path,
                         External external) {
  DatasetSummary summary;
  summary.name = name;
  const std::string action = "inspect dataset " + printable(name) + " of";
  const TypeId type(check_id(H5Dget_type(dataset.get()), action, path));
  summary.dtype = element_type(type.get());
  summary.type = describe_type(type.get());

  // Before the dataspace: that of a virtual dataset can make libhdf5 open its source files.
  const ListId creation(check_id(H5Dget_create_plist(dataset.get()), action, path));
  if (external == External::refused && H5Pget_layout(creation.get()) == H5D_VIRTUAL) {
    summary.refusal = "virtual dataset: its data lies in other datasets";
    return summary;
  }
  if (external == External::refused &&
      check_status(H5Pget_external_count(creation.get()), action, path) > 0) {
    summary.refusal = "external storage: its data lies in another file";
  }

  const SpaceId space(check_id(H5Dget_space(dataset.get()), action, path));
  const H5S_class_t space_class = H5Sget_simple_extent_type(space.get());
  if (space_class == H5S_NULL) return summary;
  const int rank = check_status(H5Sget_simple_extent_ndims(space.get()), action, path);
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  check_status(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), action, path);
  std::vector<std::int64_t> shape;
  for (int axis = 0; axis < rank; ++axis) {
    const hsize_t dim = dims[static_cast<std::size_t>(axis)];
    if (!std::in_range<std::int64_t>(dim)) return summary;
    shape.push_back(static_cast<std::int64_t>(dim));
  }
  if (shape.size() <= Shape::kMaxRank) summary.shape = Shape(shape);
  return summary;
}

std::string FileContents::describe() const {
  std::vector<std::string> all;
  for (const DatasetSummary& dataset : datasets) all.push_back(dataset.describe());
  for (const DamagedObject& object : damaged) {
    all.push_back(printable(object.name) + " (cannot be opened)");
  }
  if (all.empty()) return "no datasets";
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMaxDescribed); ++i) {
    text += (i == 0 ? "" : ", ") + all[i];
  }
  if (all.size() > kMaxDescribed) {
    text += " and " + std::to_string(all.size() - kMaxDescribed) + " more";
  }
  return text;
}

bool visit_objects(const FileId& file, const std::string& path,
                   const std::function<void(hid_t, const std::string&, H5I_type_t)>& visit,
                   std::vector<DamagedObject>& damaged) {
  const GroupId root(
      check_id(H5Gopen2(file.get(), "/", H5P_DEFAULT), "open the root group of", path));
  visit(root.get(), "", H5I_GROUP);
  Walk walk(path, visit, damaged);
  walk.visit_group(root.get(), "", 0);
  std::sort(damaged.begin(), damaged.end(),
            [](const DamagedObject& a, const DamagedObject& b) { return a.name < b.name; });
  return walk.complete();
}

FileContents list_datasets(const FileId& file, const std::string& path, External external) {
  FileContents contents;
  contents.complete = visit_objects(
      file, path,
      [&](hid_t /*object*/, const std::string& name, H5I_type_t type) {
        if (type != H5I_DATASET) return;
        contents.datasets.push_back(
            summarize(open_dataset(file, name, path), name, path, external));
      },
      contents.damaged);
  std::sort(contents.datasets.begin(), contents.datasets.end(),
            [](const DatasetSummary& a, const DatasetSummary& b) { return a.name < b.name; });
  return contents;
}

LinkState follow_links(const FileId& file, const std::string& name, const std::string& path,
                       External external, std::string& refusal) {
  const std::string action = "look up " + printable(name) + " in";
  std::string prefix;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (end == begin) {
      ++begin;
      continue;
    }
    // What was reached so far must be a group to hold anything.
    if (!prefix.empty()) {
      const ObjectId object(
          check_id(H5Oopen(file.get(), prefix.c_str(), H5P_DEFAULT), action, path));
      if (H5Iget_type(object.get()) != H5I_GROUP) return LinkState::absent;
      prefix += '/';
    }
    prefix.append(name, begin, end - begin);
    if (check_status(H5Lexists(file.get(), prefix.c_str(), H5P_DEFAULT), action, path) == 0) {
      return LinkState::absent;
    }
    H5L_info_t info;
    check_status(H5Lget_info(file.get(), prefix.c_str(), &info, H5P_DEFAULT), action, path);
    if (info.type != H5L_TYPE_HARD && external == External::allowed) {
      // A link that leads nowhere is as good as none. libhdf5 itself stops at loops.
      if (check_status(H5Oexists_by_name(file.get(), prefix.c_str(), H5P_DEFAULT), action, path) ==
          0) {
        return LinkState::absent;
      }
    } else if (info.type != H5L_TYPE_HARD) {
      refusal = printable(prefix) + " is " + std::string(link_kind(info.type));
      return LinkState::refused;
    }
    begin = end + 1;
  }
  return prefix.empty() ? LinkState::absent : LinkState::present;
}

Error refused(const std::string& path, const std::string& what) {
  return Error(ErrorCode::refused_by_policy,
               path + ": " + what +
                   ", and only what lies in the file itself is read; name the dataset that has the "
                   "data, copy it all into one file, or set the option allow_external",
               "allow_external");
}

std::string without_leading_slash(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('/'), name.size()));
}

std::string find_named(const FileId& file, const std::string& wanted, const FileContents& contents,
                       const std::string& path, External external) {
  std::string name = without_leading_slash(wanted);
  std::string refusal;
  const LinkState state = follow_links(file, name, path, external, refusal);
  if (state == LinkState::refused) throw refused(path, refusal);
  if (state == LinkState::absent) {
    throw Error(ErrorCode::not_found, "no dataset " + printable(wanted) + " in " + path +
                                          "; it holds " + contents.describe());
  }
  if (!is_dataset(file, name, path)) {
    throw Error(ErrorCode::unsupported, printable(name) + " in " + path +
                                            " is not a dataset; the file holds " +
                                            contents.describe());
  }
  return name;
}

bool is_dataset(const FileId& file, const std::string& name, const std::string& path) {
  const ObjectId object(check_id(H5Oopen(file.get(), name.c_str(), H5P_DEFAULT),
                                 "open " + printable(name) + " of", path));
  return H5Iget_type(object.get()) == H5I_DATASET;
}

DatasetId open_dataset(const FileId& file, const std::string& name, const std::string& path,
                       hid_t access) {
  return DatasetId(check_id(H5Dopen2(file.get(), name.c_str(), access),
                            "open dataset " + printable(name) + " of", path));
}

}  // namespace chunkio::h5
