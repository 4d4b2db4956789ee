// SPDX-License-Identifier: Apache-2.0
#include "capture/step_detector.h"

#include <gtest/gtest.h>

#include <string>

namespace joulemap::capture {
namespace {

// A loop as letters: I new iterator, L next batch, F forward with gradients, f without, d forward done, B backward, O
// update, S forward with gradients of the module of the f before it, D of another module than the first F, t forward
// without gradients of a teacher, known from an earlier step. Returns the
// same letters, with | before each one that begins a step, ! before each one that reports an epoch, and after each one
// that identifies ended steps as evaluation steps, their number.
std::string detect_steps(const std::string& loop) {
  StepDetector detector;
  std::string steps;
  std::int64_t now_ns = 0;
  for (const char letter : loop) {
    const auto event = static_cast<TrainingLoopEvent>(std::string("ILFfdBOSDt").find(letter));
    const StepDetector::StepDetection detection = detector.on_training_loop_event(event, ++now_ns);
    if (detection.epoch_time_ns) steps += '!';
    if (detection.begins_step) steps += '|';
    steps += letter;
    if (detection.evaluation_steps > 0) steps += std::to_string(detection.evaluation_steps);
  }
  if (detector.is_in_evaluation_step()) steps += "e";
  return steps;
}

TEST(StepDetector, ATrainingStepEndsWithItsUpdate) { EXPECT_EQ(detect_steps("LFdBOLFdBOLFdBO"), "|LFdBO|LFdBO|LFdBO"); }

TEST(StepDetector, WithoutALoaderAStepBeginsWithTheModel) { EXPECT_EQ(detect_steps("FdBOFdBO"), "|FdBO|FdBO"); }

TEST(StepDetector, AccumulatedGradientsAreOneStep) {
  EXPECT_EQ(detect_steps("LFdBLFdBOLFdBLFdBO"), "|LFdBLFdBO|LFdBLFdBO");
}

TEST(StepDetector, EveryInferenceCallIsAStep) {
  EXPECT_EQ(detect_steps("fdfdfd"), "|fd|fd|fd");
  EXPECT_EQ(detect_steps("LfdLfd"), "|Lfd|Lfd");
  EXPECT_EQ(detect_steps("FdFdFd"), "|Fd|Fd|Fd");  // gradients were left enabled for inference
}

TEST(StepDetector, BatchesOfAValidationAfterTrainingAreEvaluationSteps) {
  EXPECT_EQ(detect_steps("LFdBOLFdBOILfdLfdILFdBO"), "|LFdBO|LFdBOI|Lfd|L1fdI|L1!FdBO");
  EXPECT_EQ(detect_steps("LFdBOfdfd"), "|LFdBO|fd|f1de") << "the last one has not ended yet";
}

TEST(StepDetector, ValidationWithGradientsIsOneEvaluationStep) {
  EXPECT_EQ(detect_steps("LFdBOFdFdFdLFdBO"), "|LFdBO|FdFdFd|L1FdBO");
}

TEST(StepDetector, StepsBeforeTheFirstBackwardPassAreEvaluationSteps) {
  EXPECT_EQ(detect_steps("LfdLfdLfdILFdBOLFdBO"), "|Lfd|Lfd|LfdI|L!FdB3O|LFdBO");
}

TEST(StepDetector, ATeachersCallBelongsToTheTrainingStep) {
  EXPECT_EQ(detect_steps("LFdBOLfdFdBOLfdFdBO"), "|LFdBO|LfdFdBO|LfdFdBO");
}

TEST(StepDetector, AKnownTeachersCallBeginsTheTrainingStepAfterAnEvaluation) {
  EXPECT_EQ(detect_steps("fdFdBOfdFdBO"), "|fd|FdB1O|fdFdBO") << "the first call shows nothing yet";
  EXPECT_EQ(detect_steps("FdBOtdFdBOfdtdFdBO"), "|FdBO|tdFdBO|fd|t1dFdBO");
  EXPECT_EQ(detect_steps("LFdBOLtdFdBOLfdLfdLtdFdBO"), "|LFdBO|LtdFdBO|Lfd|L1fd|L1tdFdBO");
  EXPECT_EQ(detect_steps("FdBOfdtdtdFdBO"), "|FdBO|fd|t1dtdFdBO") << "two teachers";
}

TEST(StepDetector, TheFirstCallWithGradientsEndsAnEvaluationOfSeveralCalls) {
  EXPECT_EQ(detect_steps("FdBOfdfdfdFdBOFdFdBO"), "|FdBO|fd|f1d|f1d|F1dBO|FdFdBO");
}

TEST(StepDetector, ASingleCallOfTheTrainedModuleWithoutABatchIsAnEvaluation) {
  EXPECT_EQ(detect_steps("FdBOfdSdBOfdSdBO"), "|FdBO|fd|S1dBO|fd|S1dBO");
}

TEST(StepDetector, BothCallsOfAModuleForOneBatchAreOneStep) {
  EXPECT_EQ(detect_steps("LFdBOLfdSdBOLfdSdBO"), "|LFdBO|LfdSdBO|LfdSdBO");
}

TEST(StepDetector, WithoutTrainingNoStepIsAnEvaluationStep) { EXPECT_EQ(detect_steps("LfdLfd"), "|Lfd|Lfd"); }

TEST(StepDetector, JointlyTrainedNetworksShareAStep) {
  // In the first step, nothing shows yet that both calls belong to one backward pass.
  EXPECT_EQ(detect_steps("LFdFdBOLFdFdBO"), "|LFd|FdB1O|LFdFdBO");
}

TEST(StepDetector, EncoderAndDecoderShareTheFirstStep) {
  EXPECT_EQ(detect_steps("FdDdBOFdDdBO"), "|FdDdBO|FdDdBO");
  EXPECT_EQ(detect_steps("FdDdFdDd"), "|FdDd|FdDd");  // inference with gradients
  EXPECT_EQ(detect_steps("LFdDdBOLFdDdBO"), "|LFdDdBO|LFdDdBO");
}

TEST(StepDetector, AnEpochBeginsWithTheIteratorThatIsTrainedOn) {
  EXPECT_EQ(detect_steps("ILFdBOLFdBOILFdBO"), "I|L!FdBO|LFdBOI|L!FdBO");
}

}  // namespace
}  // namespace joulemap::capture
