// SPDX-License-Identifier: Apache-2.0
//
// StepInference: where the steps and epochs of a training or serving loop lie, told by what happens in it, when the program
// does not say so itself. Pure; whoever owns it sees to threads.
//
// A step of training ends with the update of the parameters: it begins when the next batch is asked for, or the model is
// called, after that. So micro-batches whose gradients are added up are one step. Without gradients every call of the model
// (or the batch it follows) is a step. An epoch begins with a new iterator over the data that is then trained on.
#pragma once

#include <cstdint>
#include <optional>

namespace joulemap::capture {

enum class LoopEvent : std::uint8_t {
  loader_new,
  loader_next,
  forward_train,
  forward_infer,
  forward_done,
  backward,
  optimizer_done,
};
inline constexpr std::uint8_t kLoopEvents = 7;

class StepInference {
 public:
  struct Found {
    bool step = false;                          // a step begins with this event
    std::optional<std::int64_t> epoch_time_ns;  // an epoch began then
  };
  Found on(LoopEvent event, std::int64_t time_ns);

  // What the thread that runs the loop is doing while it is in no module and no phase of its own.
  enum class Between : std::uint8_t { nothing, input, loss, other };
  Between between() const { return between_; }

 private:
  bool begin_step_if_due();

  bool any_ = false;             // a step has begun
  bool updated_ = false;         // parameters were updated in this step
  bool forwarded_ = false;       // the model was called in this step
  bool differentiated_ = false;  // and a backward pass ran
  bool trains_ = false;          // one ever did
  std::optional<std::int64_t> new_iterator_ns_;
  Between between_ = Between::nothing;
};

}  // namespace joulemap::capture
