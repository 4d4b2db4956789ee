// SPDX-License-Identifier: Apache-2.0
#include "capture/step_detector.h"

#include <utility>

namespace joulemap::capture {

// Begins a step if the current one is over: after a parameter update, or when it only called the model. A step with a
// backward pass continues until the update.
bool StepDetector::begin_step_if_due() {
  const bool is_inference_only = has_called_model_ && !has_run_backward_;
  if (has_begun_step_ && !has_updated_parameters_ && !is_inference_only) return false;
  has_begun_step_ = true;
  has_updated_parameters_ = has_called_model_ = has_run_backward_ = false;
  return true;
}

StepDetector::Detection StepDetector::on_event(LoopEvent event, std::int64_t time_ns) {
  Detection found;
  switch (event) {
    case LoopEvent::loader_new:
      new_iterator_ns_ = time_ns;
      break;
    case LoopEvent::loader_next:
      found.begins_step = begin_step_if_due();
      break;
    case LoopEvent::forward_train:
    case LoopEvent::forward_infer:
      // Two model calls in a row form one step when a backward pass follows both (siamese network, discriminator). That
      // shows only later, so once a program has trained, calls with gradients count as training.
      if (!has_called_model_ || event == LoopEvent::forward_infer || has_updated_parameters_ || !is_training_)
        found.begins_step = begin_step_if_due();
      has_called_model_ = true;
      if (event == LoopEvent::forward_train) std::swap(found.epoch_time_ns, new_iterator_ns_);
      break;
    case LoopEvent::forward_done:
      break;
    case LoopEvent::backward:
      has_run_backward_ = is_training_ = true;
      break;
    case LoopEvent::optimizer_done:
      has_updated_parameters_ = true;
      break;
  }
  return found;
}

}  // namespace joulemap::capture
