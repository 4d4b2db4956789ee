// SPDX-License-Identifier: Apache-2.0
//
// Finds the steps of a profile. Of the sources that a profile contains, the first one counts:
//
// 1. Annotations with a step number: tf.profiler.experimental.Trace("train", step_num=3), StepTraceAnnotation of JAX.
// 2. The line "Steps" of a device, which TensorBoard's tools write.
// 3. Outermost calls of a tf.function: of the function with the largest total time; these steps are inferred.
// 4. Outermost root events of the runtime, such as SessionRun: those of one name, as for functions; inferred, too.
//
// Pure; times are ns of the profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace joulemap::ingest {

enum class XStepSource : std::uint8_t { annotation, device_line, function_call, root_event };

struct XStep {
  XStepSource source = XStepSource::annotation;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t track = 0;
  std::string_view name;                // of the event
  std::optional<std::uint64_t> number;  // if the event contains it
};

struct XSteps {
  std::vector<XStep> steps;  // in order of time, all with a number
  bool are_inferred = false;
};

XSteps select_profile_steps(std::vector<XStep> candidates);

}  // namespace joulemap::ingest
