// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/scope_assignment.h"

#include <gtest/gtest.h>

#include "support/traced_program.h"

namespace joulemap::ingest {
namespace {

constexpr auto kModuleEvent = EventKind::module;
constexpr auto kAnnotationEvent = EventKind::annotation;
constexpr auto kFunctionEvent = EventKind::function;

// One step of a model with two layers, as PyTorch's profiler writes it; the backward pass runs on its own thread.
Program make_training_step_program() {
  Program program;
  program.add(kAnnotationEvent, "ProfilerStep#5", 0, 1000);
  program.add(kAnnotationEvent, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 50);
  program.op("aten::stack", 20, 30);
  program.add(kModuleEvent, "nn.Module: Net_0", 100, 200);
  program.add(kModuleEvent, "nn.Module: Linear_0", 110, 50);
  program.op("aten::linear", 120, 30, 1);
  program.op("aten::addmm", 125, 20, 1);
  program.launch(130, 41);
  program.add(kModuleEvent, "nn.Module: Linear_1", 170, 50);
  program.op("aten::linear", 180, 30, 2);
  program.add(kModuleEvent, "nn.Module: MSELoss_0", 310, 40);
  program.op("aten::mse_loss", 320, 20, 3);
  program.node("MseLossBackward0", 400, 20, 3, 2);
  program.node("AddmmBackward0", 430, 40, 2, 2);
  program.op("torch::autograd::AccumulateGrad", 471, 9, 0, 2);
  program.node("AddmmBackward0", 500, 60, 1, 2);
  program.launch(510, 42, 2);
  program.add(kAnnotationEvent, "Optimizer.step#SGD.step", 600, 100);
  program.op("aten::add_", 610, 20);
  program.add(kAnnotationEvent, "Optimizer.zero_grad#SGD.zero_grad", 710, 10);
  program.kernel("gemm", 140, 30, 41);
  program.kernel("gemm_backward", 1200, 70, 42);
  return program;
}

TEST(ScopeAssignment, PhasesAndLayersMatchALiveCapture) {
  Program program = make_training_step_program();
  const AssignmentOutcome outcome = assign_program_scopes(program, {{"Linear", {"first", "second"}}, {"Net", {"Net"}}});
  EXPECT_EQ(outcome.count("train/forward/Net"), 1U);
  EXPECT_EQ(outcome.count("train/forward/Net/first"), 1U);
  EXPECT_EQ(outcome.count("train/forward/Net/first/aten::linear"), 1U);
  EXPECT_EQ(outcome.wall_time_us("train/forward/Net/first"), 20);
  EXPECT_EQ(outcome.wall_time_us("train/forward/Net/first/aten::linear"), 30);  // including nested operations
  EXPECT_EQ(outcome.wall_time_us("train/forward/Net"), 100);
  EXPECT_EQ(outcome.wall_time_us("train/loss/MSELoss/aten::mse_loss"), 20);
  EXPECT_EQ(outcome.count("train/dataloader"), 1U);
  EXPECT_EQ(outcome.wall_time_us("train/dataloader/aten::stack"), 30);
  EXPECT_EQ(outcome.wall_time_us("train/optimizer/SGD"), 80);
  EXPECT_EQ(outcome.count("train/zero_grad"), 1U);
  EXPECT_TRUE(outcome.scoped_trace.diagnostics.empty()) << outcome.scoped_trace.diagnostics.list()[0].message;
}

TEST(ScopeAssignment, AGraphNodeHasTheInputsOfTheNodeInTheAutogradCall) {
  Program program = make_training_step_program();
  TraceEvent node = program.event(EventKind::op, "", 503, 50, 2);
  node.name_index = program.builder.intern_name("AddmmBackward0", {.tensors = "[32,10]"});
  node.is_backward = true;
  node.detail_index = 1;
  program.builder.add_event(node);
  const AssignmentOutcome outcome = assign_program_scopes(program, {{"Linear", {"first", "second"}}, {"Net", {"Net"}}});
  EXPECT_EQ(outcome.count("train/backward/Net/first/AddmmBackward0/[32,10]"), 1U);
  EXPECT_EQ(outcome.wall_time_us("train/backward/Net/first/AddmmBackward0/[32,10]"),
            60);  // including the engine's time
  EXPECT_EQ(outcome.count("train/backward/Net/first/AddmmBackward0"), 0U);
  EXPECT_EQ(outcome.count("train/backward/Net/second/AddmmBackward0"), 1U);  // its inputs are unknown
}

TEST(ScopeAssignment, WithoutStepMarksStepsEndWithTheParameterUpdate) {
  Program program;
  for (std::int64_t begin = 0; begin < 3000; begin += 1000) {
    program.op("aten::linear", begin + 10, 30, 1);
    program.node("AddmmBackward0", begin + 400, 60, 1, 2);
    program.launch(begin + 410, static_cast<std::uint32_t>(begin + 1), 2);
    program.kernel("gemm", begin + 1500, 70, static_cast<std::uint32_t>(begin + 1));  // runs after its step
    program.add(kAnnotationEvent, "Optimizer.step#SGD.step", begin + 600, 100);
    program.add(kAnnotationEvent, "Optimizer.step#Adam.step", begin + 800, 100);  // a second optimizer in the same step
  }
  const AssignmentOutcome outcome = assign_program_scopes(program);
  ASSERT_EQ(outcome.steps.size(), 3U);
  EXPECT_EQ(outcome.steps[1].begin_ns, 900'000);
  EXPECT_EQ(outcome.steps[1].end_ns, 1'900'000);
  EXPECT_EQ(outcome.steps[1].number, 1);
  EXPECT_EQ(outcome.steps[1].kernels, 1U);
  ASSERT_EQ(outcome.scoped_trace.marks.size(), 3U);
  EXPECT_EQ(outcome.scoped_trace.marks[0].name, "inferred");
}

TEST(ScopeAssignment, BackwardBelongsToTheForwardOperationsLayer) {
  Program program = make_training_step_program();
  const AssignmentOutcome outcome = assign_program_scopes(program, {{"Linear", {"first", "second"}}});
  EXPECT_EQ(outcome.count("train/backward"), 1U);
  EXPECT_EQ(outcome.count("train/backward/Net/second"), 1U);
  EXPECT_EQ(outcome.wall_time_us("train/backward/Net/second/AddmmBackward0"), 40);
  EXPECT_EQ(outcome.wall_time_us("train/backward/Net/first/AddmmBackward0"), 60);
  EXPECT_EQ(outcome.wall_time_us("train/backward/MSELoss/MseLossBackward0"), 20);
  // The time of gradient accumulation belongs to the layer that produced the gradients.
  EXPECT_EQ(outcome.wall_time_us("train/backward/Net/second/torch::autograd::AccumulateGrad"), 9);
}

TEST(ScopeAssignment, KernelsBelongToTheScopeAndStepOfTheirLaunch) {
  Program program = make_training_step_program();
  const AssignmentOutcome outcome = assign_program_scopes(program, {{"Linear", {"first", "second"}}});
  EXPECT_EQ(outcome.kernel_us.at("train/forward/Net/first/aten::linear"), 30);
  EXPECT_EQ(outcome.kernel_us.at("train/backward/Net/first/AddmmBackward0"), 70);
  ASSERT_EQ(outcome.steps.size(), 1U);
  EXPECT_EQ(outcome.steps[0].number, 5);
  EXPECT_EQ(outcome.steps[0].kernels, 2U);  // the second one ran after the step ended
  EXPECT_EQ(outcome.steps[0].summed_kernel_ns, 100'000);
  ASSERT_EQ(outcome.scoped_trace.marks.size(), 1U);
  EXPECT_EQ(outcome.scoped_trace.marks[0].id, 5U);
  ASSERT_EQ(outcome.kernels.size(), 2U);
  EXPECT_EQ(outcome.kernels[1].start_ns, 1'200'000);
  EXPECT_EQ(outcome.kernels[1].end_ns, 1'270'000);
  EXPECT_EQ(outcome.scoped_trace.kernels_without_scope, 0U);
}

TEST(ScopeAssignment, WithoutNamesLayersAreNamedByClassAndIndex) {
  Program program;
  program.add(kModuleEvent, "nn.Module: Net_0", 0, 100);
  program.add(kModuleEvent, "nn.Module: Sequential_0", 10, 80);
  program.add(kModuleEvent, "nn.Module: Conv2d_3", 20, 60);
  program.add(kModuleEvent, "nn.Module: Net_1", 200, 10);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/Net/Sequential_0/Sequential_0.Conv2d_3"), 60);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/Net#2"), 10);
}

TEST(ScopeAssignment, AModelWithoutGradientsIsInferenceEvenWhereAnotherTrains) {
  Program program;
  program.add(kModuleEvent, "nn.Module: Net_0", 0, 50);
  program.op("aten::linear", 10, 20, 1);
  program.node("AddmmBackward0", 60, 20, 1);
  program.add(kModuleEvent, "nn.Module: Net_0", 100, 50);
  program.op("aten::linear", 110, 20);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.count("train/forward/Net"), 1U);
  EXPECT_EQ(outcome.count("inference/forward/Net"), 1U);
}

TEST(ScopeAssignment, RecomputationInABackwardPassIsRecompute) {
  Program program;
  program.add(kModuleEvent, "nn.Module: Net_0", 0, 100);
  program.op("CheckpointFunction", 5, 60, 1);
  program.add(kModuleEvent, "nn.Module: Linear_0", 10, 50);
  program.op("aten::linear", 20, 20);
  program.node("CheckpointFunctionBackward", 200, 100, 1);
  program.add(kModuleEvent, "nn.Module: Linear_0", 210, 30);
  program.op("aten::linear", 215, 20, 9);
  program.node("AddmmBackward0", 250, 40, 9);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.count("train/recompute/Net/Linear_0"), 1U);
  EXPECT_EQ(outcome.wall_time_us("train/recompute/Net/Linear_0/aten::linear"), 20);
  EXPECT_EQ(outcome.wall_time_us("train/backward/Net/Linear_0/AddmmBackward0"), 40);
  EXPECT_EQ(outcome.wall_time_us("train/backward/Net/CheckpointFunctionBackward"), 30);
}

TEST(ScopeAssignment, TheLastOperationWithASequenceNumberCreatedTheNode) {
  Program program;
  program.add(kModuleEvent, "nn.Module: Net_0", 0, 200);
  program.add(kModuleEvent, "nn.Module: Reshape_0", 10, 40);
  program.op("aten::view", 20, 10, 4);
  program.add(kModuleEvent, "nn.Module: Linear_0", 60, 40);
  program.op("aten::linear", 70, 10, 4);
  program.node("AddmmBackward0", 300, 10, 4);
  EXPECT_EQ(assign_program_scopes(program).count("train/backward/Net/Linear_0/AddmmBackward0"), 1U);
}

TEST(ScopeAssignment, OperationsAfterTheModelAreLossAndAfterBackwardGradients) {
  Program program;
  program.add(kFunctionEvent, "train.py(3): train", 0, 1000);
  program.add(kModuleEvent, "nn.Module: Net_0", 0, 100);
  program.op("aten::linear", 10, 20, 1);
  program.op("aten::mse_loss", 150, 50, 2);
  program.node("MseLossBackward0", 300, 20, 2, 2);
  program.node("AddmmBackward0", 320, 20, 1, 2);
  program.op("aten::clip_grad", 400, 50);
  program.add(kAnnotationEvent, "Optimizer.step#SGD.step", 500, 100);
  program.op("aten::metric", 700, 50);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("train/loss/aten::mse_loss"), 50);
  EXPECT_EQ(outcome.wall_time_us("train/gradients/aten::clip_grad"), 50);
  EXPECT_EQ(outcome.wall_time_us("aten::metric"), 50);
}

TEST(ScopeAssignment, TheInitialGradientIsPartOfTheBackwardPass) {
  Program program;
  program.add(kModuleEvent, "nn.Module: Net_0", 0, 100);
  program.op("aten::linear", 10, 20, 1);
  program.op("aten::mse_loss", 150, 50, 2);
  program.add(kFunctionEvent, "torch/autograd/__init__.py(255): backward", 250, 150);
  program.op("aten::ones_like", 260, 20);
  program.node("MseLossBackward0", 300, 20, 2, 2);
  program.add(kAnnotationEvent, "Optimizer.step#SGD.step", 500, 100);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("train/loss/aten::mse_loss"), 50);
  EXPECT_EQ(outcome.wall_time_us("train/backward/aten::ones_like"), 20);
  EXPECT_EQ(outcome.wall_time_us("train/loss/aten::ones_like"), 0);
}

TEST(ScopeAssignment, WithoutModulesTheRemainingTimeIsForward) {
  Program program;
  program.op("aten::conv2d", 0, 100, 1);
  program.node("ConvolutionBackward0", 200, 50, 1);
  program.add(kAnnotationEvent, "my region", 300, 100);
  program.op("aten::relu", 310, 20);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("train/forward/aten::conv2d"), 100);
  EXPECT_EQ(outcome.wall_time_us("train/backward/ConvolutionBackward0"), 50);
  EXPECT_EQ(outcome.wall_time_us("my region/train/forward/aten::relu"), 20);
  EXPECT_EQ(outcome.wall_time_us("my region"), 80);
  EXPECT_TRUE(outcome.scoped_trace.diagnostics.contains("no_modules"));
}

TEST(ScopeAssignment, CommunicationBelongsToThePhaseWhereItRuns) {
  Program program;
  program.op("aten::linear", 0, 10, 1);
  program.node("AddmmBackward0", 100, 200, 1);
  program.op("record_param_comms", 120, 50);
  program.add(kAnnotationEvent, "nccl:all_reduce", 130, 30);
  program.launch(140, 9);
  program.kernel("ncclDevKernel_AllReduce", 150, 400, 9);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.kernel_us.at("train/backward/comm/nccl:all_reduce"), 400);
  EXPECT_EQ(outcome.wall_time_us("train/backward/AddmmBackward0"), 150);
}

TEST(ScopeAssignment, AWrapperOfAModelIsNoLayer) {
  Program program;
  program.add(kModuleEvent, "nn.Module: DistributedDataParallel_0", 0, 100);
  program.add(kModuleEvent, "nn.Module: Net_0", 10, 80);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("inference/forward/Net"), 80);
  EXPECT_EQ(outcome.wall_time_us("inference/forward"), 20);
}

TEST(ScopeAssignment, OperationNamesThatContainTheirScopeSuffice) {
  Program program;
  TraceEvent event = program.event(EventKind::op, "x", 0, 30);
  event.name_index = program.builder.intern_name("jit(f)/jvp(Net)/a/dot", {"forward", "a", "dot"});
  program.builder.add_event(event);
  event.name_index = program.builder.intern_name("jit(f)/transpose(jvp(Net))/a/dot", {"backward", "a", "dot"});
  event.start_ns = 100'000;
  program.builder.add_event(event);
  program.builder.trace().gpu_events_identify_ops = true;
  program.kernel("fusion", 10, 40, 0, program.builder.intern_name("gpu op", {"backward", "b", "dot"}) + 1);
  const AssignmentOutcome outcome = assign_program_scopes(program);
  EXPECT_EQ(outcome.wall_time_us("train/forward/a/dot"), 30);
  EXPECT_EQ(outcome.wall_time_us("train/backward/a/dot"), 30);
  EXPECT_EQ(outcome.kernel_us.at("train/backward/b/dot"), 40);
}

}  // namespace
}  // namespace joulemap::ingest
