// SPDX-License-Identifier: Apache-2.0
//
// TraceNames: the meaning of each name in a trace, parsed once: PyTorch's own annotations and operations, modules by
// class and number. Built before scopes are assigned; then read-only.
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

#include "ingest/trace.h"
#include "scopes/scope_interner.h"

namespace joulemap::ingest {

enum class NameRole : std::uint8_t {
  plain,
  step,
  optimizer,
  zero_grad,
  dataloader,
  communication,
  redundant,              // annotation by the framework for work that other events already show
  autograd_engine,        // runs a node of the autograd graph
  gradient_accumulation,  // accumulates the gradient of a parameter
  backward,               // a function that waits for the backward pass
};

struct NameMeaning {
  NameRole role = NameRole::plain;
  bool has_scope = false;     // TraceName::scope has a phase or a module
  std::uint32_t text = 0;     // text number in ScopeInterner: name of the scope
  std::uint32_t phase = 0;    // text + 1 of the phase of a name with a scope, or 0
  std::uint32_t module = 0;   // text + 1 of the module of a name with a scope, or 0
  std::uint32_t tensors = 0;  // text + 1 of the input tensors of any operation, or 0 if unknown
  std::uint64_t number = 0;   // number of a step: 3 of ProfilerStep#3
};

class TraceNames {
 public:
  TraceNames(const Trace& trace, ScopeInterner& scope_interner);

  std::size_t size() const { return name_meanings_.size(); }
  const NameMeaning& operator[](std::uint32_t name) const {
    return name < name_meanings_.size() ? name_meanings_[name] : default_meaning_;
  }
  // Returns the scope that the name itself contains, inside `enclosing_region` (0: the root). If the name has no phase,
  // the scope is inside `phase`, unless that is 0.
  std::uint32_t scope(std::uint32_t name, std::uint32_t enclosing_region, std::uint32_t phase) const;
  // Returns the scope of the operation inside `parent_scope`, with its input tensors where they are known.
  std::uint32_t op_scope(std::uint32_t parent_scope, std::uint32_t name) const;
  std::string_view text(std::uint32_t name) const;

 private:
  const Trace& trace_;
  ScopeInterner& scope_interner_;
  std::uint32_t mode_text_ = 0;  // text number of "train" if a name's own phase belongs to training, else "inference"
  std::vector<NameMeaning> name_meanings_;
  NameMeaning default_meaning_;
};

}  // namespace joulemap::ingest
