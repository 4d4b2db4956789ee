// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_member_copies.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/output_file.h"
#include "base/small_file.h"
#include "bundle/bundle_file.h"

namespace joulemap::bundle {

namespace fs = std::filesystem;

Result<BundleMemberCopies> BundleMemberCopies::create(std::span<const formats::TarMember> members) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "joulemap-bundle-XXXXXX").string();
  if (error) return Error{ErrorCode::io, "the folder for temporary files is missing", "set TMPDIR"};
  if (::mkdtemp(folder.data()) == nullptr) return system_error("create", folder, errno);
  BundleMemberCopies copies(std::move(folder));
  for (const formats::TarMember& member : members) {
    Status added = Done{};
    if (member.name.starts_with(kRecordingMemberFolder)) {
      // Digits of equal length: the paths sort in the order of the members.
      added = copies.add(fmt::format("{:04}.joule", copies.recording_copies_.size()), member, copies.recording_copies_);
    } else if (member.name == kLibraryMemberName) {
      added = copies.add("library", member, copies.library_copies_);
    }
    if (!added) return std::move(added).error();
  }
  return copies;
}

BundleMemberCopies::BundleMemberCopies(BundleMemberCopies&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      recording_copies_(std::move(other.recording_copies_)),
      library_copies_(std::move(other.library_copies_)) {}

BundleMemberCopies::~BundleMemberCopies() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Status BundleMemberCopies::add(const std::string& file_name, const formats::TarMember& member,
                               std::vector<MemberCopy>& copies) {
  std::string path = folder_ + "/" + file_name;
  if (Status written = replace_file(path, member.content); !written) return written;
  copies.push_back({std::move(path), member.name});
  return Done{};
}

std::vector<std::string> BundleMemberCopies::recording_paths() const {
  std::vector<std::string> paths;
  for (const MemberCopy& copy : recording_copies_) paths.push_back(copy.path);
  return paths;
}

std::vector<std::string> BundleMemberCopies::recording_names() const {
  std::vector<std::string> names;
  for (const MemberCopy& copy : recording_copies_) names.push_back(copy.member_name);
  return names;
}

std::string BundleMemberCopies::library_path() const {
  return library_copies_.empty() ? std::string() : library_copies_.front().path;
}

std::string BundleMemberCopies::replace_paths_with_names(std::string text) const {
  for (const std::vector<MemberCopy>* const copies : {&recording_copies_, &library_copies_}) {
    for (const MemberCopy& copy : *copies) {
      for (std::size_t at = text.find(copy.path); at != std::string::npos;
           at = text.find(copy.path, at + copy.member_name.size()))
        text.replace(at, copy.path.size(), copy.member_name);
    }
  }
  return text;
}

Diagnostics BundleMemberCopies::replace_paths_with_names(const Diagnostics& diagnostics) const {
  Diagnostics renamed;
  for (const Diagnostic& note : diagnostics.list())
    renamed.add(Diagnostic{note.code, note.count, replace_paths_with_names(note.message),
                           replace_paths_with_names(note.remedy)});
  return renamed;
}

Error BundleMemberCopies::replace_paths_with_names(Error error) const {
  error.message = replace_paths_with_names(std::move(error.message));
  error.remedy = replace_paths_with_names(std::move(error.remedy));
  return error;
}

}  // namespace joulemap::bundle
