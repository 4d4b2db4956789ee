// SPDX-License-Identifier: Apache-2.0
//
// MemberCopies: private copies of the recordings and the kernel library of a bundle, in a new folder that is removed
// with the object. `bundle` and `verify` compute statements from such copies only, so both read the same bytes, in the
// same order, whatever lies beside the original files. The names of the copies never come from a bundle.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/tar.h"
#include "model/diagnostics.h"

namespace joulemap::bundle {

class MemberCopies {
 public:
  // Copies the members that are recordings, in their order, and kLibraryMemberName; ignores all others.
  static Result<MemberCopies> create(std::span<const formats::TarMember> members);
  MemberCopies(MemberCopies&& other) noexcept;
  MemberCopies& operator=(MemberCopies&&) = delete;
  ~MemberCopies();

  // Sorted, in the order of the members.
  std::vector<std::string> recording_paths() const;
  std::vector<std::string> recording_names() const;
  std::string library_path() const;  // empty: there is none

  // Replaces the paths of copies by the names of members, so that the same members give the same messages. The folder
  // has a random name: no other text of a message is replaced.
  std::string hide_paths(std::string text) const;
  Diagnostics hide_paths(const Diagnostics& diagnostics) const;
  Error hide_paths(Error error) const;

 private:
  struct Copy {
    std::string path;
    std::string member_name;
  };
  explicit MemberCopies(std::string folder) : folder_(std::move(folder)) {}
  Status add(const std::string& file_name, const formats::TarMember& member, std::vector<Copy>& copies);

  std::string folder_;  // empty: moved from
  std::vector<Copy> recordings_;
  std::vector<Copy> libraries_;  // at most one
};

}  // namespace joulemap::bundle
