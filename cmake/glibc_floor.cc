// SPDX-License-Identifier: Apache-2.0
//
// Lowers the glibc that portable builds need to 2.28. The linker binds a symbol to its newest version, for example
// pthread_create@GLIBC_2.34 on Debian 12. This object defines these symbols itself, hidden, and forwards each to the oldest
// version, which every later glibc still has. Functions that glibc 2.28 lacks are implemented by older ones.
//
// A portable target links this object and, for glibc before 2.34, libpthread.so.0 and libdl.so.2. tools/make_dist.sh and
// tools/check_wheel.py refuse a file that needs a newer symbol; add that symbol here.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JUMP_TO_SYMBOL(name) "jmp " name "@PLT"
#define SYMBOL_VERSION(x86_64) x86_64
constexpr int kStatVersion = 1;
#elif defined(__aarch64__)
#define JUMP_TO_SYMBOL(name) "b " name
#define SYMBOL_VERSION(x86_64) "GLIBC_2.17"  // the first glibc of this architecture
constexpr int kStatVersion = 0;
#else
#error "no glibc versions are listed for this architecture"
#endif

// A tail jump passes any arguments and result. Each forwarder has its own section, so that --gc-sections drops unused ones.
#define FORWARD_SYMBOL(name, x86_64)                                                                                \
  __asm__(".pushsection .text." name ",\"ax\",%progbits\n.globl " name "\n.hidden " name "\n.type " name            \
          ",%function\n.symver joulemap_old_" name "," name                                                         \
          "@" SYMBOL_VERSION(x86_64) "\n" name ": " JUMP_TO_SYMBOL("joulemap_old_" name) "\n.size " name ",.-" name \
                                                                                         "\n.popsection\n")

FORWARD_SYMBOL("exp", "GLIBC_2.2.5");
FORWARD_SYMBOL("exp2", "GLIBC_2.2.5");
FORWARD_SYMBOL("log", "GLIBC_2.2.5");
FORWARD_SYMBOL("log2", "GLIBC_2.2.5");
FORWARD_SYMBOL("pow", "GLIBC_2.2.5");
FORWARD_SYMBOL("dlclose", "GLIBC_2.2.5");
FORWARD_SYMBOL("dlerror", "GLIBC_2.2.5");
FORWARD_SYMBOL("dlopen", "GLIBC_2.2.5");
FORWARD_SYMBOL("dlsym", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_create", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_detach", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_getcpuclockid", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_join", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_mutex_trylock", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_mutexattr_destroy", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_mutexattr_init", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_mutexattr_settype", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_once", "GLIBC_2.2.5");
FORWARD_SYMBOL("pthread_setname_np", "GLIBC_2.12");
FORWARD_SYMBOL("pthread_sigmask", "GLIBC_2.2.5");

extern "C" {

// glibc 2.32: libstdc++ skips atomic operations while it is true. False is always correct.
__attribute__((visibility("hidden"))) extern char __libc_single_threaded;
char __libc_single_threaded = 0;

// glibc 2.30.
__attribute__((visibility("hidden"))) pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// glibc 2.33; before, stat() was an inline function that passed the version of the structure.
int __xstat(int version, const char* path, void* status);
int __fxstat(int version, int file, void* status);
int __lxstat(int version, const char* path, void* status);
__asm__(".symver __xstat,__xstat@" SYMBOL_VERSION("GLIBC_2.2.5"));
__asm__(".symver __fxstat,__fxstat@" SYMBOL_VERSION("GLIBC_2.2.5"));
__asm__(".symver __lxstat,__lxstat@" SYMBOL_VERSION("GLIBC_2.2.5"));
#define FORWARD_STAT(name, type, old) \
  __attribute__((visibility("hidden"))) int name(type file, void* status) { return old(kStatVersion, file, status); }
FORWARD_STAT(stat, const char*, __xstat)
FORWARD_STAT(stat64, const char*, __xstat)
FORWARD_STAT(fstat, int, __fxstat)
FORWARD_STAT(fstat64, int, __fxstat)
FORWARD_STAT(lstat, const char*, __lxstat)
FORWARD_STAT(lstat64, const char*, __lxstat)

// glibc 2.30. On an older one the deadline is converted to the wall clock: if that clock is set during the wait, the wait
// ends early or late by as much.
using CondClockWaitFunction = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

static int wait_by_wall_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                              const timespec* deadline) {
  constexpr long kNanosecondsPerSecond = 1'000'000'000;
  timespec now{};
  timespec wall_time{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall_time);
  wall_time.tv_sec += deadline->tv_sec - now.tv_sec;
  wall_time.tv_nsec += deadline->tv_nsec - now.tv_nsec;
  if (wall_time.tv_nsec < 0) wall_time = {wall_time.tv_sec - 1, wall_time.tv_nsec + kNanosecondsPerSecond};
  if (wall_time.tv_nsec >= kNanosecondsPerSecond)
    wall_time = {wall_time.tv_sec + 1, wall_time.tv_nsec - kNanosecondsPerSecond};
  return pthread_cond_timedwait(condition, mutex, &wall_time);
}

__attribute__((visibility("hidden"))) int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                                 clockid_t clock, const timespec* deadline) {
  // Atomic, not a static with an initializer: its guard would link parts of libstdc++ into files that use none.
  static CondClockWaitFunction* found = nullptr;
  CondClockWaitFunction* wait = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (wait == nullptr) {
    wait = reinterpret_cast<CondClockWaitFunction*>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
    if (wait == nullptr) wait = wait_by_wall_clock;
    __atomic_store_n(&found, wait, __ATOMIC_RELAXED);
  }
  return wait(condition, mutex, clock, deadline);
}

// glibc 2.34; before, the program passed a function that runs its constructors.
using MainFunction = int(int, char**, char**);
using InitArrayFunction = void(int, char**, char**);
extern InitArrayFunction* __init_array_start[] __attribute__((visibility("hidden")));
extern InitArrayFunction* __init_array_end[] __attribute__((visibility("hidden")));
void _init();
int joulemap_old_start_main(MainFunction*, int, char**, InitArrayFunction*, void (*)(), void (*)(), void*);
__asm__(".symver joulemap_old_start_main,__libc_start_main@" SYMBOL_VERSION("GLIBC_2.2.5"));

static void run_constructors(int count, char** arguments, char** environment) {
  _init();
  for (InitArrayFunction** next = __init_array_start; next != __init_array_end; ++next)
    (*next)(count, arguments, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(MainFunction* main, int count, char** arguments,
                                                            InitArrayFunction*, void (*)(), void (*at_exit)(),
                                                            void* stack_end) {
  return joulemap_old_start_main(main, count, arguments, run_constructors, nullptr, at_exit, stack_end);
}

}  // extern "C"
