// SPDX-License-Identifier: Apache-2.0
//
// LoopThread: what one thread of the program is doing: the modules it is in, the phase it is in, how far the graph of its
// forward pass has been given to modules. Each thread has its own.
//
// Between phases a thread does something, too: what follows the model's call is the loss, what follows a batch is input.
// Such a stretch ("between") is entered when one phase ends and left when the next begins. A region of the program that was
// opened meanwhile lies on top of it and is left alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "place_names.h"

struct _object;  // Python's

namespace joulemap::python {

struct ModuleCall {
  _object* module;  // borrowed; only compared
  std::size_t depth;
  std::uint32_t node;
  bool entered;  // a wrapper and what it wraps are one place, entered once
};

struct LoopThread {
  std::vector<ModuleCall> calls;
  std::size_t outermost = 0;                  // calls below it belong to what called for a backward pass
  std::vector<std::size_t> outermost_before;  // of the passes around this one
  Pass pass = Pass::forward;
  Mode mode = Mode::unknown;
  bool trains = false;     // it has asked for a backward pass
  bool is_silent = false;  // the present outermost call is being traced or transformed: nothing is told of it
  bool carefully = false;  // a mode of the program's would see what is asked of tensors
  bool is_between = false;
  std::size_t between_depth = 0;

  // Nodes of the graph below this number belong to a module already.
  std::uint64_t first_free = 0;
  // Which numbers ended a stretch, and whose it is; kept while operations are looked at.
  bool keeps_stretches = false;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> stretches;

  static LoopThread& current();

  bool is_outermost() const { return calls.size() <= outermost; }
  std::uint32_t enclosing() const { return is_outermost() ? 0 : calls.back().node; }

  void end_between();
  void begin_between(jmc_place place);
  void begin_pass(jmc_place place);
  void end_pass();
  void leave_all();  // what was entered for modules and between phases
  void forget();     // in the child of a fork
};

}  // namespace joulemap::python
