// SPDX-License-Identifier: Apache-2.0
//
// BundleMemberCopies: private copies of the recordings and the kernel library of a bundle, in a new folder that is
// removed with the object. `bundle` and `verify` compute statements from such copies only, so both read the same bytes,
// in the same order, whatever lies beside the original files. The names of the copies never come from a bundle.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/tar.h"
#include "model/diagnostics.h"

namespace joulemap::bundle {

class BundleMemberCopies {
 public:
  // Copies the members that are recordings, in their order, and kLibraryMemberName; ignores all others.
  static Result<BundleMemberCopies> create(std::span<const formats::TarMember> members);
  BundleMemberCopies(BundleMemberCopies&& other_copies) noexcept;
  BundleMemberCopies& operator=(BundleMemberCopies&&) = delete;
  ~BundleMemberCopies();

  // Sorted, in the order of the members.
  std::vector<std::string> recording_paths() const;
  std::vector<std::string> recording_names() const;
  std::string library_path() const;  // empty: there is none

  // Replaces the paths of copies by the names of members, so that the same members give the same messages. The folder
  // has a random name: no other text of a message is replaced.
  std::string replace_paths_with_names(std::string text) const;
  Diagnostics replace_paths_with_names(const Diagnostics& diagnostics) const;
  Error replace_paths_with_names(Error error) const;

 private:
  struct MemberCopy {
    std::string path;
    std::string member_name;
  };
  explicit BundleMemberCopies(std::string folder) : folder_(std::move(folder)) {}
  Status add(const std::string& file_name, const formats::TarMember& member, std::vector<MemberCopy>& copies);

  std::string folder_;  // empty: moved from
  std::vector<MemberCopy> recording_copies_;
  std::vector<MemberCopy> library_copies_;  // at most one
};

}  // namespace joulemap::bundle
