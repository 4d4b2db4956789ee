// SPDX-License-Identifier: Apache-2.0
//
// CpuTimeLog: CPU time of the machine and of the recorded command (or an attached process), as channels of a recording.
// With it a report separates the command's share of package energy from that of other processes. Machine time is read
// five times a second for ten minutes, so that a report can estimate idle power and power per busy CPU, and once a
// second after that; less often where many CPUs make a read slow. The command's time requires a search of /proc and is
// read every ten seconds. That of an attached process is read with the machine's, because it cannot be read after the
// process has ended; only its descendants are searched for. Owner: the recorder; main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/channel.h"
#include "model/sample.h"
#include "session/command_cpu_time.h"

namespace joulemap::session {

class CpuTimeLog {
 public:
  // `first_channel`: index of the log's first channel in the recording. `attached_pid`: attached process that is
  // recorded instead of a command.
  explicit CpuTimeLog(std::uint32_t first_channel, std::optional<pid_t> attached_pid = {});

  static std::vector<Channel> make_channels();
  std::vector<Sample> read_samples();
  // When the next read is due, in ns of CLOCK_MONOTONIC.
  std::int64_t next_read_ns() const { return next_read_ns_; }
  // Makes the next read search /proc for the command's processes, even if ten seconds have not passed.
  void search_processes_at_next_read();

 private:
  // None if it is not due or unknown.
  std::optional<double> read_process_cpu_s(std::int64_t now_ns);

  std::uint32_t first_channel_;
  std::optional<AttachedProcessCpuTime> attached_cpu_time_;
  std::int64_t first_read_ns_ = 0;
  std::int64_t next_read_ns_ = 0;
  std::int64_t next_search_ns_ = 0;
};

}  // namespace joulemap::session
