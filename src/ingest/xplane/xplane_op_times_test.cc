// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_op_times.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/protobuf.h"

namespace joulemap::ingest {
namespace {

using formats::ProtobufWriter;

// Builds the host's plane of a trace, event by event.
class Trace {
 public:
  Trace& event(std::string_view name, std::string_view type, std::int64_t begin_ns, std::int64_t time_ns,
               const ProtobufWriter& event_stats = {}) {
    ++events_;
    ProtobufWriter event;
    event.add(1, events_).add(2, begin_ns * 1000).add(3, time_ns * 1000);
    line_.add(4, event.bytes() + event_stats.bytes());
    names_.add(4, ProtobufWriter().add(1, events_).add(2, ProtobufWriter().add(2, name).add(4, type)));
    return *this;
  }
  Trace& line(std::string_view name) {
    if (!line_.bytes().empty()) lines_.add(3, line_);
    line_ = ProtobufWriter();
    line_.add(2, name);
    return *this;
  }
  // Adds an XLA program with these instructions.
  Trace& program(std::string_view name, const ProtobufWriter& computations) {
    const ProtobufWriter proto = ProtobufWriter().add(1, computations);
    const ProtobufWriter program_stat = ProtobufWriter().add(1, 1).add(6, proto.bytes());
    programs_.add(4, ProtobufWriter().add(1, 1).add(2, ProtobufWriter().add(2, name).add(5, program_stat)));
    return *this;
  }
  OpTimes op_times(const GraphNames& names = {}) {
    line("");
    ProtobufWriter host;
    host.add(2, "/host:CPU");
    int id = 0;
    for (const char* stat_name : {"hlo_op", "hlo_module", "program_id", "_p", "_c"}) {
      ++id;
      host.add(5, ProtobufWriter().add(1, id).add(2, ProtobufWriter().add(2, stat_name)));
    }
    programs_.add(2, "/host:metadata").add(5, ProtobufWriter().add(1, 1).add(2, ProtobufWriter().add(2, "Hlo Proto")));
    const std::string planes = ProtobufWriter().add(1, programs_).bytes() +
                               ProtobufWriter().add(1, host.bytes() + lines_.bytes() + names_.bytes()).bytes();
    return read_xplane_op_times(planes, names);
  }

 private:
  int events_ = 0;
  ProtobufWriter line_, lines_, names_, programs_;
};

ProtobufWriter hlo(std::string_view op, std::int64_t producer = 0) {
  ProtobufWriter event_stats;
  event_stats.add(4, ProtobufWriter().add(1, 1).add(5, op)).add(4, ProtobufWriter().add(1, 2).add(5, "jit_step"));
  event_stats.add(4, ProtobufWriter().add(1, 3).add(4, 182));
  if (producer != 0) event_stats.add(4, ProtobufWriter().add(1, 4).add(4, producer));
  return event_stats;
}

ProtobufWriter instruction(std::string_view name, std::string_view op_name, std::string_view called_computations = {}) {
  ProtobufWriter instruction_proto;
  instruction_proto.add(1, name).add(7, ProtobufWriter().add(2, op_name));
  if (!called_computations.empty()) instruction_proto.add(38, called_computations);
  return instruction_proto;
}

const OpTime* find(const OpTimes& op_times, const scopes::OpScope& scope) {
  for (const OpTime& share : op_times.op_times) {
    if (share.scope == scope) return &share;
  }
  return nullptr;
}

TEST(XPlaneOpTimes, AnOperationHasItsSelfTime) {
  Trace trace;
  trace.line("worker")
      .event("model/block/while:While", "While", 0, 100)
      .event("model/dense/MatMul:MatMul", "MatMul", 10, 60);
  const OpTimes op_times = trace.op_times();
  ASSERT_NE(find(op_times, {"forward", "block", "While", "model/block/while"}), nullptr);
  EXPECT_EQ(find(op_times, {"forward", "block", "While", "model/block/while"})->time_ns, 40);
  EXPECT_EQ(find(op_times, {"forward", "dense", "MatMul", "model/dense/MatMul"})->time_ns, 60);
  EXPECT_EQ(op_times.time_ns(), 100);
  EXPECT_EQ(op_times.time_with_scope_ns(), 100);
}

TEST(XPlaneOpTimes, NamesOfTheGraphGiveShapesAndTheLayersOfFusedOperationsAndUpdates) {
  Trace trace;
  trace.line("worker")
      .event("net/Relu:_FusedMatMul", "_FusedMatMul", 0, 60)
      .event("net/Relu_1:Relu", "Relu", 70, 5)
      .event("PartitionedCall/net/second/MatMul:MatMul", "MatMul", 80, 5)
      .event("sgd/AssignSub:AssignSub", "AssignSub", 90, 5);
  GraphNames names;
  names.fused_operations["net/Relu"] = {"net/first/MatMul", "[2,3] [3,4] [4]"};
  names.fused_operations["net/Relu_1"] = {"net/other/MatMul", ""};
  names.tensors_by_operation["net/second/MatMul"] = "[2,4] [4,5]";
  names.variable_reader_by_update["sgd/AssignSub"] = "net/second/MatMul/ReadVariableOp";
  const OpTimes op_times = trace.op_times(names);
  EXPECT_NE(find(op_times, {"optimizer", "second", "AssignSub", "sgd/AssignSub"}), nullptr);
  EXPECT_NE(find(op_times, {"forward", "first", "_FusedMatMul", "net/Relu [2,3] [3,4] [4]"}), nullptr);
  EXPECT_NE(find(op_times, {"forward", "net", "Relu", "net/Relu_1"}), nullptr);
  EXPECT_NE(find(op_times, {"forward", "second", "MatMul", "net/second/MatMul [2,4] [4,5]"}), nullptr);
}

TEST(XPlaneOpTimes, IgnoresWaitingAndScheduling) {
  Trace trace;
  trace.line("worker")
      .event("ExecutorState::Process", "", 0, 100)
      .event("Iterator::Root::Prefetch", "Iterator::Prefetch", 0, 9);
  EXPECT_TRUE(trace.op_times().op_times.empty());
}

TEST(XPlaneOpTimes, InputThreadsBelongToDataLoading) {
  Trace trace;
  trace.line("tf_data_private_threadpool/3").event("GatherV2:GatherV2", "GatherV2", 0, 10);
  trace.line("tf_data_iterator/4").event("Iterator::Root::Prefetch::Map", "Iterator::Map", 0, 5);
  const OpTimes op_times = trace.op_times();
  ASSERT_NE(find(op_times, {"dataloader", "tf.data", "GatherV2"}), nullptr);
  ASSERT_NE(find(op_times, {"dataloader", "tf.data", "Map"}), nullptr);
}

TEST(XPlaneOpTimes, NamesAnXlaInstructionByItsProgram) {
  ProtobufWriter computation;
  computation.add(2, instruction("dot.1", "jit(step)/transpose(jvp(Net))/Dense_0/dot_general")).add(5, 1);
  Trace trace;
  trace.program("jit_step(182)", ProtobufWriter().add(3, computation));
  trace.line("worker").event("dot.1", "", 0, 10, hlo("dot.1")).event("copy.7", "", 20, 5, hlo("copy.7"));
  const OpTimes op_times = trace.op_times();
  ASSERT_NE(find(op_times, {"backward", "Dense_0", "dot_general"}), nullptr);
  ASSERT_NE(find(op_times, {"", "", "copy"}), nullptr);
  EXPECT_EQ(op_times.time_with_scope_ns(), 10);
}

TEST(XPlaneOpTimes, AnXlaInstructionHasTheShapesOfItsOperands) {
  const auto shape = [](int type, std::string_view dimensions) {
    return ProtobufWriter().add(2, type).add(3, dimensions);
  };
  ProtobufWriter computation;
  computation.add(2, ProtobufWriter().add(1, "p.0").add(2, "parameter").add(3, shape(11, "\x20\x03")).add(35, 1));
  computation.add(2, ProtobufWriter().add(1, "p.1").add(2, "parameter").add(3, shape(16, "\x03")).add(35, 2));
  ProtobufWriter dot_instruction = instruction("dot.1", "jit(step)/jvp(Net)/Dense_0/dot_general");
  computation.add(2, dot_instruction.add(3, shape(11, "\x20")).add(35, 3).add(36, std::string_view("\x01\x02")))
      .add(5, 1);
  Trace trace;
  trace.program("jit_step(182)", ProtobufWriter().add(3, computation));
  trace.line("worker").event("dot.1", "", 0, 10, hlo("dot.1"));
  EXPECT_NE(find(trace.op_times(), {"forward", "Dense_0", "dot_general", "[32,3] bfloat16[3]"}), nullptr);
}

TEST(XPlaneOpTimes, NamesAFusionByItsContent) {
  ProtobufWriter fused_computation;
  fused_computation.add(2, instruction("add.1", "jit(step)/jvp(Net)/a/add"))
      .add(2, instruction("mul.1", "jit(step)/jvp(Net)/b/mul"));
  fused_computation.add(2, instruction("mul.2", "jit(step)/jvp(Net)/b/mul")).add(5, 9);
  ProtobufWriter entry;
  entry.add(2, instruction("fusion.3", "", std::string_view("\x09", 1))).add(5, 1);
  Trace trace;
  trace.program("jit_step(182)", ProtobufWriter().add(3, entry).add(3, fused_computation));
  trace.line("worker").event("fusion.3", "", 0, 10, hlo("fusion.3"));
  EXPECT_NE(find(trace.op_times(), {"forward", "b", "mul"}), nullptr);
}

TEST(XPlaneOpTimes, AnOperationThatEndsOnAnotherThreadLastsUntilThen) {
  ProtobufWriter consumer;
  consumer.add(4, ProtobufWriter().add(1, 5).add(4, 42));
  Trace trace;
  trace.line("worker").event("conv.2", "", 0, 10, hlo("conv.2", 42));
  trace.line("pool").event("end: conv.2", "", 90, 10, consumer);
  EXPECT_EQ(trace.op_times().time_ns(), 100);
}

}  // namespace
}  // namespace joulemap::ingest
