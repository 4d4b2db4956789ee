// SPDX-License-Identifier: Apache-2.0
#include "attribution/gpu/traced_steps.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace joulemap::attribution {
namespace {

// Consecutive steps, one for each letter. Of 10 ms: 'f' traced, '-' untraced. Of 500 ms: 'F' traced, '=' untraced.
struct StepPattern {
  explicit StepPattern(const std::string& steps) {
    for (const char kind : steps) {
      const std::int64_t length_ns =
          kind == 'F' || kind == '=' ? 500 * kNanosecondsPerMillisecond : 10 * kNanosecondsPerMillisecond;
      const bool is_traced = kind == 'f' || kind == 'F';
      step_begins_ns.push_back(end_ns);
      traced_steps.add(
          {.begin_ns = end_ns, .end_ns = end_ns + length_ns, .kernels = is_traced ? 100U : 0U, .is_traced = is_traced});
      end_ns += length_ns;
    }
  }
  TimeSpan span(std::size_t first_step, std::size_t last_step) const {
    return {step_begins_ns[first_step], step_begins_ns[last_step] + 10 * kNanosecondsPerMillisecond};
  }

  TracedSteps traced_steps;
  std::vector<std::int64_t> step_begins_ns;
  std::int64_t end_ns = 0;
};

TEST(TracedSteps, TracedKernelsExtrapolateToStepsUntilTheNextTracedOnes) {
  const StepPattern program("ff--------ff------");
  EXPECT_TRUE(program.traced_steps.is_light_mode());
  const Extrapolation first_extrapolation = program.traced_steps.extrapolate(program.span(0, 1));
  EXPECT_DOUBLE_EQ(first_extrapolation.kernel_weight, 5);
  EXPECT_EQ(first_extrapolation.span.begin_ns, 0);
  EXPECT_EQ(first_extrapolation.span.end_ns, 100 * kNanosecondsPerMillisecond);
  const Extrapolation second_extrapolation = program.traced_steps.extrapolate(program.span(10, 11));
  EXPECT_DOUBLE_EQ(second_extrapolation.kernel_weight, 4);
  EXPECT_EQ(second_extrapolation.span.begin_ns, 100 * kNanosecondsPerMillisecond);
  EXPECT_EQ(second_extrapolation.span.end_ns, program.end_ns);
}

TEST(TracedSteps, HalvesOfTracedStepsExtrapolateAsMuchAsTheWhole) {
  const StepPattern program("ff--------");
  const Extrapolation half_extrapolation = program.traced_steps.extrapolate({0, 5 * kNanosecondsPerMillisecond});
  EXPECT_DOUBLE_EQ(half_extrapolation.kernel_weight, 5);
  EXPECT_EQ(half_extrapolation.span.end_ns, program.end_ns);
}

TEST(TracedSteps, ADifferentFirstStepExtrapolatesToItselfOnly) {
  const StepPattern program("Fff------");
  const Extrapolation first_step_extrapolation =
      program.traced_steps.extrapolate({0, 500 * kNanosecondsPerMillisecond});
  EXPECT_EQ(first_step_extrapolation.kernel_weight, 1);
  EXPECT_EQ(first_step_extrapolation.span.end_ns, 500 * kNanosecondsPerMillisecond);
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate(program.span(1, 2)).kernel_weight, 4);
  // A sum over all three traced steps extrapolates to 1 + 2 * 4 steps: a weight of 9 / 3.
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate({0, 520 * kNanosecondsPerMillisecond}).kernel_weight, 3);
}

TEST(TracedSteps, WithoutARepresentativeStepTracedKernelsExtrapolateByDuration) {
  const StepPattern program("F----");
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate({0, 500 * kNanosecondsPerMillisecond}).kernel_weight, 540.0 / 500);
}

TEST(TracedSteps, KernelsThatOutlastTheirStepExtrapolateEqually) {
  const StepPattern program("ff--------");
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate({20 * kNanosecondsPerMillisecond, 24 * kNanosecondsPerMillisecond})
                       .kernel_weight,
                   5);
}

TEST(TracedSteps, ActivityOutsideOfStepsIsNotExtrapolated) {
  const StepPattern program("ff--------");
  const Extrapolation outside_extrapolation =
      program.traced_steps.extrapolate({-100 * kNanosecondsPerMillisecond, -50 * kNanosecondsPerMillisecond});
  EXPECT_EQ(outside_extrapolation.kernel_weight, 1);
  EXPECT_EQ(outside_extrapolation.span.begin_ns, -100 * kNanosecondsPerMillisecond);
  EXPECT_EQ(
      program.traced_steps.extrapolate({program.end_ns, program.end_ns + kNanosecondsPerMillisecond}).kernel_weight, 1);
}

TEST(TracedSteps, ATallyOverSeveralTracedGroupsExtrapolatesToAllTheirSteps) {
  const StepPattern program("ff------ff----------");
  const Extrapolation two_group_extrapolation = program.traced_steps.extrapolate(program.span(0, 9));
  EXPECT_DOUBLE_EQ(two_group_extrapolation.kernel_weight, 5);
  EXPECT_EQ(two_group_extrapolation.span.end_ns, program.end_ns);
}

TEST(TracedSteps, OfAnOverlongUntracedStepOnlyTheUsualDurationIsExtrapolatedTo) {
  const StepPattern program("Fffff---=");
  const Extrapolation long_step_extrapolation = program.traced_steps.extrapolate(program.span(4, 4));
  EXPECT_DOUBLE_EQ(long_step_extrapolation.kernel_weight, 5);  // the other four are the first steps of the program
  EXPECT_EQ(long_step_extrapolation.span.end_ns, program.step_begins_ns[8] + 10 * kNanosecondsPerMillisecond);
}

TEST(TracedSteps, StepsOfAnotherKindBeforeTheUntracedOnesExtrapolateToThemselvesOnly) {
  // Forty short steps, an evaluation, then a training of which the first steps are traced.
  const StepPattern program(std::string(40, 'f') + "FF====================");
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate(program.span(10, 20)).kernel_weight, 1);
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate(program.span(40, 41)).kernel_weight, 11);
  EXPECT_EQ(program.traced_steps.extrapolate(program.span(40, 41)).span.end_ns, program.end_ns);
}

TEST(TracedSteps, WithoutLightModeNothingIsExtrapolated) {
  const StepPattern program("Ffffff");
  EXPECT_FALSE(program.traced_steps.is_light_mode());
  EXPECT_EQ(program.traced_steps.extrapolate(program.span(1, 5)).kernel_weight, 1);
}

TEST(TracedSteps, ALongTracedSpanExtrapolatesToTheLightModeAfterIt) {
  const StepPattern program(std::string(2000, 'f') + std::string(1000, '-'));
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate(program.span(900, 999)).kernel_weight, 1.5);
}

TEST(TracedSteps, TheFirstStepsOfAProgramExtrapolateToThemselvesOnly) {
  const StepPattern program("ffffffff----");
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate(program.span(0, 3)).kernel_weight, 1);
  EXPECT_DOUBLE_EQ(program.traced_steps.extrapolate(program.span(4, 7)).kernel_weight, 2);
}

}  // namespace
}  // namespace joulemap::attribution
