// SPDX-License-Identifier: Apache-2.0
//
// StepDetector: infers steps and epochs of a training or serving loop from its events, for programs that do not report
// them. Pure; the owner serializes access.
//
// A training step ends with the parameter update; the next one begins at the next batch or model call after it. So
// gradient-accumulation micro-batches form one step. Without gradients, every model call (or the batch before it) is a
// step. An epoch begins with a new data iterator whose batches are trained on.
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

class StepDetector {
 public:
  struct Detection {
    bool begins_step = false;                   // a step begins with this event
    std::optional<std::int64_t> epoch_time_ns;  // start of a new epoch: its loader_new event
  };
  Detection on_event(LoopEvent event, std::int64_t time_ns);

 private:
  bool begin_step_if_due();

  bool has_begun_step_ = false;          // a step has begun
  bool has_updated_parameters_ = false;  // parameters were updated in this step
  bool has_called_model_ = false;        // the model was called in this step
  bool has_run_backward_ = false;        // a backward pass ran in this step
  bool is_training_ = false;             // a backward pass ran in any step
  std::optional<std::int64_t> new_iterator_ns_;
};

}  // namespace joulemap::capture
