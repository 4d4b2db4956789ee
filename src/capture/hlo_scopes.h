// SPDX-License-Identifier: Apache-2.0
//
// HloScopes: maps instructions of XLA programs to scopes. JAX reports the source operation of each instruction
// (jmc_hlo_op). While an instruction runs on a GPU, XLA pushes NVTX ranges that name it. Owned by the Capture;
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "capture/scope_table.h"

namespace joulemap::capture {

// Parsed text of an NVTX range of XLA, such as "Thunk:#hlo_op=fusion.3,hlo_module=jit_step#".
struct HloRange {
  std::string_view module;       // empty: the module of the enclosing range
  std::string_view instruction;  // empty: the whole module
};
// Returns nullopt when XLA did not push the range.
std::optional<HloRange> parse_hlo_range(std::string_view text);
// Whether the range belongs to XLA's compiler, such as "XlaPass:#name=fusion,module=jit_step#".
bool is_xla_compiler_range(std::string_view text);

class HloScopes {
 public:
  // Limit of stored instructions. Instructions beyond it become regions with the instruction's name.
  static constexpr std::size_t kMaxInstructions = 1'000'000;

  // An empty module announces that every program that runs will be registered here.
  void register_op(std::string_view module, std::string_view instruction, std::string_view op_name);

  // Whether all programs are registered and this one is not: XLA then runs it to measure its speed (autotuning).
  bool is_autotuning(std::string_view module);

  // Returns the scope mode > phase > module > op; nullopt for an instruction that was never registered.
  std::optional<std::uint32_t> find_scope(std::string_view module, std::string_view instruction, ScopeTable& scopes);

 private:
  struct Program {
    std::map<std::string, std::string, std::less<>> op_names_by_instruction;  // by instruction
    std::map<std::string, std::uint32_t, std::less<>> scopes_by_instruction;  // scopes of instructions that have run
    bool is_training = false;
  };

  std::mutex lock_;
  std::map<std::string, Program, std::less<>> programs_by_module_;
  std::size_t instruction_count_ = 0;
  bool are_all_programs_registered_ = false;
};

}  // namespace joulemap::capture
