/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libjoulemap_capture.so, which lives in the processes that `joulemap record` watches: where the program
 * is, step by step. Python's hooks and libjoulemap.so use it; programs use joulemap.h. C99.
 *
 * A place is a node of a tree (0 is its root): a phase, a module, an operation, a region. A thread is at one place at a
 * time; time, CPU time and the kernels it launches are that place's. Any thread may call anything; outside of a recording
 * every call returns at once. Names are UTF-8 and are copied.
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

typedef uint32_t jmc_place;
typedef enum jmc_kind { JMC_MODE, JMC_PHASE, JMC_MODULE, JMC_OP, JMC_FUNCTION, JMC_REGION, JMC_TENSORS } jmc_kind;

/* The place of that kind and name within another: the same for the same three. 0 when nothing is recorded. */
JMC_API jmc_place jmc_place_in(jmc_place parent, int kind, const char* name);

/* Where this thread is. */
JMC_API jmc_place jmc_here(void);
/* Goes to a place, whatever its parent, until the matching leave. Returns how deep the thread was before. */
JMC_API size_t jmc_enter(jmc_place place);
JMC_API void jmc_leave(void);
/* Leaves everything that was entered at that depth or deeper: what an exception skipped, too. */
JMC_API void jmc_leave_to(size_t depth);
/* How deep this thread is: what jmc_enter would return. */
JMC_API size_t jmc_depth(void);

/* A thread that works for another (autograd's, say) is at no place of its own. While a backward pass runs it is at `place`,
 * until it says more. Passes nest. */
JMC_API void jmc_backward_begin(jmc_place place);
JMC_API void jmc_backward_end(void);
/* From now on this thread works on the backward pass of `place`, until it says otherwise or the pass ends. */
JMC_API void jmc_backward_at(jmc_place place);
/* The same of an operation: each is counted, also where the one before was of the same place. */
JMC_API void jmc_backward_operation(jmc_place place);

/* Steps and epochs the program names itself; number NULL: one more than the last. They end inference. */
JMC_API void jmc_step(const int64_t* number);
JMC_API void jmc_epoch(const int64_t* number);
JMC_API void jmc_metric(const char* name, double value, int64_t time_ns); /* time 0: now */
JMC_API void jmc_mark(int kind, uint64_t id, const char* name);
JMC_API void jmc_region_push(const char* name);
JMC_API int jmc_region_pop(void); /* 0 when none is open on this thread */

/* What happens in a training or serving loop, in its order: steps and epochs are inferred from it. */
typedef enum jmc_event {
  JMC_LOADER_NEW,    /* a new iterator over the data */
  JMC_LOADER_NEXT,   /* asked for the next batch */
  JMC_FORWARD_TRAIN, /* an outermost module is called, with gradients */
  JMC_FORWARD_INFER, /* and without */
  JMC_FORWARD_DONE,  /* it returned */
  JMC_BACKWARD,      /* a backward pass begins */
  JMC_OPTIMIZER_DONE /* parameters were updated */
} jmc_event;
/* 1 when a new step has begun. */
JMC_API int jmc_on_event(int event);
/* Whether the present step is to be captured in detail: operations and functions, and kernels when records are rare. */
JMC_API int jmc_step_is_sampled(void);
/* Whether modules are to be followed in the present step: always, unless the program is launch bound. */
JMC_API int jmc_step_is_followed(void);

/* Modules are replayed from now on (1), or no more (0), to find out what they draw: of no step, in full detail. Whoever says
 * so goes to places within the mode "probe" first. */
JMC_API void jmc_probing(int on);

/* What this thread launches from now on is the recorder's own (1), or the program's again (0). */
JMC_API void jmc_own_work(int on);

/* What tells kernels may be closed (1) while nobody listens, or must see everything from now on (0): CUDA graphs are
 * made. */
JMC_API void jmc_kernels_may_rest(int on);

/* Another profiler begins (1) or ends (0) in this process: it may take the GPU's records for itself. */
JMC_API void jmc_someone_profiles(int on);

/* Which operation of the source an instruction of a program that XLA compiled comes from: "jit(step)/jvp(Net)/Dense_0/add".
 * Kernels that XLA launches within its NVTX range are that operation's. An empty module: all programs are going to be told,
 * so that those that are not are trials of the compiler's. */
JMC_API void jmc_hlo_op(const char* module, const char* instruction, const char* op_name);

/* The program was seen in a function, by somebody who looks now and then: it stands for so much time. */
JMC_API void jmc_function_sample(const char* name, int64_t time_ns);

/* What was lost or could not be captured; carried along by every report. */
JMC_API void jmc_diagnose(const char* code, const char* message, const char* remedy);
/* A fact about the setting. */
JMC_API void jmc_fact(const char* name, const char* value);

/* The environment has come to name a recording (`joulemap record -p PID --announce`): this process is part of it from now
 * on, until jmc_leave_recording. 1 when it is recorded, also where it was before. Places of an earlier one mean nothing. */
JMC_API int jmc_join_recording(void);
/* Ends this process's part, as jmc_finish does, and records nothing any more, until it joins again. */
JMC_API void jmc_leave_recording(void);

/* Writes what is left and ends this process's part. Called at exit; whoever leaves by another door calls it before. */
JMC_API void jmc_finish(void);

#ifdef __cplusplus
}
#endif
#endif
