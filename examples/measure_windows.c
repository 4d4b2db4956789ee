/* SPDX-License-Identifier: Apache-2.0
 *
 * The energy of a part of a C program.
 *
 *   cc -std=c99 -Iinclude examples/measure_windows.c -Lbuild/lib -ljoulemap -Wl,-rpath,$PWD/build/lib -o measure_windows
 */
#include <joulemap/joulemap.h>
#include <stdio.h>

static double work(long rounds) {
  double sum = 0;
  for (long i = 1; i <= rounds; ++i) sum += 1.0 / (double)i;
  return sum;
}

int main(void) {
  jm_window window = jm_begin("work");
  if (window == 0) {
    fprintf(stderr, "measure_windows: %s\n", jm_last_error());
    return 1;
  }
  printf("sum %.6f\n", work(50000000));
  jm_end(window);

  jm_energy energy = {sizeof energy};
  if (jm_window_wait(window, &energy) != JM_OK) {
    fprintf(stderr, "measure_windows: %s\n", jm_last_error());
    return 1;
  }
  if (energy.provenance == JM_UNKNOWN) {
    printf("work: energy unknown in %.3f s (%s)\n", energy.elapsed_s, energy.reason);
  } else {
    printf("work: %.3f J +- %.3f J in %.3f s, %s\n", energy.joules, energy.uncertainty_j, energy.elapsed_s,
           energy.provenance == JM_MEASURED ? "measured" : "estimated");
  }
  for (size_t i = 0; i < energy.domains; ++i) {
    jm_domain domain = {sizeof domain};
    if (jm_window_domain(i, &domain) != JM_OK) continue;
    if (domain.provenance == JM_UNKNOWN) {
      printf("  %s: unknown (%s)\n", domain.name, domain.reason);
    } else {
      printf("  %s: %.3f J%s\n", domain.name, domain.joules, domain.counted ? "" : ", part of another");
    }
  }
  jm_window_free(window);
  return 0;
}
