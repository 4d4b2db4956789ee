// SPDX-License-Identifier: Apache-2.0
//
// Maps each kernel of a CUDA graph to its HLO instruction. XLA puts parts of a program into graphs, and the trace then
// names the graph ("command_buffer_3") instead of the instruction. A kernel has the name of the first instruction it
// was compiled for, and equal instructions share it: three equal layers run one kernel three times. So the kernels are
// aligned with the program's schedule, in the order in which they are in the graph. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::ingest {

// A name without its number: "gemm_fusion_dot" for gemm_fusion_dot.8 and for the kernel gemm_fusion_dot_8.
std::string name_without_number(std::string_view name);

struct KernelGraphMatch {
  std::vector<std::string_view> instruction_by_kernel;  // one per kernel
  std::size_t name_match_count = 0;                     // kernels whose name matches their instruction
  std::size_t schedule_end_index = 0;                   // index in the schedule where the next graph may begin
};

// `kernels` and `schedule` are names. Library kernels (cuDNN) have arbitrary names: each belongs to an instruction that
// no kernel is named after, or to the instruction before it. Returns nullopt if no kernel is named after an
// instruction, or the kernels are not a contiguous part of the schedule at or after `schedule_begin`.
std::optional<KernelGraphMatch> match_graph_to_schedule(std::span<const std::string_view> kernels,
                                                        std::span<const std::string_view> schedule,
                                                        std::size_t schedule_begin);

}  // namespace joulemap::ingest
