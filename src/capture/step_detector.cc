// SPDX-License-Identifier: Apache-2.0
#include "capture/step_detector.h"

#include <algorithm>

namespace joulemap::capture {
namespace {

bool is_call_without_gradients(TrainingLoopEvent event) {
  return event == TrainingLoopEvent::forward_begin_without_gradients ||
         event == TrainingLoopEvent::forward_begin_without_gradients_of_teacher;
}

}  // namespace

// Begins a step if the current one is over: after a parameter update, or when it only called the model. A step with a
// backward pass continues until the update.
void StepDetector::begin_step_if_due(TrainingLoopEvent event, std::int64_t time_ns, StepDetection& detection) {
  if (has_begun_step_ && !has_updated_parameters_ && !is_inference_only()) return;
  if (joins_previous_step(event)) {
    ++joinable_steps_;
  } else {
    joinable_steps_ = 0;
    joined_step_begin_ns_ = time_ns;
  }
  follows_inference_ = has_called_model_ && !has_called_with_gradients_;
  follows_evaluation_ = is_in_evaluation_step();
  if (follows_evaluation_) {
    detection.evaluation_steps = 1;
    detection.evaluation_end_ns = time_ns;
  }
  if (has_begun_step_ && !is_training_) ++steps_before_training_;
  has_ended_step_ = has_begun_step_;
  has_begun_step_ = true;
  has_requested_batch_ = has_updated_parameters_ = has_called_model_ = has_called_with_gradients_ =
      was_last_call_with_gradients_ = has_called_only_teachers_ = has_run_backward_ = false;
  detection.begins_step = true;
}

// Before training, a further call begins a step, because it may be inference. Whether the step that begins with this
// event belongs to the previous one if a backward pass follows.
bool StepDetector::joins_previous_step(TrainingLoopEvent event) const {
  if (is_training_ || !has_called_model_ || has_updated_parameters_) return false;
  if (event == TrainingLoopEvent::loader_batch_requested) return false;
  if (has_called_with_gradients_) return true;
  // The previous step called without gradients: the same module, or a teacher. Several such calls are an evaluation.
  if (is_call_without_gradients(event)) return false;
  if (has_requested_batch_) return true;
  return event != TrainingLoopEvent::forward_begin_with_gradients_after_inference && !follows_inference_;
}

// Whether a model call begins a step if the current one is over. Two model calls in a row form one step when a backward
// pass follows both (siamese network, discriminator). That shows only later. So once a program has trained, calls with
// gradients count as training; before, the first calls of several modules count as one step (encoder and decoder).
bool StepDetector::begins_step_at_call(TrainingLoopEvent event) const {
  if (!has_called_model_ || has_updated_parameters_) return true;
  if (!is_training_)
    return event != TrainingLoopEvent::forward_begin_with_gradients_of_other_module || !has_called_with_gradients_;
  // Teachers may be called after their student.
  if (is_call_without_gradients(event) && was_last_call_with_gradients_) return false;
  if (event == TrainingLoopEvent::forward_begin_without_gradients_of_teacher && has_called_with_gradients_)
    return false;
  if (event == TrainingLoopEvent::forward_begin_without_gradients) return true;
  if (event == TrainingLoopEvent::forward_begin_without_gradients_of_teacher) return !has_called_only_teachers_;
  if (has_called_with_gradients_ || has_called_only_teachers_) return false;
  // After several calls without gradients, one with gradients ends the evaluation. After a single one it does if both
  // are of one module; otherwise the first may be a teacher's. Two calls for one batch belong together.
  return follows_evaluation_ ||
         (event == TrainingLoopEvent::forward_begin_with_gradients_after_inference && !has_requested_batch_);
}

void StepDetector::add_call(TrainingLoopEvent event) {
  const bool is_teacher = event == TrainingLoopEvent::forward_begin_without_gradients_of_teacher;
  has_called_only_teachers_ = is_teacher && (!has_called_model_ || has_called_only_teachers_);
  has_called_model_ = true;
  was_last_call_with_gradients_ = !is_call_without_gradients(event);
  has_called_with_gradients_ = has_called_with_gradients_ || was_last_call_with_gradients_;
}

void StepDetector::add_backward_pass(StepDetection& detection) {
  if (!is_training_) {
    detection.joined_steps = joinable_steps_;
    detection.evaluation_steps = steps_before_training_ - joinable_steps_;
    detection.evaluation_end_ns = joined_step_begin_ns_;
  }
  has_run_backward_ = is_training_ = true;
  // Batches of older iterators continue their epoch, whatever was iterated in between.
  const auto newest = std::ranges::max_element(asked_iterators_);
  if (newest == asked_iterators_.end() || *newest <= newest_trained_iterator_) return;
  newest_trained_iterator_ = *newest;
  const auto creation = std::ranges::find(iterator_creations_, *newest, &IteratorCreation::iterator);
  if (creation != iterator_creations_.end()) detection.epoch_time_ns = creation->time_ns;
}

void StepDetector::add_iterator(std::int64_t time_ns) {
  iterator_creations_.push_back({++created_iterators_, time_ns});
  if (iterator_creations_.size() > kMaxRememberedIterators) iterator_creations_.erase(iterator_creations_.begin());
}

void StepDetector::add_asked_iterator(std::uint64_t iterator) {
  if (iterator == 0) iterator = created_iterators_;
  if (std::ranges::find(asked_iterators_, iterator) != asked_iterators_.end()) return;
  asked_iterators_.push_back(iterator);
  if (asked_iterators_.size() > kMaxRememberedIterators) asked_iterators_.erase(asked_iterators_.begin());
}

// The last batches of an exhausted iterator may still be trained on: some loaders fetch in advance. But an iterator that
// ends without a backward pass was a validation's if the model was called without one, or if another iterator's batch
// waits for its backward pass.
void StepDetector::end_iterator(std::uint64_t iterator) {
  if (iterator == 0) iterator = created_iterators_;
  add_asked_iterator(iterator);
  if (iterator <= newest_trained_iterator_) return;
  const bool was_validation = follows_evaluation_ || follows_inference_ || is_in_evaluation_step();
  if (was_validation || asked_iterators_.size() > 1) std::erase(asked_iterators_, iterator);
}

StepDetector::StepDetection StepDetector::on_training_loop_event(TrainingLoopEvent event, std::int64_t time_ns,
                                                                 std::uint64_t iterator) {
  StepDetection detection;
  switch (event) {
    case TrainingLoopEvent::loader_iterator_created:
      add_iterator(time_ns);
      break;
    case TrainingLoopEvent::loader_batch_requested:
      begin_step_if_due(event, time_ns, detection);
      has_requested_batch_ = true;
      add_asked_iterator(iterator);
      break;
    case TrainingLoopEvent::loader_exhausted:
      end_iterator(iterator);
      break;
    case TrainingLoopEvent::forward_begin_with_gradients:
    case TrainingLoopEvent::forward_begin_with_gradients_after_inference:
    case TrainingLoopEvent::forward_begin_with_gradients_of_other_module:
    case TrainingLoopEvent::forward_begin_without_gradients:
    case TrainingLoopEvent::forward_begin_without_gradients_of_teacher:
      if (begins_step_at_call(event)) begin_step_if_due(event, time_ns, detection);
      add_call(event);
      break;
    case TrainingLoopEvent::forward_end:
      break;
    case TrainingLoopEvent::backward:
      add_backward_pass(detection);
      break;
    case TrainingLoopEvent::optimizer_step_end:
      has_updated_parameters_ = true;
      asked_iterators_.clear();
      break;
  }
  return detection;
}

}  // namespace joulemap::capture
