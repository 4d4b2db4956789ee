// SPDX-License-Identifier: Apache-2.0
// A library between Joulemap and NVML (compiled with -DFOR_NVML) or CUPTI (-DFOR_CUPTI), for faults.py. It passes every
// call on to the real library, JOULEMAP_REAL_NVML or JOULEMAP_REAL_CUPTI, and fails as JOULEMAP_FAULT_NVML or
// JOULEMAP_FAULT_CUPTI requests: NVML from JOULEMAP_FAULT_AFTER_S seconds after loading on, CUPTI at once, since most
// of a run is not traced. Functions that never fail are passed on by a jump, whatever their arguments are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef FOR_NVML
#define KIND "NVML"
#else
#define KIND "CUPTI"
#endif

static void* real_library;
static const char* fault = "none";
static double fault_delay_s;
static double begin_s;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int is(const char* name) { return strcmp(fault, name) == 0; }
static int has_begun(void) { return now_s() - begin_s > fault_delay_s; }

#if defined(__x86_64__)
#define JUMP_TO_SYMBOL(name) "jmp *to_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP_TO_SYMBOL(name) "adrp x16, to_" #name "\nldr x16, [x16, :lo12:to_" #name "]\nbr x16\n"
#endif
#define FORWARD_FUNCTION(name)                                                                                          \
  __attribute__((visibility("hidden"))) void* to_##name;                                                       \
  __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP_TO_SYMBOL(name));
#define FIND_SYMBOL(name)                          \
  to_##name = dlsym(real_library, #name);   \
  if (to_##name == NULL) to_##name = (void*)not_there;

static int not_there(void) { return 13; }  // NVML_ERROR_FUNCTION_NOT_FOUND; of CUPTI no function is missing

#ifdef FOR_NVML
#define FORWARDED_FUNCTIONS(X)                                                                                           \
  X(nvmlShutdown) X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2) X(nvmlDeviceGetUUID)               \
  X(nvmlDeviceGetVbiosVersion) X(nvmlErrorString) X(nvmlSystemGetDriverVersion) X(nvmlDeviceGetName)           \
  X(nvmlDeviceGetPciInfo_v3) X(nvmlDeviceGetHandleByUUID) X(nvmlDeviceGetMigMode)                              \
  X(nvmlDeviceGetVirtualizationMode) X(nvmlDeviceGetEnforcedPowerLimit) X(nvmlDeviceGetClockInfo)              \
  X(nvmlDeviceGetTemperature) X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetMemoryInfo)                      \
  X(nvmlDeviceGetCurrentClocksEventReasons) X(nvmlDeviceGetComputeRunningProcesses_v3)                         \
  X(nvmlDeviceGetProcessUtilization)
FORWARDED_FUNCTIONS(FORWARD_FUNCTION)

enum { kNoPermission = 4, kLost = 15, kMismatch = 18 };
static atomic_int has_fault_happened;

// The error code with which the call fails now; 0 if it succeeds.
static int failure(void) {
  if (is("permission")) return kNoPermission;
  if (is("lost") && has_begun()) return kLost;
  if (is("away") && has_begun() && now_s() - begin_s < fault_delay_s + 3) return kLost;
  return 0;
}

int nvmlInit_v2(void) {
  if (is("init")) return kMismatch;
  return ((int (*)(void))dlsym(real_library, "nvmlInit_v2"))();
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy_mj) {
  static _Atomic unsigned long long reset_energy_mj;
  const int failed = failure();
  if (is("stuck") && has_begun() && atomic_exchange(&has_fault_happened, 1) == 0) sleep(4);
  if (failed != 0) return failed;
  const int status =
      ((int (*)(void*, unsigned long long*))dlsym(real_library, "nvmlDeviceGetTotalEnergyConsumption"))(device, energy_mj);
  if (is("reset") && has_begun()) {
    unsigned long long none = 0;
    atomic_compare_exchange_strong(&reset_energy_mj, &none, *energy_mj);
    *energy_mj -= reset_energy_mj;
  }
  if (is("wild") && has_begun() && atomic_exchange(&has_fault_happened, 1) == 0) *energy_mj += 1000000000000ull;
  return status;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* power_mw) {
  const int failed = failure();
  if (failed != 0 && !is("permission")) return failed;
  return ((int (*)(void*, unsigned*))dlsym(real_library, "nvmlDeviceGetPowerUsage"))(device, power_mw);
}

int nvmlDeviceGetFieldValues(void* device, int count, void* values) {
  const int failed = failure();
  if (failed != 0) return failed;
  return ((int (*)(void*, int, void*))dlsym(real_library, "nvmlDeviceGetFieldValues"))(device, count, values);
}

int nvmlDeviceGetSamples(void* device, int type, unsigned long long since, void* value_type, unsigned* count, void* samples) {
  const int failed = failure();
  if (failed != 0 && !is("permission")) return failed;
  return ((int (*)(void*, int, unsigned long long, void*, unsigned*, void*))dlsym(real_library, "nvmlDeviceGetSamples"))(
      device, type, since, value_type, count, samples);
}
#endif

#ifdef FOR_CUPTI
#define FORWARDED_FUNCTIONS(X)                                                                                           \
  X(cuptiGetVersion) X(cuptiActivityRegisterCallbacks) X(cuptiActivityDisable) X(cuptiGetTimestamp)            \
  X(cuptiUnsubscribe) X(cuptiEnableCallback) X(cuptiGetCallbackName) X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiGetGraphNodeId) X(cuptiGetGraphId) X(cuptiGetResultString) X(cuptiFinalize)
FORWARDED_FUNCTIONS(FORWARD_FUNCTION)

enum { kUnknown = 999, kInvalidKind = 21, kInsufficientPrivileges = 35, kMultipleSubscribers = 39 };

int cuptiActivityEnable(int kind) {
  if (is("privileges")) return kInsufficientPrivileges;
  return ((int (*)(int))dlsym(real_library, "cuptiActivityEnable"))(kind);
}

int cuptiSubscribe(void** subscriber, void* callback, void* data) {
  if (is("subscriber")) return kMultipleSubscribers;
  return ((int (*)(void**, void*, void*))dlsym(real_library, "cuptiSubscribe"))(subscriber, callback, data);
}

int cuptiActivityFlushAll(uint32_t flag) {
  const int status = ((int (*)(uint32_t))dlsym(real_library, "cuptiActivityFlushAll"))(flag);
  return is("flush") && has_begun() ? kUnknown : status;
}

int cuptiActivityGetNextRecord(uint8_t* buffer, size_t size, void** record) {
  static atomic_int calls;
  if (is("records") && has_begun() && atomic_fetch_add(&calls, 1) % 100 == 99) return kInvalidKind;
  return ((int (*)(uint8_t*, size_t, void**))dlsym(real_library, "cuptiActivityGetNextRecord"))(buffer, size, record);
}

int cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* dropped) {
  const int status = ((int (*)(void*, uint32_t, size_t*))dlsym(real_library, "cuptiActivityGetNumDroppedRecords"))(
      context, stream, dropped);
  static atomic_int has_dropped_records;
  if (is("dropped") && has_begun() && atomic_exchange(&has_dropped_records, 1) == 0) *dropped += 1000;
  return status;
}
#endif

__attribute__((constructor)) static void load_real_library(void) {
  const char* chosen = getenv("JOULEMAP_FAULT_" KIND);
  const char* path = getenv("JOULEMAP_REAL_" KIND);
  const char* after = getenv("JOULEMAP_FAULT_AFTER_S");
  if (chosen != NULL) fault = chosen;
#ifdef FOR_NVML
  if (after != NULL) fault_delay_s = atof(after);
#else
  (void)after;
#endif
  begin_s = now_s();
  real_library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (real_library == NULL) {
    fprintf(stderr, "fault_library: no %s: %s\n", path != NULL ? path : "JOULEMAP_REAL_" KIND, dlerror());
    abort();
  }
  FORWARDED_FUNCTIONS(FIND_SYMBOL)
}
