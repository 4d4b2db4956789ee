// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/nested_graphs.h"

#include <gtest/gtest.h>

#include <thread>

namespace joulemap::capture::cupti {
namespace {

std::uint64_t node(std::uint32_t graph, std::uint32_t index) { return std::uint64_t{graph} << 32 | index; }

// CUPTI's callbacks, in order, when XLA creates a command buffer of two matrix products, each followed by a fusion. The
// products are captured (graphs 2 and 4) and copied into nodes of graph 1 (as graphs 3 and 5). They are copied again
// (as graphs 19 and 20) when graph 1 is instantiated as graph 18.
void make_command_buffer(NestedGraphTracker& graphs) {
  const auto copy = [&](std::uint64_t original_node, std::uint64_t copied_node) {
    graphs.on_node_created(copied_node);
    graphs.on_node_copied(original_node, copied_node);
  };
  graphs.on_node_created(node(2, 0));
  copy(node(2, 0), node(3, 0));
  graphs.on_node_created(node(1, 0));
  graphs.on_node_created(node(1, 1));
  graphs.on_node_created(node(4, 0));
  copy(node(4, 0), node(5, 0));
  graphs.on_node_created(node(1, 2));
  graphs.on_node_created(node(1, 3));
  copy(node(3, 0), node(19, 0));
  copy(node(1, 0), node(18, 0));
  copy(node(1, 1), node(18, 1));
  copy(node(5, 0), node(20, 0));
  copy(node(1, 2), node(18, 2));
  copy(node(1, 3), node(18, 3));
  graphs.on_node_created(node(27, 0));
  graphs.on_node_created(node(18, 6));  // 4 and 5 are the matrix products
}

TEST(NestedGraphTracker, UnannouncedNodesAreNestedOnesInOrder) {
  NestedGraphTracker graphs;
  make_command_buffer(graphs);
  EXPECT_EQ(graphs.on_graph_instantiated(1),
            (std::vector<NestedGraphTracker::NodePair>{{node(19, 0), node(18, 4)}, {node(20, 0), node(18, 5)}}));
  EXPECT_TRUE(graphs.on_graph_instantiated(1).empty());
}

TEST(NestedGraphTracker, NodesAreNotMatchedWhenTheirCountsDiffer) {
  NestedGraphTracker graphs;
  make_command_buffer(graphs);
  graphs.on_node_created(node(18, 8));
  EXPECT_TRUE(graphs.on_graph_instantiated(1).empty());
}

TEST(NestedGraphTracker, AGraphWithoutNestedGraphsHasNone) {
  NestedGraphTracker graphs;
  graphs.on_node_created(node(1, 0));
  graphs.on_node_created(node(2, 0));
  graphs.on_node_copied(node(1, 0), node(2, 0));
  EXPECT_TRUE(graphs.on_graph_instantiated(1).empty());
}

TEST(NestedGraphTracker, IgnoresGraphsThatAnotherThreadBuilds) {
  NestedGraphTracker graphs;
  make_command_buffer(graphs);
  std::thread([&] {
    graphs.on_node_created(node(40, 0));
    graphs.on_node_copied(node(40, 0), node(41, 0));
  }).join();
  EXPECT_EQ(graphs.on_graph_instantiated(1).size(), 2u);
}

TEST(NestedGraphTracker, NewParametersIdentifyTheirSourceNode) {
  NestedGraphTracker graphs;
  EXPECT_FALSE(graphs.has_pending_update());
  graphs.on_node_updated(node(36, 0));
  graphs.on_node_updated(node(36, 1));
  EXPECT_TRUE(graphs.has_pending_update());
  EXPECT_EQ(graphs.on_node_parameters_set(node(18, 4)), (NestedGraphTracker::NodePair{node(36, 0), node(18, 4)}));
  EXPECT_EQ(graphs.on_node_parameters_set(node(18, 5)), (NestedGraphTracker::NodePair{node(36, 1), node(18, 5)}));
  EXPECT_FALSE(graphs.on_node_parameters_set(node(18, 1)));
}

}  // namespace
}  // namespace joulemap::capture::cupti
