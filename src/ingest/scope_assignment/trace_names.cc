// SPDX-License-Identifier: Apache-2.0
#include "ingest/scope_assignment/trace_names.h"

#include <array>
#include <charconv>

namespace joulemap::ingest {
namespace {

constexpr std::string_view kStepNamePrefix = "ProfilerStep#";
constexpr std::string_view kAutogradEnginePrefix = "autograd::engine::evaluate_function: ";
constexpr std::string_view kOptimizerStepPrefix = "Optimizer.step#";

struct NamePrefixRole {
  std::string_view text;
  NameRole role;
};
constexpr std::array kNamePrefixRoles = {
    NamePrefixRole{kStepNamePrefix, NameRole::step},
    NamePrefixRole{kAutogradEnginePrefix, NameRole::autograd_engine},
    NamePrefixRole{kOptimizerStepPrefix, NameRole::optimizer},
    NamePrefixRole{"Optimizer.zero_grad#", NameRole::zero_grad},
    NamePrefixRole{"enumerate(DataLoader)", NameRole::dataloader},
    NamePrefixRole{"nccl:", NameRole::communication},
    NamePrefixRole{"rccl:", NameRole::communication},
    NamePrefixRole{"gloo:", NameRole::communication},
    NamePrefixRole{"record_param_comms", NameRole::communication},
    NamePrefixRole{"c10d::", NameRole::communication},
    NamePrefixRole{"DistributedDataParallel.", NameRole::redundant},
    NamePrefixRole{"torch::autograd::AccumulateGrad", NameRole::gradient_accumulation},
};

std::string_view remove_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Removes the address from "<built-in method conv2d of type object at 0x7f3fa3acea40>": it is one function for any
// object.
std::string remove_object_address(std::string_view text) {
  return std::string(text.substr(0, text.rfind(" at 0x"))) + ">";
}

// Whether a Python function waits for the backward pass: "torch/autograd/__init__.py(255): backward", which also
// creates the initial gradient. If that is not in the trace, "torch/autograd/graph.py(824): _engine_run_backward" or
// "<built-in method run_backward of torch._C._Engine ...>".
bool is_wait_for_backward(std::string_view text) {
  if (text.ends_with(": _engine_run_backward") || text.find(" run_backward of torch._C.") != std::string_view::npos) {
    return true;
  }
  const bool is_autograd_call = text.find("torch/autograd/__init__.py(") != std::string_view::npos;
  return is_autograd_call && (text.ends_with("): backward") || text.ends_with("): grad"));
}

NameMeaning parse_name_meaning(std::string_view text, ScopeInterner& scope_interner) {
  NameMeaning meaning;
  for (const NamePrefixRole& prefix : kNamePrefixRoles) {
    if (!text.starts_with(prefix.text)) continue;
    meaning.role = prefix.role;
    break;
  }
  if (is_wait_for_backward(text)) meaning.role = NameRole::backward;
  if (meaning.role == NameRole::step) {
    const std::string_view number = text.substr(kStepNamePrefix.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), meaning.number);
    if (error != std::errc() || end != number.data() + number.size()) meaning.role = NameRole::plain;
  }
  if (meaning.role == NameRole::autograd_engine) {
    text.remove_prefix(kAutogradEnginePrefix.size());
    if (text.starts_with("torch::autograd::AccumulateGrad")) meaning.role = NameRole::gradient_accumulation;
  }
  if (meaning.role == NameRole::optimizer) {
    // "Optimizer.step#SGD.step"
    text = remove_prefix(text, kOptimizerStepPrefix);
    text = text.substr(0, text.find('.'));
  }
  const bool has_object_address = text.starts_with("<built-in ") && text.find(" at 0x") != std::string_view::npos;
  meaning.text =
      has_object_address ? scope_interner.intern_text(remove_object_address(text)) : scope_interner.intern_text(text);
  return meaning;
}

}  // namespace

TraceNames::TraceNames(const Trace& trace, ScopeInterner& scope_interner)
    : trace_(trace), scope_interner_(scope_interner) {
  name_meanings_.reserve(trace.names.size());
  bool is_training = false;
  for (const TraceName& name : trace.names) {
    NameMeaning& meaning = name_meanings_.emplace_back(parse_name_meaning(name.text, scope_interner));
    const auto& [phase, module, op, tensors] = name.scope;
    meaning.has_scope = !phase.empty() || !module.empty();
    if (!phase.empty()) meaning.phase = scope_interner.intern_text(phase) + 1;
    if (!module.empty()) meaning.module = scope_interner.intern_text(module) + 1;
    if (!tensors.empty()) meaning.tensors = scope_interner.intern_text(tensors) + 1;
    if (!op.empty()) meaning.text = scope_interner.intern_text(op);
    is_training = is_training || phase == "backward" || phase == "optimizer" || phase == "recompute";
  }
  mode_text_ = scope_interner.intern_text(is_training ? "train" : "inference");
}

std::uint32_t TraceNames::scope(std::uint32_t name, std::uint32_t enclosing_region, std::uint32_t phase) const {
  const NameMeaning& meaning = (*this)[name];
  std::uint32_t scope = phase != 0 ? phase : enclosing_region;
  if (meaning.phase != 0) {
    scope = scope_interner_.find_or_add_child_scope(
        scope_interner_.find_or_add_child_scope(enclosing_region, ScopeKind::mode, mode_text_), ScopeKind::phase,
        meaning.phase - 1);
  }
  if (meaning.module != 0)
    scope = scope_interner_.find_or_add_child_scope(scope, ScopeKind::module, meaning.module - 1);
  return op_scope(scope, name);
}

std::uint32_t TraceNames::op_scope(std::uint32_t parent_scope, std::uint32_t name) const {
  const NameMeaning& meaning = (*this)[name];
  const std::uint32_t op = scope_interner_.find_or_add_child_scope(parent_scope, ScopeKind::op, meaning.text);
  return meaning.tensors == 0 ? op
                              : scope_interner_.find_or_add_child_scope(op, ScopeKind::tensors, meaning.tensors - 1);
}

std::string_view TraceNames::text(std::uint32_t name) const {
  return name < trace_.names.size() ? std::string_view(trace_.names[name].text) : std::string_view();
}

}  // namespace joulemap::ingest
