// SPDX-License-Identifier: Apache-2.0
//
// Shape inference of nodes that change the order, count or size of dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "predict/graph/onnx/shapes.h"

namespace joulemap::predict::onnx {
namespace {

// One dimension of the target may be -1, the remainder; 0 copies that of the input.
Status resolve_target(const Sizes& from, bool zero_is_zero, Sizes& target) {
  std::int64_t known = 1;
  std::size_t rest = target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !zero_is_zero) target[i] = i < from.size() ? from[i] : 0;
    if (target[i] == -1) {
      rest = i;
    } else {
      known = product_of({known, target[i]}, 0, 2);
    }
  }
  const std::int64_t all = elements_of(from);
  if (rest < target.size()) target[rest] = known > 0 ? all / known : 0;
  if (elements_of(target) != all) {
    return misfit(fmt::format("{} cannot be reshaped to {}", sizes_text(from), sizes_text(target)));
  }
  return Done{};
}

Status reshape(Inference& at) {
  const std::optional<Sizes> given = at.integers(1);
  if (!given) return misfit("a target that is computed from data");
  Result<Sizes> target = rescaled_target(at, *given);
  if (!target) return target.error();
  const bool was_rescaled = *target != *given;
  Status status = resolve_target(at.sizes(0), integer_of(at.node, "allowzero", 0) != 0, *target);
  if (!status && was_rescaled) {
    *target = *given;
    status = resolve_target(at.sizes(0), integer_of(at.node, "allowzero", 0) != 0, *target);
  }
  if (!status) return status;
  at.give(*std::move(target));
  return Done{};
}

Status flatten(Inference& at) {
  const Sizes& from = at.sizes(0);
  const std::int64_t given = integer_of(at.node, "axis", 1);
  const auto rank = static_cast<std::int64_t>(from.size());
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return misfit("an axis that is none");
  const auto split = static_cast<std::size_t>(axis);
  at.give({product_of(from, 0, split), product_of(from, split, from.size())});
  return Done{};
}

Status squeeze(Inference& at) {
  const Sizes& from = at.sizes(0);
  const Result<std::vector<std::size_t>> axes = axes_of(at, 1, from.size());
  if (!axes) return axes.error();
  const bool all = axes->empty() && !at.has(1);
  Sizes left;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool gone = all ? from[i] == 1 : std::binary_search(axes->begin(), axes->end(), i);
    if (gone && from[i] != 1) return misfit(fmt::format("dimension {} of {} is not 1", i, sizes_text(from)));
    if (!gone) left.push_back(from[i]);
  }
  at.give(std::move(left));
  return Done{};
}

Status unsqueeze(Inference& at) {
  const Sizes& from = at.sizes(0);
  const std::optional<Sizes> numbers = at.has(1) ? at.integers(1) : integers_of(at.node, "axes");
  if (!numbers) return misfit("axes that are computed");
  const Result<std::vector<std::size_t>> axes = axes_of(at, 1, from.size() + numbers->size());
  if (!axes) return axes.error();
  Sizes more;
  std::size_t next = 0;
  for (std::size_t i = 0; i < from.size() + axes->size(); ++i) {
    const bool added = std::binary_search(axes->begin(), axes->end(), i);
    more.push_back(added ? 1 : from[next++]);
  }
  at.give(std::move(more));
  return Done{};
}

Status transpose(Inference& at) {
  const Sizes& from = at.sizes(0);
  const Sizes order = integers_of(at.node, "perm");
  Sizes sizes(from.rbegin(), from.rend());
  if (!order.empty()) {
    if (order.size() != from.size()) return misfit("an order of another number of dimensions");
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Result<std::size_t> axis = axis_of(order[i], from.size());
      if (!axis) return axis.error();
      sizes[i] = from[*axis];
    }
    if (elements_of(sizes) != elements_of(from)) return misfit("an order in which dimensions are missing");
  }
  at.give(std::move(sizes));
  return Done{};
}

Status expand(Inference& at) {
  const std::optional<Sizes> target = at.integers(1);
  if (!target) return misfit("sizes that are computed from data");
  // A stored target contains the file's batch, which is mostly 1 and broadcasts to any other.
  Result<Sizes> sizes = broadcast(at.sizes(0), *target);
  if (!sizes && at.before != nullptr) {
    const Result<Sizes> rescaled = rescaled_target(at, *target);
    if (!rescaled) return rescaled.error();
    sizes = broadcast(at.sizes(0), *rescaled);
  }
  if (!sizes) return sizes.error();
  at.give(*std::move(sizes));
  return Done{};
}

Status tile(Inference& at) {
  const std::optional<Sizes> repeats = at.integers(1);
  Sizes sizes = at.sizes(0);
  if (!repeats || repeats->size() != sizes.size()) return misfit("repeats that are computed from data");
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = product_of({sizes[i], (*repeats)[i]}, 0, 2);
  at.give(std::move(sizes));
  return Done{};
}

// Whether a dimension of an input differs between the file's batch and the requested one.
bool has_changed(const Inference& at, std::size_t place, std::size_t dimension) {
  if (place >= at.before->inputs.size() || at.before->inputs[place] == nullptr) return false;
  const std::optional<Sizes>& old = at.before->inputs[place]->sizes;
  return old && dimension < old->size() && (*old)[dimension] != at.sizes(place)[dimension];
}

Status concat(Inference& at) {
  Sizes sizes = at.sizes(0);
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", 0), sizes.size());
  if (!axis) return axis.error();
  for (std::size_t place = 1; place < at.inputs.size(); ++place) {
    if (!at.has(place)) continue;
    const Sizes& part = at.sizes(place);
    if (part.size() != sizes.size()) return misfit("parts of different numbers of dimensions");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i == *axis) {
        sizes[i] = std::min(kMostElements + 1, sizes[i] + part[i]);
      } else if (sizes[i] != part[i]) {
        // A stored part, such as a class token, has the file's batch: it is repeated for the new batch.
        if (at.before == nullptr) return misfit(fmt::format("{} beside {}", sizes_text(sizes), sizes_text(part)));
        if (has_changed(at, place, i)) sizes[i] = part[i];
      }
    }
  }
  at.give(std::move(sizes));
  return Done{};
}

Status split(Inference& at) {
  const Sizes& from = at.sizes(0);
  const Result<std::size_t> axis = axis_of(integer_of(at.node, "axis", 0), from.size());
  if (!axis) return axis.error();
  std::optional<Sizes> lengths = at.has(1) ? at.integers(1) : integers_of(at.node, "split");
  if (!lengths) return misfit("lengths that are computed from data");
  const auto parts = static_cast<std::int64_t>(at.outputs.size());
  if (lengths->empty()) {
    const std::int64_t each = (from[*axis] + parts - 1) / std::max<std::int64_t>(1, parts);
    for (std::int64_t i = 0; i < parts; ++i)
      lengths->push_back(std::max<std::int64_t>(0, std::min(each, from[*axis] - i * each)));
  }
  if (lengths->size() != at.outputs.size()) return misfit("another number of lengths than of parts");
  for (std::size_t place = 0; place < at.outputs.size(); ++place) {
    Sizes sizes = from;
    sizes[*axis] = (*lengths)[place];
    at.give(std::move(sizes), place);
  }
  return Done{};
}

std::int64_t slice_length(std::int64_t size, std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  if (step > 0) {
    begin = std::clamp<std::int64_t>(begin, 0, size);
    end = std::clamp<std::int64_t>(end, 0, size);
    return end <= begin ? 0 : (end - begin + step - 1) / step;
  }
  begin = std::clamp<std::int64_t>(begin, -1, size - 1);
  end = std::clamp<std::int64_t>(end, -1, size - 1);
  return begin <= end ? 0 : (begin - end - step - 1) / -step;
}

Status slice(Inference& at) {
  Sizes sizes = at.sizes(0);
  const std::optional<Sizes> begins = at.integers(1);
  const std::optional<Sizes> ends = at.integers(2);
  if (!begins || !ends || begins->size() != ends->size()) return misfit("bounds that are computed from data");
  const std::optional<Sizes> axes = at.has(3) ? at.integers(3) : Sizes();
  const std::optional<Sizes> steps = at.has(4) ? at.integers(4) : Sizes();
  if (!axes || !steps) return misfit("axes that are computed from data");
  for (std::size_t i = 0; i < begins->size(); ++i) {
    const auto number = i < axes->size() ? (*axes)[i] : static_cast<std::int64_t>(i);
    const Result<std::size_t> axis = axis_of(number, sizes.size());
    const std::int64_t step = i < steps->size() ? (*steps)[i] : 1;
    if (!axis) return axis.error();
    if (step == 0) return misfit("a step of 0");
    sizes[*axis] = slice_length(sizes[*axis], (*begins)[i], (*ends)[i], step);
  }
  at.give(std::move(sizes));
  return Done{};
}

Status pad(Inference& at) {
  Sizes sizes = at.sizes(0);
  const std::optional<Sizes> pads = at.integers(1);
  if (!pads) return misfit("paddings that are computed from data");
  std::vector<std::size_t> axes;
  if (at.has(3)) {
    const Result<std::vector<std::size_t>> given = axes_of(at, 3, sizes.size());
    if (!given) return given.error();
    axes = *given;
  } else {
    for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size()) return misfit("another number of paddings than of sides");
  for (std::size_t i = 0; i < axes.size(); ++i) sizes[axes[i]] += (*pads)[i] + (*pads)[i + axes.size()];
  at.give(std::move(sizes));
  return Done{};
}

Status depth_to_space(Inference& at) {
  const Sizes& from = at.sizes(0);
  const std::int64_t block = integer_of(at.node, "blocksize", 1);
  if (from.size() != 4 || block < 1 || block > 4096 || from[1] % (block * block) != 0)
    return misfit("blocks that do not fit");
  at.give({from[0], from[1] / (block * block), from[2] * block, from[3] * block});
  return Done{};
}

Status space_to_depth(Inference& at) {
  const Sizes& from = at.sizes(0);
  const std::int64_t block = integer_of(at.node, "blocksize", 1);
  if (from.size() != 4 || block < 1 || block > 4096) return misfit("blocks that do not fit");
  at.give({from[0], product_of({from[1], block, block}, 0, 3), from[2] / block, from[3] / block});
  return Done{};
}

constexpr std::array kNodes = {
    KnownNode{"Reshape", reshape, 2},
    KnownNode{"Flatten", flatten, 1},
    KnownNode{"Squeeze", squeeze, 1},
    KnownNode{"Unsqueeze", unsqueeze, 1},
    KnownNode{"Transpose", transpose, 1},
    KnownNode{"Expand", expand, 2},
    KnownNode{"Tile", tile, 2},
    KnownNode{"Concat", concat, 1},
    KnownNode{"Split", split, 1},
    KnownNode{"Slice", slice, 3},
    KnownNode{"Pad", pad, 2},
    KnownNode{"DepthToSpace", depth_to_space, 1},
    KnownNode{"SpaceToDepth", space_to_depth, 1},
};

}  // namespace

const KnownNode* find_layout_node(std::string_view type, std::string_view domain) {
  const auto found = std::find_if(kNodes.begin(), kNodes.end(),
                                  [=](const KnownNode& node) { return node.type == type && node.domain == domain; });
  return found == kNodes.end() ? nullptr : &*found;
}

}  // namespace joulemap::predict::onnx
