// SPDX-License-Identifier: Apache-2.0
//
// Parses the texts of NVTX ranges that frameworks push themselves. Other texts give nullopt. Pure; views point into the
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace joulemap::ingest {

// "aten::conv2d, seq = 12, op_id = 40, sizes = [[1, 3], []]", from torch.autograd.profiler.emit_nvtx.
struct TorchRange {
  std::string_view name;
  std::optional<std::uint32_t> sequence_number;
  bool is_backward = false;  // runs a node of the autograd graph
};
std::optional<TorchRange> parse_torch_range(std::string_view text);

// "TSL:Thunk:#name=jit(step)/jvp(Net)/Dense_0/dot_general,hlo_op=fusion.3#", from XLA.
struct XlaRange {
  std::string_view op_name;  // empty if missing
  std::string_view instruction;
};
std::optional<XlaRange> parse_xla_range(std::string_view text);

}  // namespace joulemap::ingest
