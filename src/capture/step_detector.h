// SPDX-License-Identifier: Apache-2.0
//
// StepDetector: infers steps and epochs of a training or serving loop from its events, for programs that do not report
// them. Pure; the owner serializes access.
//
// A training step ends with the parameter update; the next one begins at the next batch or model call after it. So
// gradient-accumulation micro-batches form one step. Without gradients, every model call (or the batch before it) is a
// step. An epoch begins with a new data iterator whose batches are trained on; a validation between two batches of the
// same iterator begins none.
//
// In a program that trains, a step without backward pass is an evaluation step (validation, sampled tokens, rollouts).
// Whether it was one shows at its end, and whether the program trains shows at its first backward pass. That pass also
// shows which calls before it belong to the first training step: of a siamese network, a teacher, an episode.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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
  loader_exhausted,                              // a batch was requested, but the iterator has no further one
};
inline constexpr std::uint8_t kTrainingLoopEventCount = 11;

class StepDetector {
 public:
  struct StepDetection {
    bool begins_step = false;        // a step begins with this event
    std::uint64_t joined_steps = 0;  // the latest steps, this many, belong to the step before them
    std::uint64_t evaluation_steps =
        0;  // this many steps, the last ones before evaluation_end_ns, were evaluation steps
    std::int64_t evaluation_end_ns = 0;
    std::optional<std::int64_t> epoch_time_ns;  // start of a new epoch: its loader_iterator_created event
  };
  // `iterator`, of loader_batch_requested and loader_exhausted: the number of loader_iterator_created events before its
  // first batch; 0: of all so far.
  StepDetection on_training_loop_event(TrainingLoopEvent event, std::int64_t time_ns, std::uint64_t iterator = 0);
  // Whether the current step is an evaluation step if it ends now.
  bool is_in_evaluation_step() const { return is_training_ && is_inference_only(); }
  // Whether the current step, which is not the first one, only requested a batch: probably there was none.
  bool is_in_empty_step() const {
    return has_ended_step_ && has_requested_batch_ && !has_called_model_ && !has_run_backward_ &&
           !has_updated_parameters_;
  }

 private:
  void begin_step_if_due(TrainingLoopEvent event, std::int64_t time_ns, StepDetection& detection);
  bool begins_step_at_call(TrainingLoopEvent event) const;
  bool joins_previous_step(TrainingLoopEvent event) const;
  void add_call(TrainingLoopEvent event);
  void add_backward_pass(StepDetection& detection);
  void add_iterator(std::int64_t time_ns);
  void add_asked_iterator(std::uint64_t iterator);
  void end_iterator(std::uint64_t iterator);
  bool is_inference_only() const { return has_begun_step_ && has_called_model_ && !has_run_backward_; }

  bool has_begun_step_ = false;          // a step has begun
  bool has_ended_step_ = false;          // another one has ended before
  bool has_requested_batch_ = false;     // a batch was requested in this step
  bool has_updated_parameters_ = false;  // parameters were updated in this step
  bool has_called_model_ = false;        // the model was called in this step
  bool has_called_with_gradients_ = false;
  bool was_last_call_with_gradients_ = false;
  bool has_called_only_teachers_ = false;  // all calls of this step were of teachers
  bool has_run_backward_ = false;          // a backward pass ran in this step
  bool follows_evaluation_ = false;        // the previous step was an evaluation step
  bool follows_inference_ = false;         // the previous step only called without gradients, before training
  bool is_training_ = false;               // a backward pass ran in any step
  std::uint64_t steps_before_training_ = 0;
  // Before training: the number of latest steps that belong to the step before them if a backward pass follows, and the
  // begin of that step.
  std::uint64_t joinable_steps_ = 0;
  std::int64_t joined_step_begin_ns_ = 0;

  // Iterators are numbered from 1; one that was created before the recording has the number 0.
  struct IteratorCreation {
    std::uint64_t iterator;
    std::int64_t time_ns;
  };
  static constexpr std::size_t kMaxRememberedIterators = 64;
  std::uint64_t created_iterators_ = 0;
  std::vector<IteratorCreation> iterator_creations_;  // the latest ones
  std::vector<std::uint64_t> asked_iterators_;        // asked for a batch since the last parameter update
  std::uint64_t newest_trained_iterator_ = 0;         // the newest one whose batches were trained on
};

}  // namespace joulemap::capture
