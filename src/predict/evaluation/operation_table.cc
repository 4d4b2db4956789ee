// SPDX-License-Identifier: Apache-2.0
#include "predict/evaluation/operation_table.h"

#include <utility>

namespace joulemap::predict {
namespace {

std::vector<Dtype> list_shown_dtypes(Kind kind) {
  if (is_matrix_product(kind)) return {Dtype::fp32, Dtype::tf32, Dtype::fp16, Dtype::bf16};
  if (kind == Kind::loss || kind == Kind::optimizer) return {Dtype::fp32, Dtype::bf16};
  return {Dtype::fp32, Dtype::fp16, Dtype::bf16};
}

// Passes that the table shows. Kinds whose backward pass only forwards or copies the gradient have a forward pass only.
std::vector<Pass> list_shown_passes(const NamedOperation& subject) {
  switch (subject.kind) {
    case Kind::optimizer:
      return {Pass::optimizer};
    case Kind::add:
    case Kind::reshape:
    case Kind::concatenate:
    case Kind::cast:
    case Kind::input:
      return {Pass::forward};
    case Kind::reduce:
      if (subject.form == "sum") return {Pass::forward};
      return {Pass::forward, Pass::backward};
    default:
      return {Pass::forward, Pass::backward};
  }
}

Operation make_example_operation(const NamedOperation& subject, const ExampleSize& size, Dtype dtype, Pass pass) {
  Operation operation;
  operation.source = subject.name;
  operation.kind = subject.kind;
  operation.form = subject.form;
  operation.parameters = size.parameters;
  operation.dtype = dtype;
  operation.pass = pass;
  if (subject.kind == Kind::cast) operation.form = dtype == Dtype::fp32 ? "bf16" : "fp32";
  return operation;
}

OperationRow make_operation_row(const DeviceProfile& profile, const ExampleSize& size, Operation operation) {
  OperationExplanation explanation =
      explain_operation(profile.operation_model, operation, {.is_cache_cold = false, .in_network = false});
  return {size.text,
          size.is_unaligned,
          std::move(operation),
          explanation.estimate.time_s,
          explanation.estimate.energy_j,
          explanation.work.flops,
          explanation.work.bytes,
          explanation.bound,
          explanation.estimate.trust_factor};
}

}  // namespace

OperationTable make_operation_table(const DeviceProfile& profile, const NamedOperation& subject) {
  OperationTable table;
  table.subject = subject;
  table.device = profile.device;
  table.fitted = profile.basis == ProfileBasis::fitted;
  table.is_measured = is_measured(profile.operation_model.times, subject.kind);
  for (const ExampleSize& size : list_example_sizes(subject)) {
    for (const Dtype dtype : list_shown_dtypes(subject.kind)) {
      for (const Pass pass : list_shown_passes(subject)) {
        table.rows.push_back(make_operation_row(profile, size, make_example_operation(subject, size, dtype, pass)));
      }
    }
  }
  table.advice = operation_advice(table.rows);
  return table;
}

}  // namespace joulemap::predict
