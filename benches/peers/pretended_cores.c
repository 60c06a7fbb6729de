/* Simulates a machine with PRETENDED_CORES cores. Preload it into a program: it replaces
   sched_getaffinity, which programs call to decide how many threads to start. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    const char *text = getenv("PRETENDED_CORES");
    int cores = text ? atoi(text) : 1;
    (void)pid;
    CPU_ZERO_S(size, set);
    for (int core = 0; core < cores; core++)
        CPU_SET_S(core, size, set);
    return 0;
}
