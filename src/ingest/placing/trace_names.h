// SPDX-License-Identifier: Apache-2.0
//
// TraceNames: what the names of a trace mean, each looked at once: PyTorch's own annotations and operations, modules by
// class and number. Made before events are placed; then read only.
//
//   ProfilerStep#3                                      step 3
//   Optimizer.step#SGD.step                             the phase optimizer, of SGD
//   enumerate(DataLoader)#_Single...__next__            the phase dataloader
//   nccl:all_reduce, record_param_comms, c10d::...      communication
//   autograd::engine::evaluate_function: MulBackward0   a node of the autograd graph, MulBackward0
//   nn.Module: Conv2d_3                                 the fourth Conv2d that was called
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/placing/place_tree.h"
#include "ingest/trace.h"

namespace joulemap::ingest {

enum class NameRole : std::uint8_t {
  plain,
  step,
  optimizer,
  zero_grad,
  dataloader,
  communication,
  unspoken,  // the framework's own, of which is known in other ways
  engine,    // runs a node of the autograd graph
  gradient,  // adds up a parameter's gradients
  backward,  // a function that waits for the backward pass
};

struct NameMeaning {
  NameRole role = NameRole::plain;
  bool has_place = false;     // see TraceName::place
  std::uint32_t text = 0;     // of PlaceTree: how the place is called
  std::uint32_t phase = 0;    // of a name with a place: the text + 1, or 0
  std::uint32_t module = 0;   // likewise
  std::uint32_t tensors = 0;  // likewise, of any operation whose inputs are told
  std::uint64_t number = 0;   // of a step
};

class TraceNames {
 public:
  TraceNames(const Trace& trace, PlaceTree& tree);

  std::size_t size() const { return meanings_.size(); }
  const NameMeaning& operator[](std::uint32_t name) const { return name < meanings_.size() ? meanings_[name] : none_; }
  // The place that a name itself tells, within the root or a region, or, where it tells no phase, within `phase`.
  std::uint32_t place(std::uint32_t name, std::uint32_t outside, std::uint32_t phase) const;
  // The operation of that name, with its inputs where they are told, within a place.
  std::uint32_t op_in(std::uint32_t container, std::uint32_t name) const;
  std::string_view text(std::uint32_t name) const;

 private:
  const Trace& trace_;
  PlaceTree& tree_;
  std::uint32_t mode_ = 0;  // text: where one name that carries its place is of a training, all of them are
  std::vector<NameMeaning> meanings_;
  NameMeaning none_;
};

}  // namespace joulemap::ingest
