// SPDX-License-Identifier: Apache-2.0
//
// StepDetector: infers steps and epochs of a training or serving loop from its events, for programs that do not report
// them. Pure; the owner serializes access.
//
// A training step ends with the parameter update; the next one begins at the next batch or model call after it. So
// gradient-accumulation micro-batches form one step. Without gradients, every model call (or the batch before it) is a
// step. An epoch begins with a new data iterator whose batches are trained on.
//
// In a program that trains, a step without backward pass is an evaluation step (validation, sampled tokens, rollouts).
// Whether it was one shows at its end, and whether the program trains shows at its first backward pass.
#pragma once

#include <cstdint>
#include <optional>

namespace joulemap::capture {

enum class TrainingLoopEvent : std::uint8_t {
  loader_iterator_created,
  loader_batch_requested,
  forward_begin_with_gradients,
  forward_begin_without_gradients,
  forward_end,
  backward,
  optimizer_step_end,
  forward_begin_with_gradients_after_inference,  // of the module that was called last, without gradients
  forward_begin_with_gradients_of_other_module,  // than those that the thread has called in this step
  forward_begin_without_gradients_of_teacher,    // of a module that was called so in an earlier training step
};
inline constexpr std::uint8_t kTrainingLoopEventCount = 10;

class StepDetector {
 public:
  struct StepDetection {
    bool begins_step = false;                   // a step begins with this event
    std::uint64_t evaluation_steps = 0;         // this many ended steps, the latest ones, were evaluation steps
    std::optional<std::int64_t> epoch_time_ns;  // start of a new epoch: its loader_iterator_created event
  };
  StepDetection on_training_loop_event(TrainingLoopEvent event, std::int64_t time_ns);
  // Whether the current step is an evaluation step if it ends now.
  bool is_in_evaluation_step() const { return is_training_ && is_inference_only(); }

 private:
  void begin_step_if_due(StepDetection& detection);
  bool begins_step_at_call(TrainingLoopEvent event) const;
  void add_backward_pass(StepDetection& detection);
  bool is_inference_only() const { return has_begun_step_ && has_called_model_ && !has_run_backward_; }

  bool has_begun_step_ = false;          // a step has begun
  bool has_requested_batch_ = false;     // a batch was requested in this step
  bool has_updated_parameters_ = false;  // parameters were updated in this step
  bool has_called_model_ = false;        // the model was called in this step
  bool has_called_with_gradients_ = false;
  bool has_called_only_teachers_ = false;  // all calls of this step were of teachers
  bool has_run_backward_ = false;          // a backward pass ran in this step
  bool follows_evaluation_ = false;        // the previous step was an evaluation step
  bool is_training_ = false;               // a backward pass ran in any step
  std::uint64_t steps_before_training_ = 0;
  std::optional<std::int64_t> new_iterator_ns_;
};

}  // namespace joulemap::capture
