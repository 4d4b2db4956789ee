// SPDX-License-Identifier: Apache-2.0
#include "capture/step_detector.h"

#include <gtest/gtest.h>

#include <string>

namespace joulemap::capture {
namespace {

// A loop as letters: I new iterator, L next batch, F forward with gradients, f without, d forward done, B backward, O
// update, S forward with gradients of the module of the f before it, D of another module than the first F, t forward
// without gradients of a teacher, known from an earlier step, X no further batch. Returns the same letters, with | before
// each one that begins a step, ! before each one that reports an epoch, and after each one that identifies ended steps,
// their number: of evaluation steps, or after + of steps that belong to the step before them. At the end, e is an
// evaluation step and 0 an empty step that has not ended. L and X are those of the newest iterator, l and x of the first.
std::string detect_steps(const std::string& loop) {
  StepDetector detector;
  std::string steps;
  std::int64_t now_ns = 0;
  for (const char letter : loop) {
    const bool is_first_iterator = letter == 'l' || letter == 'x';
    const auto upper_case = static_cast<char>(is_first_iterator ? letter - 'a' + 'A' : letter);
    const auto event = static_cast<TrainingLoopEvent>(std::string("ILFfdBOSDtX").find(upper_case));
    const StepDetector::StepDetection detection =
        detector.on_training_loop_event(event, ++now_ns, is_first_iterator ? 1 : 0);
    if (detection.epoch_time_ns) steps += '!';
    if (detection.begins_step) steps += '|';
    steps += letter;
    if (detection.joined_steps > 0) steps += '+' + std::to_string(detection.joined_steps);
    if (detection.evaluation_steps > 0) steps += std::to_string(detection.evaluation_steps);
  }
  if (detector.is_in_evaluation_step()) steps += "e";
  if (detector.is_in_empty_step()) steps += "0";
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
  EXPECT_EQ(detect_steps("LFdBOLFdBOILfdLfdILFdBO"), "|LFdBO|LFdBOI|Lfd|L1fdI|L1Fd!BO");
  EXPECT_EQ(detect_steps("LFdBOfdfd"), "|LFdBO|fd|f1de") << "the last one has not ended yet";
}

TEST(StepDetector, ValidationWithGradientsIsOneEvaluationStep) {
  EXPECT_EQ(detect_steps("LFdBOFdFdFdLFdBO"), "|LFdBO|FdFdFd|L1FdBO");
}

TEST(StepDetector, StepsBeforeTheFirstBackwardPassAreEvaluationSteps) {
  EXPECT_EQ(detect_steps("LfdLfdLfdILFdBOLFdBO"), "|Lfd|Lfd|LfdI|LFd!B3O|LFdBO");
}

TEST(StepDetector, ATeachersCallBelongsToTheTrainingStep) {
  EXPECT_EQ(detect_steps("LFdBOLfdFdBOLfdFdBO"), "|LFdBO|LfdFdBO|LfdFdBO");
}

TEST(StepDetector, ATeachersCallAfterItsStudentBelongsToTheTrainingStep) {
  EXPECT_EQ(detect_steps("FdfdBOFdfdBO"), "|Fd|fdB+1O|FdfdBO");
  EXPECT_EQ(detect_steps("FdBOFdFdFdtdBO"), "|FdBO|FdFdFdtdBO") << "the value of an episode's last state";
  EXPECT_EQ(detect_steps("FdBOFdfdfdFdBO"), "|FdBO|Fdfd|f1d|F1dBO") << "several calls are an evaluation";
}

TEST(StepDetector, AKnownTeachersCallBeginsTheTrainingStepAfterAnEvaluation) {
  EXPECT_EQ(detect_steps("fdFdBOfdFdBO"), "|fd|FdB+1O|fdFdBO") << "the first call shows it later";
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
  // In the first step, only the backward pass shows that both calls belong to it.
  EXPECT_EQ(detect_steps("LFdFdBOLFdFdBO"), "|LFd|FdB+1O|LFdFdBO");
}

TEST(StepDetector, CallsOfTheFirstEpisodeAreItsFirstTrainingStep) {
  EXPECT_EQ(detect_steps("FdFdFdFdBOFdFdBO"), "|Fd|Fd|Fd|FdB+3O|FdFdBO");
}

TEST(StepDetector, EvaluationsBeforeTheFirstTrainingStepDoNotBelongToIt) {
  EXPECT_EQ(detect_steps("fdfdfdSdBO"), "|fd|fd|fd|SdB3O");
  EXPECT_EQ(detect_steps("fdfdfdFdFdBO"), "|fd|fd|fd|Fd|FdB+13O") << "one step joined, 3 of evaluation";
  EXPECT_EQ(detect_steps("LFdLFdILFdFdBO"), "|LFd|LFdI|LFd|Fd!B+12O") << "evaluation with gradients";
  EXPECT_EQ(detect_steps("LfdLfdILfdFdBO"), "|Lfd|LfdI|Lfd|Fd!B+12O") << "with a teacher";
  EXPECT_EQ(detect_steps("LfdSdBO"), "|Lfd|SdB+1O") << "both calls of a module for one batch";
}

TEST(StepDetector, ABatchThatDoesNotComeIsAnEmptyStep) {
  EXPECT_EQ(detect_steps("LFdBOL"), "|LFdBO|L0");
  EXPECT_EQ(detect_steps("LFdBOLILFdBO"), "|LFdBO|LILFd!BO") << "the next epoch continues it";
  EXPECT_EQ(detect_steps("LFdBOXILfdLfdL"), "|LFdBOXI|Lfd|L1fd|L10");
  EXPECT_EQ(detect_steps("LLL"), "|LLL") << "a program without a model";
}

TEST(StepDetector, EncoderAndDecoderShareTheFirstStep) {
  EXPECT_EQ(detect_steps("FdDdBOFdDdBO"), "|FdDdBO|FdDdBO");
  EXPECT_EQ(detect_steps("FdDdFdDd"), "|FdDd|FdDd");  // inference with gradients
  EXPECT_EQ(detect_steps("LFdDdBOLFdDdBO"), "|LFdDdBO|LFdDdBO");
}

TEST(StepDetector, AnEpochBeginsWithTheIteratorThatIsTrainedOn) {
  EXPECT_EQ(detect_steps("ILFdBOLFdBOILFdBO"), "I|LFd!BO|LFdBOI|LFd!BO");
}

TEST(StepDetector, AValidationWithinAnEpochBeginsNone) {
  EXPECT_EQ(detect_steps("ILFdBOILfdXlFdBOILfdXlFdBO"), "I|LFd!BOI|LfdX|l1FdBOI|LfdX|l1FdBO");
  EXPECT_EQ(detect_steps("ILFdBOILFdXlFdBO"), "I|LFd!BOI|LFdX|l1FdBO") << "gradients were left enabled";
  EXPECT_EQ(detect_steps("IllFdBOILfdLfdXxFdBO"), "I|llFd!BOI|Lfd|L1fdXx|F1dBO")
      << "the last batch was fetched in advance";
  EXPECT_EQ(detect_steps("ILFdBOILfdXILFdBO"), "I|LFd!BOI|LfdXI|L1Fd!BO") << "the next epoch";
  EXPECT_EQ(detect_steps("ILFdBOlILfdLXFdBO"), "I|LFd!BO|lILfd|L1XFdBO") << "after the batch was fetched";
  EXPECT_EQ(detect_steps("ILFdBOILfdLXlFdBO"), "I|LFd!BOI|Lfd|L1XlFdBO") << "between two steps";
}

TEST(StepDetector, AnEpochOfTwoLoadersBeginsWithANewIteratorOfOne) {
  EXPECT_EQ(detect_steps("IILlFdBOLlFdBOILlFdBO"), "II|LlFd!BO|LlFdBOI|LlFd!BO") << "the older one is asked last";
  EXPECT_EQ(detect_steps("IILlFdBOIILlFdBO"), "II|LlFd!BOII|LlFd!BO");
}

}  // namespace
}  // namespace joulemap::capture
