// SPDX-License-Identifier: Apache-2.0
#include "capture/step_inference.h"

#include <utility>

namespace joulemap::capture {

// The current step is over after a parameter update, or when it only ran inference. A step with gradients continues
// until the update that uses them.
bool StepInference::begin_step_if_due() {
  const bool asked_only = forwarded_ && !differentiated_;
  if (any_ && !updated_ && !asked_only) return false;
  any_ = true;
  updated_ = forwarded_ = differentiated_ = false;
  return true;
}

StepInference::Found StepInference::on(LoopEvent event, std::int64_t time_ns) {
  Found found;
  switch (event) {
    case LoopEvent::loader_new:
      new_iterator_ns_ = time_ns;
      break;
    case LoopEvent::loader_next:
      found.step = begin_step_if_due();
      between_ = Between::input;
      break;
    case LoopEvent::forward_train:
    case LoopEvent::forward_infer:
      // Two model calls in a row form one step when a backward pass follows both (siamese network, discriminator). That
      // shows only later, so once a program has trained, calls with gradients count as training.
      if (!forwarded_ || event == LoopEvent::forward_infer || updated_ || !trains_) found.step = begin_step_if_due();
      forwarded_ = true;
      if (event == LoopEvent::forward_train) std::swap(found.epoch_time_ns, new_iterator_ns_);
      break;
    case LoopEvent::forward_done:
      between_ = Between::loss;
      break;
    case LoopEvent::backward:
      differentiated_ = trains_ = true;
      between_ = Between::other;
      break;
    case LoopEvent::optimizer_done:
      updated_ = true;
      between_ = Between::other;
      break;
  }
  return found;
}

}  // namespace joulemap::capture
