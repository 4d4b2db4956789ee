// SPDX-License-Identifier: Apache-2.0
//
// LiveSteps: counts the steps, without evaluation steps, that the processes of a running recording have reported so
// far. Each call reads only what was appended to the parts since the last call. Owned by the recorder; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace joulemap::recording {

class LiveSteps {
 public:
  explicit LiveSteps(std::string folder) : folder_(std::move(folder)) {}

  // Steps of the process that reported most: ranks of one run report the same steps. Parts that cannot be read count
  // nothing; the join reports them.
  std::uint64_t count_steps();

 private:
  struct PartProgress {
    std::uint64_t read_until_offset = 0;  // after the last whole chunk that was read
    std::uint64_t step_count = 0;         // evaluation steps included
    std::uint64_t evaluation_step_count = 0;
  };
  static void read_appended_chunks(const std::string& path, PartProgress& part);

  std::string folder_;
  std::map<std::string, PartProgress> part_progress_;  // by path
};

}  // namespace joulemap::recording
