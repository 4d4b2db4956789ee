/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libjoulemap_capture.so, which runs in the processes that `joulemap record` records: scopes, steps
 * and kernels of the program. Python's hooks and libjoulemap.so use it; programs use joulemap.h. C99.
 *
 * A scope (jmc_scope) is a node of a tree with root 0: a phase, a module, an operation, a region. A thread is in one
 * scope at a time; its wall time, CPU time and kernel launches belong to that scope. All functions are thread-safe;
 * without a recording every call returns at once. Names are UTF-8 and are copied.
 */
#ifndef JOULEMAP_CAPTURE_H
#define JOULEMAP_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JMC_API __attribute__((visibility("default")))

/* 1 when this process runs under `joulemap record`. The first call opens its part of the recording. */
JMC_API int jmc_is_recording(void);

typedef uint32_t jmc_scope;
typedef enum jmc_kind { JMC_MODE, JMC_PHASE, JMC_MODULE, JMC_OP, JMC_FUNCTION, JMC_REGION, JMC_TENSORS } jmc_kind;

/* The scope of that kind and name in `parent`; equal arguments return the same scope. 0 if nothing is recorded. */
JMC_API jmc_scope jmc_child_scope(jmc_scope parent, int kind, const char* name);

/* The current scope of this thread. */
JMC_API jmc_scope jmc_current_scope(void);
/* Enters a scope, whatever its parent, until the matching leave. Returns the depth of the thread before the call. */
JMC_API size_t jmc_enter(jmc_scope scope);
JMC_API void jmc_leave(void);
/* Leaves all scopes entered at that depth or deeper, including those whose leave an exception skipped. */
JMC_API void jmc_leave_to(size_t depth);
/* The depth of this thread, as jmc_enter would return it. */
JMC_API size_t jmc_depth(void);

/* A worker thread (such as autograd's) has no scope of its own. While a backward pass runs it is in `scope`, until it
 * sets a more specific scope. Passes nest. */
JMC_API void jmc_backward_begin(jmc_scope scope);
JMC_API void jmc_backward_end(void);
/* Sets the scope of this thread's backward work to `scope`, until the next call or the end of the pass. */
JMC_API void jmc_set_backward_scope(jmc_scope scope);
/* The same for an operation: counts every call, even if the operation before had the same scope. */
JMC_API void jmc_backward_operation(jmc_scope scope);

/* Steps and epochs marked by the program; number NULL: one more than the last. They disable inference of steps. */
JMC_API void jmc_step(const int64_t* number);
JMC_API void jmc_epoch(const int64_t* number);
JMC_API void jmc_metric(const char* name, double value, int64_t time_ns); /* time 0: now */
JMC_API void jmc_mark(int kind, uint64_t id, const char* name);
JMC_API void jmc_region_push(const char* name);
JMC_API int jmc_region_pop(void); /* 0 if none is open on this thread */

/* Events of a training or serving loop, in order of time; the capture infers steps and epochs from them. */
typedef enum jmc_event {
  JMC_LOADER_NEW,    /* a new iterator over the data */
  JMC_LOADER_NEXT,   /* the next batch is requested */
  JMC_FORWARD_TRAIN, /* an outermost module is called, with gradients */
  JMC_FORWARD_INFER, /* the same, without gradients */
  JMC_FORWARD_DONE,  /* the outermost module returned */
  JMC_BACKWARD,      /* a backward pass begins */
  JMC_OPTIMIZER_DONE /* parameters were updated */
} jmc_event;
/* Returns 1 if a new step has begun. */
JMC_API int jmc_on_event(int event);
/* Whether to capture the current step in detail: operations and functions, and kernels where they are sampled. */
JMC_API int jmc_step_is_sampled(void);
/* Whether to trace modules in the current step: always, unless the program is launch-bound. */
JMC_API int jmc_step_is_traced(void);

/* Begins (1) or ends (0) probing: modules are replayed to measure their power, in full detail and outside of steps. The
 * caller first enters scopes in the mode "probe". */
JMC_API void jmc_probing(int on);

/* Launches of this thread belong to the recorder (1), or to the program again (0). */
JMC_API void jmc_own_work(int on);

/* Allows closing CUPTI between traced steps (1), or requires it to stay open (0), because the program creates CUDA
 * graphs. */
JMC_API void jmc_allow_cupti_detach(int on);

/* Another profiler begins (1) or ends (0) in this process: it may take over the GPU's activity records. */
JMC_API void jmc_other_profiler(int on);

/* Maps an instruction of a program that XLA compiled to its operation in the source: "jit(step)/jvp(Net)/Dense_0/add".
 * Kernels that XLA launches in the instruction's NVTX range belong to that operation. An empty module announces that
 * all programs will be reported, so that unreported ones are autotuning trials of the compiler. */
JMC_API void jmc_hlo_op(const char* module, const char* instruction, const char* op_name);

/* A stack sample of the program: the function on top, and the time the sample represents. */
JMC_API void jmc_function_sample(const char* name, int64_t time_ns);

/* Adds a diagnostic about lost or uncaptured data, which every report contains. */
JMC_API void jmc_diagnose(const char* code, const char* message, const char* remedy);
/* Adds a fact about the environment. */
JMC_API void jmc_fact(const char* name, const char* value);

/* Joins the recording that the environment now names (`joulemap record -p PID --announce`), until jmc_leave_recording.
 * Returns 1 if the process is recorded, even if it was before. Scopes of an earlier recording are invalid. */
JMC_API int jmc_join_recording(void);
/* Ends this process's part, as jmc_finish does, and records nothing until the process joins again. */
JMC_API void jmc_leave_recording(void);

/* Writes buffered data and ends this process's part. Called at exit; call it before exiting by _exit or similar. */
JMC_API void jmc_finish(void);

#ifdef __cplusplus
}
#endif
#endif
