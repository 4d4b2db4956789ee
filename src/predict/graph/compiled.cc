// SPDX-License-Identifier: Apache-2.0
//
// Models what torch.compile makes of a list of operations, by these rules:
// - Activations except softmax, add, multiply, rescaling, dropout, casts, copies, constant padding and norms with fixed
//   statistics are element-wise. A run of them in one pass, each of the size of the one before, becomes one kernel. It
//   may contain one other norm, which is fused with the operations before and after it.
// - That kernel moves the bytes of its members, without those that one of them writes and the next one reads. A sum
//   before a norm is still written, because the residual branch reads it.
// - The result is the member that moves most bytes (the norm, if there is one), with its sizes scaled to those bytes.
// - Views vanish. Other operations stay; the optimizer becomes one kernel, and convolutions in TF32 or 16 bits read
//   channels-last images.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "predict/graph/training_step.h"
#include "predict/graph/work.h"

namespace joulemap::predict {
namespace {

bool normalizes_with_batch_statistics(const Operation& operation) {
  return operation.kind == Kind::normalization && operation.form != "batch-inference";
}

bool is_fusable(const Operation& operation) {
  switch (operation.kind) {
    case Kind::activation:
      return operation.form != "softmax" && operation.form != "log_softmax";
    case Kind::padding:
      return operation.form == "constant";
    case Kind::normalization:
    case Kind::add:
    case Kind::multiply:
    case Kind::rescaling:
    case Kind::dropout:
    case Kind::cast:
    case Kind::reshape:
      return true;
    default:
      return false;
  }
}

// Converts an operation that eager mode runs as several kernels, or with tables of statistics, to one that reads and
// writes each element once.
Operation to_single_kernel_operation(Operation operation) {
  const OperationParameters p = operation.parameters;
  if (operation.kind == Kind::rescaling && operation.pass == Pass::forward) {
    operation.kind = Kind::activation;
    operation.form = "rescaling";
    operation.parameters = {{"batch", p.get("batch", 1)}, {"rows", p.get("rows", 1)}, {"width", p.get("width", 1)}};
  } else if (operation.kind == Kind::normalization && operation.form == "batch-inference") {
    double pixels = 1;
    for (const std::string_view side : {"height", "width", "depth"}) pixels *= static_cast<double>(p.get(side, 1));
    // A product above the limit occurs only if another size is 0.
    const auto width = static_cast<std::int64_t>(std::min(pixels, static_cast<double>(kMaxElements)));
    operation.kind = Kind::activation;
    operation.parameters = {{"batch", p.get("batch", 1)}, {"rows", p.get("channels", 1)}, {"width", width}};
  }
  return operation;
}

struct TensorTraffic {
  double elements_read = 0;     // elements of the main input tensor
  double elements_written = 0;  // elements
  double read_bytes = 0;
  double written_bytes = 0;
};

TensorTraffic compute_tensor_traffic(const Operation& operation) {
  const OperationWork work = compute_work(operation);
  const double bytes = bytes_per_element(operation.dtype);
  TensorTraffic sizes{.elements_read = work.inputs, .elements_written = work.outputs};
  if (operation.kind == Kind::add || operation.kind == Kind::multiply) sizes.elements_read = work.outputs;
  if (operation.kind == Kind::cast) sizes.elements_written = work.inputs;
  if (operation.pass == Pass::backward) std::swap(sizes.elements_read, sizes.elements_written);
  sizes.read_bytes = sizes.elements_read * bytes;
  sizes.written_bytes = sizes.elements_written * bytes;
  if (operation.kind == Kind::cast) {
    sizes.written_bytes =
        sizes.elements_written * bytes_per_element(dtype_from_name(operation.form).value_or(operation.dtype));
  }
  return sizes;
}

// Bytes that need not be written and read again when `consumer` reads the output of `producer` in the same kernel.
double bytes_saved_by_fusion(const Operation& producer, const Operation& consumer) {
  const double written_bytes = compute_tensor_traffic(producer).written_bytes;
  const double read_bytes = compute_tensor_traffic(consumer).read_bytes;
  const bool is_add_before_norm =
      producer.kind == Kind::add && producer.form == "same" && normalizes_with_batch_statistics(consumer);
  return is_add_before_norm ? std::min(written_bytes, read_bytes) : 2 * std::min(written_bytes, read_bytes);
}

class FusionSequence {
 public:
  bool is_empty() const { return operations_.empty(); }

  bool can_fuse(const Operation& next_operation) const {
    if (operations_.empty()) return true;
    const Operation& last_operation = operations_.back();
    if (next_operation.count != last_operation.count) return false;
    if (normalizes_with_batch_statistics(next_operation) &&
        std::any_of(operations_.begin(), operations_.end(), normalizes_with_batch_statistics))
      return false;
    return compute_tensor_traffic(last_operation).elements_written ==
           compute_tensor_traffic(next_operation).elements_read;
  }

  void add(Operation operation) {
    const OperationWork unfused_work = compute_work(operation);
    flop_sum_ += unfused_work.flops;
    unfused_bytes_ += unfused_work.bytes;
    operation = to_single_kernel_operation(std::move(operation));
    fused_bytes_ += std::min(unfused_work.bytes, compute_work(operation).bytes);
    if (!operations_.empty()) fused_bytes_ -= bytes_saved_by_fusion(operations_.back(), operation);
    operations_.push_back(std::move(operation));
  }

  Operation fused_operation() const;

 private:
  const Operation& costliest_operation() const;

  std::vector<Operation> operations_;
  double flop_sum_ = 0;
  double unfused_bytes_ = 0;  // bytes of the members if run separately
  double fused_bytes_ = 0;    // bytes of the fused kernel
};

const Operation& FusionSequence::costliest_operation() const {
  const auto is_less = [](const Operation& left, const Operation& right) {
    if (normalizes_with_batch_statistics(left) != normalizes_with_batch_statistics(right))
      return normalizes_with_batch_statistics(right);
    const OperationWork a = compute_work(left);
    const OperationWork b = compute_work(right);
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.flops < b.flops;
  };
  return *std::max_element(operations_.begin(), operations_.end(), is_less);
}

// Names of sizes that can be scaled without changing the kind of work. scale_operation_work() scales the largest of
// them, because integer rounding matters least there.
std::span<const std::string_view> scalable_size_names(const Operation& operation) {
  static constexpr std::array<std::string_view, 1> kRowNormSizes = {"batch"};
  static constexpr std::array<std::string_view, 3> kImageNormSizes = {"batch", "height", "width"};
  static constexpr std::array<std::string_view, 3> kTensorSizes = {"batch", "rows", "width"};
  if (operation.kind == Kind::padding) return {};
  if (operation.kind != Kind::normalization) return kTensorSizes;
  if (operation.form == "layer" || operation.form == "rms") return kRowNormSizes;
  return kImageNormSizes;
}

// Scales the work by at most `factor`; unchanged if `factor` is not above 1.
void scale_operation_work(Operation& operation, double factor) {
  const auto names = scalable_size_names(operation);
  if (names.empty() || !(factor > 1)) return;
  const OperationParameters& p = operation.parameters;
  const auto is_less = [&p](std::string_view left, std::string_view right) { return p.get(left, 1) < p.get(right, 1); };
  const std::string_view name = *std::max_element(names.begin(), names.end(), is_less);
  const double size = static_cast<double>(p.get(name, 1)) * factor;
  if (size < static_cast<double>(kMaxElements)) operation.parameters.set(name, static_cast<std::int64_t>(size));
}

Operation FusionSequence::fused_operation() const {
  Operation merged_operation = costliest_operation();
  const OperationWork work = compute_work(merged_operation);
  double factor = work.bytes > 0 ? std::min(fused_bytes_, unfused_bytes_) / work.bytes : 1;
  if (work.flops > 0) factor = std::min(factor, flop_sum_ / work.flops);
  scale_operation_work(merged_operation, factor);
  merged_operation.layer = operations_.front().layer;
  return merged_operation;
}

void flush_fusion_sequence(FusionSequence& run, std::vector<Operation>& merged_operations) {
  if (!run.is_empty()) merged_operations.push_back(run.fused_operation());
  run = FusionSequence();
}

}  // namespace

std::vector<Operation> to_compiled_operations(std::vector<Operation> operations) {
  std::vector<Operation> merged_operations;
  FusionSequence run;
  bool is_backward = false;
  for (Operation& operation : operations) {
    if (operation.kind == Kind::view) continue;
    // Copies and casts of the backward pass have the pass `forward`: the first backward operation separates the passes.
    if (operation.pass != Pass::forward && !is_backward) {
      flush_fusion_sequence(run, merged_operations);
      is_backward = true;
    }
    if (!is_fusable(operation)) {
      flush_fusion_sequence(run, merged_operations);
      if (operation.kind == Kind::optimizer) operation.parameters.set("fused", 1);
      // The compiler converts images to channels-last, which tensor cores require.
      if (operation.kind == Kind::convolution && operation.dtype != Dtype::fp32)
        operation.parameters.set("channels_last", 1);
      merged_operations.push_back(std::move(operation));
      continue;
    }
    if (!run.can_fuse(operation)) flush_fusion_sequence(run, merged_operations);
    run.add(std::move(operation));
  }
  flush_fusion_sequence(run, merged_operations);
  return merged_operations;
}

}  // namespace joulemap::predict
