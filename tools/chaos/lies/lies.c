/*
 * What a process is told that is not so: its clock, and how its disk does. It is put into a process by LD_PRELOAD, and
 * reads what to lie about out of a file that both map (../lying.py writes it, and knows the order of the fields).
 *
 * CHAOS_LIES names that file. Disks fail only for files below the folder that CHAOS_DISK names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct lies {
    int64_t clock_ahead;    /* nanoseconds that CLOCK_REALTIME is ahead */
    int64_t syncs_failing;  /* how many of the next syncs fail; -1 for all */
    int64_t sync_error;     /* as errno */
    int64_t sync_delay;     /* microseconds that each sync takes more */
    int64_t writes_failing; /* how many of the next writes fail; -1 for all */
    int64_t write_error;
    int64_t writes_torn;    /* whether a write that fails has written its first half */
};

static struct lies truth;
static volatile struct lies *told = &truth;
static const char *disk;
static size_t disk_length;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CHAOS_LIES");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof(struct lies), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            told = mapped;
        close(file);
    }
    disk = getenv("CHAOS_DISK");
    disk_length = disk ? strlen(disk) : 0;
}

/* The clock */

int clock_gettime(clockid_t which, struct timespec *found)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, found);
    if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        int64_t moment = found->tv_sec * INT64_C(1000000000) + found->tv_nsec + told->clock_ahead;
        found->tv_sec = moment / 1000000000;
        found->tv_nsec = moment % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}

/* The disk */

static int is_on_disk(int file)
{
    char link[64], path[4096];
    if (!disk_length)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    return length > (ssize_t)disk_length && memcmp(path, disk, disk_length) == 0 && path[disk_length] == '/';
}

static int fails(volatile int64_t *left)
{
    int64_t now = *left;
    if (now > 0)
        *left = now - 1;
    return now != 0;
}

static int synced(int file, long number)
{
    if ((told->syncs_failing || told->sync_delay) && is_on_disk(file)) {
        if (told->sync_delay)
            usleep((useconds_t)told->sync_delay);
        if (fails(&told->syncs_failing)) {
            errno = (int)told->sync_error;
            return -1;
        }
    }
    return (int)syscall(number, file);
}

int fsync(int file) { return synced(file, SYS_fsync); }

int fdatasync(int file) { return synced(file, SYS_fdatasync); }

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at)
{
    if (told->writes_failing && is_on_disk(file) && fails(&told->writes_failing)) {
        if (told->writes_torn && size > 1)
            syscall(SYS_pwrite64, file, bytes, size / 2, at);
        errno = (int)told->write_error;
        return -1;
    }
    return syscall(SYS_pwrite64, file, bytes, size, at);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { return pwrite64(file, bytes, size, at); }
