/* A wall clock that a test can step: the seconds in the file $CLOCK_STEP_FILE (a mapped 64-bit integer) are added to it.
 * Other clocks are not touched, as with a real step. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static volatile int64_t *step_s;

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("CLOCK_STEP_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        step_s = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!real_clock_gettime)
        real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real_clock_gettime(clock, now);
    if (status == 0 && step_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *step_s;
    return status;
}
