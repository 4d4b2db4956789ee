/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of Joulemap: the energy of parts of a program, measured while it runs. C99; link with -ljoulemap.
 *
 *   jm_window window = jm_begin("epoch");
 *   train();
 *   jm_end(window);
 *   jm_energy energy = {sizeof energy};
 *   if (jm_window_wait(window, &energy) == JM_OK && energy.provenance != JM_UNKNOWN) printf("%.3f J\n", energy.joules);
 *   jm_window_free(window);
 *
 * All functions are thread-safe; windows may nest and overlap. Unless jm_start did, the first jm_begin opens the
 * sensors and starts background threads, one for each sensor and one more. Functions that return int return a
 * jm_status, except jm_is_recording; when it is not JM_OK, jm_last_error() returns the reason. Energy is that of the
 * whole machine while the window was open. A structure's first member is its size, set by the caller: later versions
 * only add members at the end. A library accepts structures of all versions: members that the program does not define
 * count as zero, and members that the library does not define must be zero (else JM_USAGE). In a structure that the
 * library fills, it sets size to the number of bytes filled.
 *
 * A fork is safe at any time: the child starts its own measurement at its first window and cannot use those of its
 * parent. The child of vfork, posix_spawn or a bare clone must not call this interface before exec. A signal handler
 * may fork; its child must not return into a call that the signal interrupted. Names are UTF-8 and are copied.
 */
#ifndef JOULEMAP_H
#define JOULEMAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JM_API __attribute__((visibility("default")))

typedef enum jm_status {
  JM_OK = 0,
  JM_FAILED = 1,    /* a system call failed, or memory or threads ran out */
  JM_USAGE = 2,     /* invalid call or argument; see jm_last_error() */
  JM_NOT_FOUND = 3, /* no such window: freed, already ended (jm_end), or from before a restart or a fork */
  JM_FULL = 4       /* reserved: when a million windows exist, jm_begin returns 0 */
} jm_status;

typedef enum jm_provenance {
  JM_UNKNOWN = 0,  /* the energy is unknown (NaN); `reason` contains the cause */
  JM_MEASURED = 1, /* read from hardware */
  JM_ESTIMATED = 2 /* computed by a model from CPU time */
} jm_provenance;

/* Version of the library, such as "0.1.0". */
JM_API const char* jm_version(void);
/* Message and remedy of this thread's last failed call; empty when none has failed. Valid until the next failure. */
JM_API const char* jm_last_error(void);

typedef struct jm_options {
  size_t size;
  const char* sensors; /* such as "powercap,estimate"; NULL: environment variable JOULEMAP_SENSORS, else all */
  const char* sysroot; /* folder with sys and proc, for tests; NULL: environment variable JOULEMAP_SYSROOT, else / */
  double period_s;     /* 0.0001 to 60 s between two reads of a sensor; 0: 5 ms, for slow sensors longer */
} jm_options;

/* Opens the sensors now instead of at the first window. NULL: default options. JM_USAGE if they are already open. */
JM_API int jm_start(const jm_options* options);
/* Stops the background threads. Windows that have ended stay readable until the next jm_start or jm_begin. */
JM_API int jm_stop(void);

/* A window of time; 0 is none. */
typedef uint64_t jm_window;

/* Opens a window; 0 on failure. Once the sensors are open, it takes about 0.1 us, without a lock or a system call. In a
 * recorded process it also writes a mark with `name` (may be NULL) to the recording, under a lock. */
JM_API jm_window jm_begin(const char* name);
/* Closes a window, at the same cost. JM_NOT_FOUND if the window is unknown or was closed before. */
JM_API int jm_end(jm_window window);
/* Frees a window, open or closed; ignores an unknown one. A window takes a few hundred bytes for each sensor channel.
 * */
JM_API void jm_window_free(jm_window window);

typedef struct jm_energy {
  size_t size;
  double elapsed_s;
  double joules;        /* measured_j if anything was measured, else estimated_j */
  double uncertainty_j; /* half width of the 95 % interval of joules */
  double mean_w;        /* joules / elapsed_s */
  int32_t provenance;   /* of joules: a jm_provenance */
  int32_t settled;      /* 1: final; later calls return the same */
  double measured_j;    /* sum of the measured domains that are counted (jm_domain), or NaN */
  double estimated_j;   /* sum of the estimated domains that are counted, or NaN */
  int64_t begin_ns;     /* CLOCK_MONOTONIC */
  int64_t end_ns;       /* CLOCK_MONOTONIC; now if the window is open */
  size_t domains;       /* count; see jm_window_domain */
  size_t diagnostics;   /* count; see jm_window_diagnostic */
  char reason[128];     /* why joules are unknown; else empty */
} jm_energy;

/* Fills `energy` with the result of a closed window. Waits until the sensors have updated after its end, at most 0.3 s.
 * JM_USAGE if the window is still open. */
JM_API int jm_window_wait(jm_window window, jm_energy* energy);
/* Fills `energy` with what is known now, without waiting; for an open window, the energy so far. */
JM_API int jm_window_peek(jm_window window, jm_energy* energy);

typedef struct jm_domain {
  size_t size;
  double joules;
  double uncertainty_j;
  double mean_w;
  int32_t provenance;
  int32_t counted; /* 1: part of the sums of jm_energy; 0: another domain contains it, or what it measures is unknown */
  char name[64];   /* "package-0", "dram-0", "gpu0" */
  char part_of[64]; /* the domain that contains it, or empty */
  char sensor[32];
  char reason[64]; /* why joules are unknown; else empty */
} jm_domain;

/* Copies a domain of the result of this thread's last jm_window_wait or jm_window_peek; index < energy.domains. */
JM_API int jm_window_domain(size_t index, jm_domain* domain);

typedef struct jm_diagnostic {
  size_t size;
  uint64_t count;    /* occurrences */
  char code[48];     /* for programs, such as "counter_reset" */
  char message[512]; /* for people */
  char remedy[512];  /* what to do about it, or empty */
} jm_diagnostic;

/* Copies a diagnostic, a fault in the data of that same result; index < energy.diagnostics. */
JM_API int jm_window_diagnostic(size_t index, jm_diagnostic* diagnostic);

/* Marks for a recording. They are recorded if the process runs under `joulemap record`; else they cost a few
 * nanoseconds and do nothing. A region belongs to the thread that opens it; regions of a thread nest. jm_is_recording
 * returns 1 or 0; jm_region_pop returns JM_USAGE if this thread has no open region. */
JM_API int jm_is_recording(void);
JM_API int jm_region_push(const char* name);
JM_API int jm_region_pop(void);
/* A step or an epoch begins; number NULL: one more than the last. The first is 0. JM_USAGE: the number is negative. */
JM_API int jm_step(const int64_t* number);
JM_API int jm_epoch(const int64_t* number);
/* Reports a metric: loss, accuracy, samples. It belongs to the current step. */
JM_API int jm_log(const char* name, double value);

/* Forward steps of a serving engine, for `joulemap report --by request` and `--by token`: for each step, the requests in
 * it and what the step computed for each of them. Recorded as marks are; a call takes about 0.1 us per request. */
typedef enum jm_request_event {
  JM_FINISHED = 1,
  JM_PREEMPTED = 2, /* the KV cache of the request is dropped; its tokens will be computed again */
  JM_ABORTED = 4
} jm_request_event;

typedef struct jm_request_work {
  size_t size;
  const char* id;     /* the same in all steps of the request */
  const char* tenant; /* labels of the request, read in its first step; NULL: none */
  const char* model;
  uint32_t prompt_tokens;   /* prompt tokens that the step computed: the prompt, or a chunk of it */
  uint32_t cached_tokens;   /* prompt tokens taken from a prefix cache; set it in the first step only */
  uint32_t decoded_tokens;  /* tokens that the step generated, also the first token after the prompt */
  uint32_t rejected_tokens; /* speculative tokens that the step computed in vain */
  uint32_t context_tokens;  /* length of the KV cache after the step */
  uint32_t events;          /* a sum of jm_request_event */
} jm_request_work;

typedef struct jm_engine_step_work {
  size_t size;
  int64_t begin_ns; /* CLOCK_MONOTONIC */
  int64_t end_ns;   /* CLOCK_MONOTONIC; 0: now. Synchronize with the GPU first */
  const jm_request_work* requests;
  size_t request_count; /* at most 65536 */
} jm_engine_step_work;

/* Reports a step after it ended. A step with begin_ns equal to end_ns contains only events. */
JM_API int jm_engine_step(const jm_engine_step_work* step);

/* Available and unavailable sensors with reasons: the text of `joulemap doctor --json`. Free it with jm_text_free. */
JM_API int jm_doctor_json(const jm_options* options, char** text);
JM_API void jm_text_free(char* text);

#ifdef __cplusplus
}
#endif
#endif
