/*
 * What a process is told that is not so: its clock, and how its disk does. It is put into a process by LD_PRELOAD, and
 * reads what to lie about out of a file that both map (__init__.py writes it, and knows the order of the fields).
 *
 * CHAOS_LIES names that file. Disks fail only for files below the folder that CHAOS_DISK names. What is done to these is
 * noted in the file that CHAOS_JOURNAL names, so that it is known what a power cut would have left (disk_images.py).
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
#include <sys/uio.h>
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
    int64_t reads_failing;  /* how many of the next reads fail with EIO; -1 for all */
};

static struct lies truth;
static volatile struct lies *told = &truth;
static const char *disk;
static size_t disk_length;
static int journal = -1;

enum kind { WRITTEN = 1, SYNCED, NOT_SYNCED, CUT, REMOVED, RENAMED };

struct record { /* then come the path and what was written, or the new name */
    int64_t kind;
    int64_t path_length;
    int64_t at;
    int64_t size;
};

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
    path = getenv("CHAOS_JOURNAL");
    if (path)
        journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
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

static int is_below_disk(const char *path)
{
    return disk_length && strncmp(path, disk, disk_length) == 0 && path[disk_length] == '/';
}

/* Whether the file is on the disk; its path then. */
static int is_on_disk(int file, char path[4096])
{
    char link[64];
    if (!disk_length)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, 4095);
    path[length < 0 ? 0 : length] = 0;
    return is_below_disk(path);
}

/*
 * A sync that fails is told to everybody who has the file open, each once, as Linux does: who else syncs next must not
 * believe that its writes are on the disk.
 */
enum { FILES = 16, DESCRIPTORS = 4096 };
static struct {
    char path[4096];
    int failures;
} failing[FILES];
static int told_of[DESCRIPTORS]; /* how many failures of its file a descriptor knows of, and 1; 0 for a new one */

/* How often syncs of a file have failed, counting one more if there `is_another`. */
static int failures_of(const char *path, int is_another)
{
    int i = 0;
    while (i < FILES && failing[i].path[0] && strcmp(failing[i].path, path) != 0)
        i++;
    if (!is_another)
        return i < FILES ? failing[i].failures : 0;
    if (i == FILES)
        abort(); /* too many files fail */
    snprintf(failing[i].path, sizeof failing[i].path, "%s", path);
    return ++failing[i].failures;
}

/* Whether a sync of this file failed since it was opened, or was told of last. */
static int has_failed(int file, const char *path)
{
    if (file >= DESCRIPTORS)
        abort();
    int now = failures_of(path, 0) + 1, known = told_of[file];
    told_of[file] = now;
    return known && known != now;
}

int close(int file)
{
    if (file >= 0 && file < DESCRIPTORS)
        told_of[file] = 0;
    return (int)syscall(SYS_close, file);
}

static void note(enum kind kind, const char *path, int64_t at, const void *bytes, int64_t size)
{
    if (journal < 0)
        return;
    struct record record = {kind, (int64_t)strlen(path), at, size};
    struct iovec parts[] = {
        {&record, sizeof record}, {(void *)path, (size_t)record.path_length}, {(void *)bytes, bytes ? (size_t)size : 0}};
    if (writev(journal, parts, 3) < 0)
        abort(); /* what a power cut would leave were wrong from now on */
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
    char path[4096];
    if (!is_on_disk(file, path))
        return (int)syscall(number, file);
    if (told->sync_delay)
        usleep((useconds_t)told->sync_delay);
    int has_failed_elsewhere = has_failed(file, path);
    if (fails(&told->syncs_failing)) {
        told_of[file] = failures_of(path, 1) + 1;
        note(NOT_SYNCED, path, 0, NULL, 0);
        errno = (int)told->sync_error;
        return -1;
    }
    if (has_failed_elsewhere) {
        note(NOT_SYNCED, path, 0, NULL, 0);
        errno = EIO;
        return -1;
    }
    int result = (int)syscall(number, file);
    note(result == 0 ? SYNCED : NOT_SYNCED, path, 0, NULL, 0);
    return result;
}

int fsync(int file) { return synced(file, SYS_fsync); }

int fdatasync(int file) { return synced(file, SYS_fdatasync); }

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at)
{
    char path[4096];
    if (!is_on_disk(file, path))
        return syscall(SYS_pwrite64, file, bytes, size, at);
    if (!told_of[file])
        has_failed(file, path);
    int is_failing = fails(&told->writes_failing);
    if (is_failing)
        size = told->writes_torn ? size / 2 : 0;
    ssize_t written = size || !is_failing ? syscall(SYS_pwrite64, file, bytes, size, at) : 0;
    if (written > 0)
        note(WRITTEN, path, at, bytes, written);
    if (is_failing) {
        errno = (int)told->write_error;
        return -1;
    }
    return written;
}

ssize_t pread64(int file, void *bytes, size_t size, off64_t at)
{
    char path[4096];
    int is_new = file >= 0 && file < DESCRIPTORS && !told_of[file];
    if (!is_new && !told->reads_failing)
        return syscall(SYS_pread64, file, bytes, size, at);
    int is_ours = is_on_disk(file, path);
    if (is_ours && is_new)
        has_failed(file, path);
    if (is_ours && fails(&told->reads_failing)) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, file, bytes, size, at);
}

ssize_t pread(int file, void *bytes, size_t size, off_t at) { return pread64(file, bytes, size, at); }

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { return pwrite64(file, bytes, size, at); }

int ftruncate64(int file, off64_t size)
{
    char path[4096];
    int result = (int)syscall(SYS_ftruncate, file, size);
    if (result == 0 && is_on_disk(file, path))
        note(CUT, path, size, NULL, 0);
    return result;
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int unlink(const char *path)
{
    int result = (int)syscall(SYS_unlink, path);
    if (result == 0 && is_below_disk(path))
        note(REMOVED, path, 0, NULL, 0);
    return result;
}

int rename(const char *path, const char *name)
{
    int result = (int)syscall(SYS_rename, path, name);
    if (result == 0 && is_below_disk(path))
        note(RENAMED, path, 0, name, (int64_t)strlen(name));
    return result;
}
