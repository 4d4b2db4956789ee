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
#define JUMP_TO(name) "jmp " name "@PLT"
#define VERSION(x86_64) x86_64
constexpr int kStatVersion = 1;
#elif defined(__aarch64__)
#define JUMP_TO(name) "b " name
#define VERSION(x86_64) "GLIBC_2.17"  // the first glibc of this architecture
constexpr int kStatVersion = 0;
#else
#error "no glibc versions are listed for this architecture"
#endif

// A tail jump passes any arguments and result. Each forwarder has its own section, so that --gc-sections drops unused ones.
#define FORWARD(name, x86_64)                                                                            \
  __asm__(".pushsection .text." name ",\"ax\",%progbits\n.globl " name "\n.hidden " name "\n.type " name \
          ",%function\n.symver joulemap_old_" name "," name                                              \
          "@" VERSION(x86_64) "\n" name ": " JUMP_TO("joulemap_old_" name) "\n.size " name ",.-" name    \
                                                                           "\n.popsection\n")

FORWARD("exp", "GLIBC_2.2.5");
FORWARD("exp2", "GLIBC_2.2.5");
FORWARD("log", "GLIBC_2.2.5");
FORWARD("log2", "GLIBC_2.2.5");
FORWARD("pow", "GLIBC_2.2.5");
FORWARD("dlclose", "GLIBC_2.2.5");
FORWARD("dlerror", "GLIBC_2.2.5");
FORWARD("dlopen", "GLIBC_2.2.5");
FORWARD("dlsym", "GLIBC_2.2.5");
FORWARD("pthread_create", "GLIBC_2.2.5");
FORWARD("pthread_detach", "GLIBC_2.2.5");
FORWARD("pthread_getcpuclockid", "GLIBC_2.2.5");
FORWARD("pthread_join", "GLIBC_2.2.5");
FORWARD("pthread_mutex_trylock", "GLIBC_2.2.5");
FORWARD("pthread_mutexattr_destroy", "GLIBC_2.2.5");
FORWARD("pthread_mutexattr_init", "GLIBC_2.2.5");
FORWARD("pthread_mutexattr_settype", "GLIBC_2.2.5");
FORWARD("pthread_once", "GLIBC_2.2.5");
FORWARD("pthread_setname_np", "GLIBC_2.12");
FORWARD("pthread_sigmask", "GLIBC_2.2.5");

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
__asm__(".symver __xstat,__xstat@" VERSION("GLIBC_2.2.5"));
__asm__(".symver __fxstat,__fxstat@" VERSION("GLIBC_2.2.5"));
__asm__(".symver __lxstat,__lxstat@" VERSION("GLIBC_2.2.5"));
#define STAT(name, type, old) \
  __attribute__((visibility("hidden"))) int name(type file, void* status) { return old(kStatVersion, file, status); }
STAT(stat, const char*, __xstat)
STAT(stat64, const char*, __xstat)
STAT(fstat, int, __fxstat)
STAT(fstat64, int, __fxstat)
STAT(lstat, const char*, __lxstat)
STAT(lstat64, const char*, __lxstat)

// glibc 2.30. On an older one the deadline is converted to the wall clock: if that clock is set during the wait, the wait
// ends early or late by as much.
using Wait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

static int wait_by_wall_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                              const timespec* deadline) {
  constexpr long kNanoseconds = 1'000'000'000;
  timespec now{};
  timespec wall{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += deadline->tv_sec - now.tv_sec;
  wall.tv_nsec += deadline->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) wall = {wall.tv_sec - 1, wall.tv_nsec + kNanoseconds};
  if (wall.tv_nsec >= kNanoseconds) wall = {wall.tv_sec + 1, wall.tv_nsec - kNanoseconds};
  return pthread_cond_timedwait(condition, mutex, &wall);
}

__attribute__((visibility("hidden"))) int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                                 clockid_t clock, const timespec* deadline) {
  // Atomic, not a static with an initializer: its guard would link parts of libstdc++ into files that use none.
  static Wait* found = nullptr;
  Wait* wait = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (wait == nullptr) {
    wait = reinterpret_cast<Wait*>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
    if (wait == nullptr) wait = wait_by_wall_clock;
    __atomic_store_n(&found, wait, __ATOMIC_RELAXED);
  }
  return wait(condition, mutex, clock, deadline);
}

// glibc 2.34; before, the program passed a function that runs its constructors.
using Main = int(int, char**, char**);
using Constructor = void(int, char**, char**);
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));
void _init();
int joulemap_old_start_main(Main*, int, char**, Constructor*, void (*)(), void (*)(), void*);
__asm__(".symver joulemap_old_start_main,__libc_start_main@" VERSION("GLIBC_2.2.5"));

static void run_constructors(int count, char** arguments, char** environment) {
  _init();
  for (Constructor** next = __init_array_start; next != __init_array_end; ++next)
    (*next)(count, arguments, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(Main* main, int count, char** arguments, Constructor*,
                                                            void (*)(), void (*at_exit)(), void* stack_end) {
  return joulemap_old_start_main(main, count, arguments, run_constructors, nullptr, at_exit, stack_end);
}

}  // extern "C"
