// SPDX-License-Identifier: Apache-2.0
//
// HloPlaces: where the instructions of programs that XLA compiled belong. JAX tells for each of them which operation of the
// source it comes from (jmc_hlo_op); while it runs on a GPU, XLA pushes NVTX ranges that name it. Owner: the Capture; any
// thread, under a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "capture/place_table.h"

namespace joulemap::capture {

// "Thunk:#hlo_op=fusion.3,hlo_module=jit_step#": what a range of XLA's says.
struct HloRange {
  std::string_view module;       // empty: that of the range around it
  std::string_view instruction;  // empty: all of the module
};
// Nothing when the range is somebody else's.
std::optional<HloRange> read_hlo_range(std::string_view text);
// "XlaPass:#name=fusion,module=jit_step#": what XLA does before a program can run.
bool is_of_xla_compiler(std::string_view text);

class HloPlaces {
 public:
  // Past that nothing is learned: what is not known is a region of the instruction's name.
  static constexpr std::size_t kMostInstructions = 1'000'000;

  // An empty module says only that all programs that run are going to be told.
  void learn(std::string_view module, std::string_view instruction, std::string_view op_name);

  // Programs are told, and not this one: XLA runs it to find out how fast it is.
  bool is_trial(std::string_view module);

  // mode > phase > module > op; nothing for an instruction that nobody told of.
  std::optional<std::uint32_t> place_of(std::string_view module, std::string_view instruction, PlaceTable& places);

 private:
  struct Program {
    std::map<std::string, std::string, std::less<>> op_names;    // by instruction
    std::map<std::string, std::uint32_t, std::less<>> resolved;  // of those that have run
    bool trains = false;
  };

  std::mutex lock_;
  std::map<std::string, Program, std::less<>> programs_;
  std::size_t instructions_ = 0;
  bool all_are_told_ = false;
};

}  // namespace joulemap::capture
