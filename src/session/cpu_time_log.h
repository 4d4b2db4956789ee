// SPDX-License-Identifier: Apache-2.0
//
// CpuTimeLog: CPU time of the machine and of the recorded command, or of a watched process in its place, as channels of a
// recording, so that a report can tell its share of a package's energy from its neighbours'. The machine's is read five
// times a second for ten minutes, so that a report can find out what either draws, and once a second ever after; where
// there are so many CPUs that a read takes long, more seldom. The command's, which means to search /proc, every ten
// seconds. Owner: the recorder; main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/channel.h"
#include "model/sample.h"

namespace joulemap::session {

class CpuTimeLog {
 public:
  // `first`: the number of the first of its channels. `watched`: a process that is recorded instead of a command.
  explicit CpuTimeLog(std::uint32_t first, std::optional<pid_t> watched = {}) : first_(first), watched_(watched) {}

  static std::vector<Channel> channels();
  std::vector<Sample> read();
  // When the next read is due.
  std::int64_t next_ns() const { return next_ns_; }
  // The next read searches for the command's processes, whatever the time.
  void search_now() { next_search_ns_ = 0; }

 private:
  std::uint32_t first_;
  std::optional<pid_t> watched_;
  std::int64_t begun_ns_ = 0;
  std::int64_t next_ns_ = 0;
  std::int64_t next_search_ns_ = 0;
};

}  // namespace joulemap::session
