/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libjoulemap_capture.so. The library runs in the processes that `joulemap record` records, and
 * captures their scopes, steps and kernels. Joulemap's Python hooks and libjoulemap.so call it; programs use
 * joulemap.h. C99.
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

/* 1 while this process is recorded, else 0. The first call opens the process's part of the recording. */
JMC_API int jmc_is_recording(void);

typedef uint32_t jmc_scope;
typedef enum jmc_kind { JMC_MODE, JMC_PHASE, JMC_MODULE, JMC_OP, JMC_FUNCTION, JMC_REGION, JMC_TENSORS } jmc_kind;

/* The scope of that kind (jmc_kind) and name below `parent`; equal arguments return the same scope. Returns `parent`
 * for an unknown kind or when there are too many scopes, and 0 when the process is not recorded. */
JMC_API jmc_scope jmc_child_scope(jmc_scope parent, int kind, const char* name);

/* The innermost scope of this thread; 0 outside of all scopes. */
JMC_API jmc_scope jmc_current_scope(void);
/* Enters a scope, which need not be a child of the current one, until the matching leave. Returns the number of scopes
 * that this thread was in before the call (its depth). */
JMC_API size_t jmc_enter(jmc_scope scope);
JMC_API void jmc_leave(void);
/* Leaves all scopes entered at that depth or deeper, including those whose leave an exception skipped. */
JMC_API void jmc_leave_to(size_t depth);
/* The depth of this thread, as jmc_enter would return it. */
JMC_API size_t jmc_depth(void);

/* Begins a backward pass: this thread enters `scope`. Until the pass ends, threads that have entered no scope (such as
 * autograd's) are in `scope`, too, unless they set a more specific one. Passes nest. */
JMC_API void jmc_backward_begin(jmc_scope scope);
JMC_API void jmc_backward_end(void);
/* Sets the scope of this thread's backward work to `scope`, until the next call or the end of the pass. */
JMC_API void jmc_set_backward_scope(jmc_scope scope);
/* Like jmc_set_backward_scope, but counts every call as an entry of the scope, even if the scope does not change. */
JMC_API void jmc_backward_operation(jmc_scope scope);

/* Marks the start of a step or an epoch. `number` NULL: one more than the last; the first is 0. From the first call on,
 * steps (or epochs) are no longer inferred from events, and those inferred before do not count. */
JMC_API void jmc_step(const int64_t* number);
JMC_API void jmc_epoch(const int64_t* number);
JMC_API void jmc_metric(const char* name, double value, int64_t time_ns); /* CLOCK_MONOTONIC; 0: now */
JMC_API void jmc_mark(int kind, uint64_t id, const char* name);           /* kind: MarkKind of src/model/recorded.h */
JMC_API void jmc_region_push(const char* name);
JMC_API int jmc_region_pop(void); /* 0 if this thread has no open region; 1 if not recorded */

/* The part of one request in a forward step of a serving engine; jm_request_work of joulemap.h without its size. */
typedef struct jmc_request {
  const char* id;
  const char* tenant; /* NULL: none; like model */
  const char* model;
  uint32_t prompt_tokens;
  uint32_t cached_tokens;
  uint32_t decoded_tokens;
  uint32_t rejected_tokens;
  uint32_t context_tokens;
  uint32_t events;
} jmc_request;
/* Reports a forward step. Times are CLOCK_MONOTONIC. */
JMC_API void jmc_engine_step(int64_t begin_ns, int64_t end_ns, const jmc_request* requests, size_t count);

/* Events of a training or serving loop, in order of time; the capture infers steps and epochs from them. */
typedef enum jmc_event {
  JMC_LOADER_NEW,                /* a new iterator over the data */
  JMC_LOADER_NEXT,               /* the next batch is requested */
  JMC_FORWARD_TRAIN,             /* an outermost module is called, with gradients */
  JMC_FORWARD_INFER,             /* the same, without gradients */
  JMC_FORWARD_DONE,              /* the outermost module returned */
  JMC_BACKWARD,                  /* a backward pass begins */
  JMC_OPTIMIZER_DONE,            /* parameters were updated */
  JMC_FORWARD_TRAIN_AFTER_INFER, /* JMC_FORWARD_TRAIN of the module whose JMC_FORWARD_INFER was this thread's last */
  JMC_FORWARD_TRAIN_OTHER,       /* JMC_FORWARD_TRAIN of a module not yet called in this step, after calls of others */
  JMC_FORWARD_INFER_TEACHER,     /* JMC_FORWARD_INFER of a module that an earlier training step began with */
  JMC_LOADER_END                 /* a batch is requested, but the iterator has no further one */
} jmc_event;
/* Reports an event. Returns 1 if it begins a step; always 0 once the program has called jmc_step. */
JMC_API int jmc_on_event(int event);
/* jmc_on_event for JMC_LOADER_NEXT and JMC_LOADER_END of one of several iterators: `iterator` is the number of
 * JMC_LOADER_NEW events before its first batch. jmc_on_event means the newest. */
JMC_API int jmc_on_loader_event(int event, uint64_t iterator);
/* 1 if the operations of the current step are to be recorded, too. 0 when the process is not recorded. */
JMC_API int jmc_step_is_sampled(void);
/* 1 if modules and kernels of the current step are traced: every step, or in light mode a few. 0 when the process is
 * not recorded. */
JMC_API int jmc_step_is_traced(void);

/* Begins (1) or ends (0) probing, which replays modules to measure their power. The current step ends; kernels of the
 * replay belong to no step and are recorded one by one. The caller first enters a scope in the mode "probe". */
JMC_API void jmc_probing(int is_active);

/* Begins (1) or ends (0) Joulemap's own work on this thread, such as reading a loss value: its kernels are not
 * recorded. */
JMC_API void jmc_own_work(int is_active);

/* Allows closing CUPTI during untraced steps (1), or keeps it open (0): nodes of CUDA graphs that are created while it
 * is closed have no scopes. Initially 0. */
JMC_API void jmc_allow_cupti_detach(int is_allowed);

/* Another profiler starts (1) or has stopped (0) in this process. Joulemap releases CUPTI while that profiler runs, so
 * the kernels of that time are missing. */
JMC_API void jmc_other_profiler(int is_running);

/* Maps an instruction of a program that XLA compiled to its operation in the source: "jit(step)/jvp(Net)/Dense_0/add".
 * Kernels that XLA launches in the instruction's NVTX range belong to that operation. An empty module announces that
 * all programs will be reported, so that unreported ones are autotuning trials of the compiler. */
JMC_API void jmc_hlo_op(const char* module, const char* instruction, const char* op_name);

/* Adds a stack sample: the innermost function, and the run time in ns that the sample represents. It belongs to the
 * current scope of the thread that last entered a scope. */
JMC_API void jmc_function_sample(const char* name, int64_t time_ns);

/* Adds a diagnostic about lost or uncaptured data, which every report contains. */
JMC_API void jmc_diagnose(const char* code, const char* message, const char* remedy);
/* Adds a fact about the environment, such as the version of a library. */
JMC_API void jmc_fact(const char* name, const char* value);

/* Joins the recording that the environment now names (`joulemap record -p PID --announce`), until jmc_leave_recording.
 * Returns 1 if the process is recorded now, also when it already was; else 0. Scopes of an earlier recording are
 * invalid. */
JMC_API int jmc_join_recording(void);
/* Ends this process's part, as jmc_finish does, and records nothing until the process joins again. */
JMC_API void jmc_leave_recording(void);

/* Writes buffered data and ends this process's part. The library calls it at exit; a process that ends by _exit or
 * similar calls it before. */
JMC_API void jmc_finish(void);

#ifdef __cplusplus
}
#endif
#endif
