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
 * All functions are thread-safe; windows may nest and overlap. The first jm_begin starts the sensors and one background
 * thread unless jm_start did. Functions return JM_OK or another jm_status; jm_last_error() then returns the reason.
 * Energy is that of the whole machine while the window was open. A structure's first member is its size, set by the
 * caller: later versions only add members at the end. A library accepts structures of all versions: members that the
 * program does not define count as zero, and members that the library does not define must be zero (else JM_USAGE). In
 * a structure that the library fills, it sets size to the number of bytes filled.
 *
 * After a fork the child measures anew, whatever the parent's threads were doing: it cannot use the parent's windows.
 * The child of vfork, posix_spawn or a bare clone must not call this interface before exec. A signal handler may fork;
 * its child must not return into a call that the signal interrupted. Names are UTF-8 and are copied.
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
  JM_FAILED = 1,    /* a system call failed */
  JM_USAGE = 2,     /* invalid call or argument; see jm_last_error() */
  JM_NOT_FOUND = 3, /* no such window: freed, or the measurement stopped or the process forked since */
  JM_FULL = 4       /* a million windows exist; free some */
} jm_status;

typedef enum jm_provenance {
  JM_UNKNOWN = 0,  /* no energy: see `reason`; the numbers are NaN */
  JM_MEASURED = 1, /* read from hardware */
  JM_ESTIMATED = 2 /* computed by a model from CPU time */
} jm_provenance;

/* "0.1.0". */
JM_API const char* jm_version(void);
/* The error of this thread's last failed call (not JM_OK, or no window), and its remedy. */
JM_API const char* jm_last_error(void);

typedef struct jm_options {
  size_t size;
  const char* sensors; /* "powercap,estimate"; NULL: JOULEMAP_SENSORS, or all */
  const char* sysroot; /* root of sys and proc, for a fake machine; NULL: JOULEMAP_SYSROOT, or this machine */
  double period_s;     /* s between two reads of a sensor; 0: default of 5 ms */
} jm_options;

/* Opens the sensors now instead of at the first window. NULL: default options. JM_USAGE if already started. */
JM_API int jm_start(const jm_options* options);
/* Stops the threads. Windows that have ended stay readable until the next start. */
JM_API int jm_stop(void);

/* A window of time; 0 is none. */
typedef uint64_t jm_window;

/* Opens a window. Costs about a tenth of a microsecond; no lock, no system call. 0 on failure. */
JM_API jm_window jm_begin(const char* name);
/* Closes it, at the same cost. JM_NOT_FOUND if it is unknown or was closed before. */
JM_API int jm_end(jm_window window);
/* Frees it. A window takes a few hundred bytes for each sensor channel. */
JM_API void jm_window_free(jm_window window);

typedef struct jm_energy {
  size_t size;
  double elapsed_s;
  double joules;        /* measured_j if anything was measured, else estimated_j */
  double uncertainty_j; /* half width at 95 % of joules */
  double mean_w;
  int32_t provenance; /* of joules: a jm_provenance */
  int32_t settled;    /* 1: final; later calls return the same */
  double measured_j;  /* sum of the counted measured domains, or NaN */
  double estimated_j; /* sum of the counted estimated domains, or NaN */
  int64_t begin_ns;   /* CLOCK_MONOTONIC */
  int64_t end_ns;     /* CLOCK_MONOTONIC; now if the window is open */
  size_t domains;     /* count; see jm_window_domain */
  size_t diagnostics; /* count; see jm_window_diagnostic */
  char reason[128];   /* why joules are unknown; else empty */
} jm_energy;

/* Waits until the sensors update after the window's end, at most 0.3 s. JM_USAGE if it is still open. */
JM_API int jm_window_wait(jm_window window, jm_energy* energy);
/* Returns the current result without waiting; for an open window, the energy so far. */
JM_API int jm_window_peek(jm_window window, jm_energy* energy);

typedef struct jm_domain {
  size_t size;
  double joules;
  double uncertainty_j;
  double mean_w;
  int32_t provenance;
  int32_t counted;  /* 1: part of the sum; 0: another domain contains it, or its coverage is unknown */
  char name[64];    /* "package-0", "dram-0", "gpu0" */
  char part_of[64]; /* the domain that contains it, or empty */
  char sensor[32];
  char reason[64]; /* why joules are unknown; else empty */
} jm_domain;

/* A domain of this thread's last jm_window_wait or jm_window_peek; index < energy.domains. */
JM_API int jm_window_domain(size_t index, jm_domain* domain);

typedef struct jm_diagnostic {
  size_t size;
  uint64_t count;
  char code[48];     /* for programs: "counter_reset" */
  char message[512]; /* for people */
  char remedy[512];  /* remedy, or empty */
} jm_diagnostic;

/* A fault of the data behind that result; index < energy.diagnostics. */
JM_API int jm_window_diagnostic(size_t index, jm_diagnostic* diagnostic);

/* Marks for a recording. They are recorded if the process runs under `joulemap record`; else they cost a few
 * nanoseconds and do nothing. A region belongs to the thread that opens it; regions of a thread nest. */
JM_API int jm_is_recording(void);
JM_API int jm_region_push(const char* name);
JM_API int jm_region_pop(void);
/* A step or an epoch begins; number NULL: one more than the last. */
JM_API int jm_step(const int64_t* number);
JM_API int jm_epoch(const int64_t* number);
/* Reports a metric: loss, accuracy, samples. It belongs to the current step. */
JM_API int jm_log(const char* name, double value);

/* Available and unavailable sensors with reasons: the text of `joulemap doctor --json`. Free it with jm_text_free. */
JM_API int jm_doctor_json(const jm_options* options, char** text);
JM_API void jm_text_free(char* text);

#ifdef __cplusplus
}
#endif
#endif
