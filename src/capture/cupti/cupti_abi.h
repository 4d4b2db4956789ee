// SPDX-License-Identifier: Apache-2.0
//
// Declarations of the CUPTI and CUDA driver types and functions that Joulemap uses, so that it builds without their
// headers and starts without their libraries. Names, layouts and numbers follow the CUPTI reference
// (docs.nvidia.com/cupti), CUDA 11.0 to 13.0; tests/fake_cupti/abi_test.cc compares them with NVIDIA's headers.
//
// A function that the library lacks is null. Times are nanoseconds of the clock that CUPTI was configured to use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace joulemap::capture::cupti {

// CUptiResult
enum class CuptiResult : int {
  success = 0,
  invalid_parameter = 1,
  max_limit_reached = 12,  // no further record in this buffer
  not_initialized = 15,
  insufficient_privileges = 35,
  multiple_subscribers = 39,
  unknown = 999,
};

enum class CallbackDomain : int { driver = 1, runtime = 2, resource = 3 };  // CUpti_CallbackDomain

inline constexpr std::uint32_t kGraphNodeCreated = 13;    // CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED
inline constexpr std::uint32_t kGraphExecCreated = 18;    // CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED
inline constexpr std::uint32_t kGraphNodeCloned = 20;     // CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED
inline constexpr std::uint32_t kGraphNodeUpdated = 22;    // CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED
inline constexpr std::uint32_t kGraphNodeParamsSet = 23;  // CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS
inline constexpr std::uint32_t kApiEnter = 0;             // CUPTI_API_ENTER
inline constexpr std::uint32_t kApiExit = 1;              // CUPTI_API_EXIT
inline constexpr std::uint32_t kFlushForced = 1;          // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

// CUpti_ActivityKind: the first member of every record
enum class RecordKind : std::uint32_t {
  copy = 1,
  fill = 2,
  kernel = 3,  // serialized mode, one kernel at a time; same layout
  concurrent_kernel = 10,
  peer_copy = 22,
  graph = 51,
};

// Activity kinds that are enabled. CUPTI records the kernels of a CUDA graph one by one only while records of whole
// graphs (CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 51) are disabled.
inline constexpr RecordKind kRecordedKinds[] = {RecordKind::concurrent_kernel, RecordKind::copy, RecordKind::fill,
                                                RecordKind::peer_copy};

struct Record;       // CUpti_Activity: read by cupti_records.h
struct Subscriber_;  // CUpti_Subscriber_st
using Subscriber = Subscriber_*;
struct Context_;  // CUctx_st
using Context = Context_*;
struct GraphNode_;  // CUgraphNode_st
using GraphNode = GraphNode_*;

// CUpti_CallbackData
struct ApiCall {
  std::uint32_t enter_or_exit;
  const char* function_name;
  const void* parameters;
  void* return_value;
  const char* symbol_name;
  Context context;
  std::uint32_t context_uid;
  std::uint64_t* correlation_data;
  std::uint32_t correlation;
};
static_assert(offsetof(ApiCall, correlation) == 64);

// CUpti_GraphData, up to the last member in use
struct GraphChange {
  void* graph;
  void* original_graph;
  GraphNode changed_node;
  GraphNode original_node;
};

// CUpti_ResourceData
struct ResourceData {
  Context context;
  void* handle;
  const GraphChange* resource_descriptor;  // for changes of a graph
};

using Callback = void (*)(void* user, CallbackDomain domain, std::uint32_t id, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records);
using BufferCompleted = void (*)(Context context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                                 std::size_t valid_size);
using TimestampFunction = std::uint64_t (*)();

struct CuptiFunctions {
  // Required for records.
  CuptiResult (*get_version)(std::uint32_t*) = nullptr;
  CuptiResult (*register_buffers)(BufferRequested, BufferCompleted) = nullptr;
  CuptiResult (*enable_records)(RecordKind) = nullptr;
  CuptiResult (*disable_records)(RecordKind) = nullptr;
  CuptiResult (*flush_buffers)(std::uint32_t flags) = nullptr;
  CuptiResult (*get_next_record)(std::uint8_t* buffer, std::size_t valid_size, Record** record) = nullptr;
  CuptiResult (*get_timestamp)(std::uint64_t*) = nullptr;
  // Required for the scopes of kernels.
  CuptiResult (*subscribe)(Subscriber*, Callback, void* user) = nullptr;
  CuptiResult (*unsubscribe)(Subscriber) = nullptr;
  CuptiResult (*enable_callback)(std::uint32_t is_enabled, Subscriber, CallbackDomain, std::uint32_t id) = nullptr;
  CuptiResult (*get_callback_name)(CallbackDomain, std::uint32_t id, const char** name) = nullptr;
  // Optional.
  CuptiResult (*register_clock)(TimestampFunction) = nullptr;  // since CUDA 11.6
  CuptiResult (*get_dropped_records)(Context, std::uint32_t stream, std::size_t*) = nullptr;
  CuptiResult (*get_graph_node_id)(GraphNode, std::uint64_t*) = nullptr;  // since CUDA 11.1
  CuptiResult (*get_graph_id)(void* graph, std::uint32_t*) = nullptr;     // since CUDA 11.1
  CuptiResult (*get_result_string)(CuptiResult, const char**) = nullptr;
  CuptiResult (*finalize)() = nullptr;
};

// Functions of libcuda.so.1, which the program has loaded. CUresult 0 is success.
struct DriverUuid {
  std::uint8_t bytes[16];
};
struct DriverFunctions {
  int (*get_version)(int*) = nullptr;                         // 1000 * major + 10 * minor
  int (*get_device)(int* handle, int ordinal) = nullptr;      // cuDeviceGet
  int (*get_device_uuid)(DriverUuid*, int handle) = nullptr;  // cuDeviceGetUuid
};

}  // namespace joulemap::capture::cupti
