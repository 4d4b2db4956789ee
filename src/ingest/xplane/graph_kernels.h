// SPDX-License-Identifier: Apache-2.0
//
// Which instruction each kernel of a CUDA graph is of. XLA puts stretches of a program into graphs, and the trace then
// names the graph instead of the instruction ("command_buffer_3"). A kernel is called after the first instruction it was
// compiled for, and instructions that compute the same share it: three equal layers run one kernel three times. So
// kernels are laid beside the program's schedule, in the order in which they are in the graph. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap::ingest {

// A name without what tells it from its like: "gemm_fusion_dot" of gemm_fusion_dot.8 and of the kernel gemm_fusion_dot_8.
std::string kernel_stem(std::string_view name);

struct GraphMatch {
  std::vector<std::string_view> instructions;  // one for each kernel
  std::size_t named = 0;                       // of these, those that are called as their instruction
  std::size_t end = 0;                         // of the schedule: where the next graph may begin
};

// Kernels of libraries (cuDNN's) are called as they like: each belongs to an instruction that no kernel is called after,
// or to the one before it. Nothing when none is called after an instruction, or the kernels are not a stretch of the
// schedule that begins at or after `from`.
std::optional<GraphMatch> match_graph(std::span<const std::string_view> kernels,
                                      std::span<const std::string_view> schedule, std::size_t from);

}  // namespace joulemap::ingest
