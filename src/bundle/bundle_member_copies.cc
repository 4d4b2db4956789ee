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
    Status copy_status = Done{};
    if (member.name.starts_with(kRecordingMemberFolder)) {
      // Digits of equal length: the paths sort in the order of the members.
      copy_status =
          copies.add(fmt::format("{:04}.joule", copies.recording_copies_.size()), member, copies.recording_copies_);
    } else if (member.name == kLibraryMemberName) {
      copy_status = copies.add("library", member, copies.library_copies_);
    }
    if (!copy_status) return std::move(copy_status).error();
  }
  return copies;
}

BundleMemberCopies::BundleMemberCopies(BundleMemberCopies&& other_copies) noexcept
    : folder_(std::exchange(other_copies.folder_, {})),
      recording_copies_(std::move(other_copies.recording_copies_)),
      library_copies_(std::move(other_copies.library_copies_)) {}

BundleMemberCopies::~BundleMemberCopies() {
  std::error_code ignored_error;
  if (!folder_.empty()) fs::remove_all(folder_, ignored_error);
}

Status BundleMemberCopies::add(const std::string& file_name, const formats::TarMember& member,
                               std::vector<MemberCopy>& copies) {
  std::string path = folder_ + "/" + file_name;
  if (Status write_status = replace_file(path, member.content); !write_status) return write_status;
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
      for (std::size_t position = text.find(copy.path); position != std::string::npos;
           position = text.find(copy.path, position + copy.member_name.size()))
        text.replace(position, copy.path.size(), copy.member_name);
    }
  }
  return text;
}

Diagnostics BundleMemberCopies::replace_paths_with_names(const Diagnostics& diagnostics) const {
  Diagnostics renamed_diagnostics;
  for (const Diagnostic& note : diagnostics.list())
    renamed_diagnostics.add(Diagnostic{note.code, note.count, replace_paths_with_names(note.message),
                                       replace_paths_with_names(note.remedy)});
  return renamed_diagnostics;
}

Error BundleMemberCopies::replace_paths_with_names(Error error) const {
  error.message = replace_paths_with_names(std::move(error.message));
  error.remedy = replace_paths_with_names(std::move(error.remedy));
  return error;
}

}  // namespace joulemap::bundle
