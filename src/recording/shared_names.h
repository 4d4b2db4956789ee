// SPDX-License-Identifier: Apache-2.0
//
// SharedNames: what the names of a machine and its users become in a recording that is given away. The same name becomes the
// same everywhere in a recording and in all files of one run, so that what belongs together still does; it differs from one
// run to the next, so that two shared recordings do not show that they come from one machine. One owner, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/recorded.h"

namespace joulemap::recording {

class SharedNames {
 public:
  // Learns the names in a source: its host, and users by the folders in its command. All sources come before the
  // first use. `user`: one that is known from elsewhere.
  void learn(const RecordingSource& source);
  void learn_user(std::string_view user);

  RecordingSource source(const RecordingSource& source);
  // UUIDs of GPUs, host names and user names replaced, folders of paths left out.
  std::string text(std::string_view text) const;
  // The same without a look at paths: ONNX's nodes are called "/layer1/conv/Conv".
  std::string name(std::string_view name) const;

 private:
  std::string host(const RecordingSource& source) const;
  std::vector<std::string> command(const std::vector<std::string>& words) const;
  std::string with_other_uuids(std::string text) const;
  std::string with_other_words(std::string_view text) const;

  std::string recording_id_;
  std::map<std::string, std::string, std::greater<>>
      words_;  // hosts and users, the longest first, and what they become
  std::vector<std::string> imported_hosts_;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> pids_;  // by boot
};

}  // namespace joulemap::recording
