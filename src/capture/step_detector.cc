// SPDX-License-Identifier: Apache-2.0
#include "capture/step_detector.h"

#include <utility>

namespace joulemap::capture {

// Begins a step if the current one is over: after a parameter update, or when it only called the model. A step with a
// backward pass continues until the update.
void StepDetector::begin_step_if_due(StepDetection& detection) {
  if (has_begun_step_ && !has_updated_parameters_ && !is_inference_only()) return;
  follows_evaluation_ = is_in_evaluation_step();
  if (follows_evaluation_) detection.evaluation_steps = 1;
  if (has_begun_step_ && !is_training_) ++steps_before_training_;
  has_begun_step_ = true;
  has_requested_batch_ = has_updated_parameters_ = has_called_model_ = has_called_with_gradients_ =
      has_called_only_teachers_ = has_run_backward_ = false;
  detection.begins_step = true;
}

// Whether a model call begins a step if the current one is over. Two model calls in a row form one step when a backward
// pass follows both (siamese network, discriminator). That shows only later. So once a program has trained, calls with
// gradients count as training; before, the first calls of several modules count as one step (encoder and decoder).
bool StepDetector::begins_step_at_call(TrainingLoopEvent event) const {
  if (!has_called_model_ || has_updated_parameters_) return true;
  if (!is_training_)
    return event != TrainingLoopEvent::forward_begin_with_gradients_of_other_module || !has_called_with_gradients_;
  if (event == TrainingLoopEvent::forward_begin_without_gradients) return true;
  if (event == TrainingLoopEvent::forward_begin_without_gradients_of_teacher) return !has_called_only_teachers_;
  if (has_called_with_gradients_ || has_called_only_teachers_) return false;
  // After several calls without gradients, one with gradients ends the evaluation. After a single one it does if both
  // are of one module; otherwise the first may be a teacher's. Two calls for one batch belong together.
  return follows_evaluation_ ||
         (event == TrainingLoopEvent::forward_begin_with_gradients_after_inference && !has_requested_batch_);
}

void StepDetector::add_backward_pass(StepDetection& detection) {
  if (!is_training_) detection.evaluation_steps = steps_before_training_;
  has_run_backward_ = is_training_ = true;
}

StepDetector::StepDetection StepDetector::on_training_loop_event(TrainingLoopEvent event, std::int64_t time_ns) {
  StepDetection detection;
  switch (event) {
    case TrainingLoopEvent::loader_iterator_created:
      new_iterator_ns_ = time_ns;
      break;
    case TrainingLoopEvent::loader_batch_requested:
      begin_step_if_due(detection);
      has_requested_batch_ = true;
      break;
    case TrainingLoopEvent::forward_begin_with_gradients:
    case TrainingLoopEvent::forward_begin_with_gradients_after_inference:
    case TrainingLoopEvent::forward_begin_with_gradients_of_other_module:
    case TrainingLoopEvent::forward_begin_without_gradients:
    case TrainingLoopEvent::forward_begin_without_gradients_of_teacher: {
      if (begins_step_at_call(event)) begin_step_if_due(detection);
      const bool is_teacher = event == TrainingLoopEvent::forward_begin_without_gradients_of_teacher;
      has_called_only_teachers_ = is_teacher && (!has_called_model_ || has_called_only_teachers_);
      has_called_model_ = true;
      if (is_teacher || event == TrainingLoopEvent::forward_begin_without_gradients) break;
      has_called_with_gradients_ = true;
      std::swap(detection.epoch_time_ns, new_iterator_ns_);
      break;
    }
    case TrainingLoopEvent::forward_end:
      break;
    case TrainingLoopEvent::backward:
      add_backward_pass(detection);
      break;
    case TrainingLoopEvent::optimizer_step_end:
      has_updated_parameters_ = true;
      break;
  }
  return detection;
}

}  // namespace joulemap::capture
