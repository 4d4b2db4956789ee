// SPDX-License-Identifier: Apache-2.0
//
// Anonymizer: replaces the names of a machine and its users in a recording that is to be published. Within a recording
// and all files of one run, a name always gets the same replacement, so that references stay consistent. Replacements
// differ between runs, so two shared recordings do not show that they come from one machine. One owner, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"

namespace joulemap::recording {

class Anonymizer {
 public:
  // Collect the names to replace: the host of a source and users from the home folders in its command, or a given user
  // name. Call them for all sources before the first replacement.
  void collect_names(const RecordingSource& source);
  void add_user_name(std::string_view user);

  RecordingSource anonymize_source(const RecordingSource& source);
  // Replaces GPU UUIDs, host names and user names, and removes the folders of paths.
  std::string anonymize_text(std::string_view text) const;
  // Like anonymize_text(), but keeps the folders of paths: ONNX nodes have names like "/layer1/conv/Conv".
  std::string anonymize_name(std::string_view name) const;

 private:
  std::string anonymize_host(const RecordingSource& source) const;
  std::vector<std::string> anonymize_command(const std::vector<std::string>& words) const;
  std::string replace_uuids(std::string text) const;
  std::string replace_names(std::string_view text) const;

  std::string recording_id_;
  std::map<std::string, std::string, std::greater<>>
      name_replacements_;  // by host or user name; descending, so that a name precedes its prefixes
  std::vector<std::string> imported_hosts_;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> anonymous_pids_;  // replacements by boot ID and PID
};

}  // namespace joulemap::recording
