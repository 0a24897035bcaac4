/* A file layer that can stop or fail: preloaded (LD_PRELOAD) into a run and all its processes, Python and Java.

   Each call that changes a file below FILE_FAULTS_BELOW is an operation. Operations have one order and one number in
   all processes, since each holds a lock in the shared file FILE_FAULTS_STATE. A write of more than one byte is two
   operations, one for each half of its bytes. FILE_FAULTS_LOG gets one line for each operation: number, process id,
   program, call, path. tests/reliability/file_faults.py reads and sets the shared file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN = 1, WRITE = 2, RENAME = 4, UNLINK = 8, MKDIR = 16, TRUNCATE = 32, LINK = 64, OPEN_TO_READ = 128 };

/* The same order as FIELDS in file_faults.py. Zero means "never" for stop_from and fail_from. */
struct shared {
    uint64_t ready, operations, stop_from, stopped, released, fail_from, fail_until, fail_kinds, error, failed;
    pthread_mutex_t lock;
};

static struct shared *shared;
static const char *below_folder;
static int log_file = -1;

#define NEXT(name) \
    static __typeof__(name) *real; \
    if (!real) real = dlsym(RTLD_NEXT, #name)
#define GET(field) __atomic_load_n(&shared->field, __ATOMIC_SEQ_CST)
#define SET(field, value) __atomic_store_n(&shared->field, value, __ATOMIC_SEQ_CST)

__attribute__((constructor)) static void attach(void) {
    const char *state = getenv("FILE_FAULTS_STATE"), *log = getenv("FILE_FAULTS_LOG");
    below_folder = getenv("FILE_FAULTS_BELOW");
    int file = state && log && below_folder ? open(state, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    flock(file, LOCK_EX);
    if (mapped != MAP_FAILED && !((struct shared *)mapped)->ready) {
        pthread_mutexattr_t how;
        pthread_mutexattr_init(&how);
        pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST); /* a killed holder must not stop the others */
        pthread_mutex_init(&((struct shared *)mapped)->lock, &how);
        ((struct shared *)mapped)->ready = 1;
    }
    flock(file, LOCK_UN); /* the mapping would keep it locked */
    close(file);
    log_file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (mapped != MAP_FAILED) shared = mapped;
}

static int is_below(const char *path) {
    size_t length = strlen(below_folder);
    return strncmp(path, below_folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* Whether the open file is a regular file below the folder; its path goes into `place`. */
static int file_below(int fd, char *place) {
    struct stat about;
    char link[32];
    if (!shared || fstat(fd, &about) || !S_ISREG(about.st_mode)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, place, PATH_MAX - 1);
    place[length > 0 ? length : 0] = 0;
    return is_below(place);
}

static int path_below(int folder, const char *path, char *place) {
    char link[32] = "/proc/self/cwd", base[PATH_MAX] = "";
    if (!shared || !path) return 0;
    if (*path != '/') {
        if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 1);
        base[length > 0 ? length : 0] = 0;
    }
    int size = snprintf(place, PATH_MAX, *path == '/' ? "%s%s" : "%s/%s", base, path);
    return size < PATH_MAX && is_below(place);
}

static int fails(enum kind kind, uint64_t number) {
    uint64_t from = GET(fail_from);
    if (!from || number < from || number >= GET(fail_until) || !(GET(fail_kinds) & kind)) return 0;
    __atomic_add_fetch(&shared->failed, 1, __ATOMIC_SEQ_CST);
    errno = (int)GET(error);
    return 1;
}

/* Gives the operation its number, waits if it is to stop, and keeps the lock. -1, without the lock, if it fails. */
static int begin(enum kind kind, const char *call, const char *place) {
    int before = errno;
    char line[PATH_MAX + 128];
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) pthread_mutex_consistent(&shared->lock);
    uint64_t number = __atomic_add_fetch(&shared->operations, 1, __ATOMIC_SEQ_CST);
    int size = snprintf(line, sizeof line, "%lu\t%d\t%s\t%s\t%s\n", (unsigned long)number, (int)getpid(),
                        program_invocation_short_name, call, place);
    static ssize_t (*logged)(int, const void *, size_t);
    if (!logged) logged = dlsym(RTLD_NEXT, "write");
    if (logged(log_file, line, (size_t)size) < 0) abort();
    uint64_t stop = GET(stop_from);
    if (stop && number >= stop) {
        SET(stopped, number);
        while (GET(released) < number) usleep(200);
    }
    errno = before;
    if (!fails(kind, number)) return 0;
    pthread_mutex_unlock(&shared->lock);
    return -1;
}

static void end(void) {
    int result = errno;
    pthread_mutex_unlock(&shared->lock);
    errno = result;
}

#define OPERATION(type, kind, name, tracked, call) \
    char place[PATH_MAX]; \
    NEXT(name); \
    if (!(tracked)) return call; \
    if (begin(kind, #name, place)) return -1; \
    type result = call; \
    end(); \
    return result

#define OPENING(name, folder, call) \
    char place[PATH_MAX]; \
    NEXT(name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    } \
    if (!path_below(folder, path, place)) return call; \
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC))) \
        return fails(OPEN_TO_READ, GET(operations) + 1) ? -1 : call; \
    if (begin(OPEN, #name, place)) return -1; \
    int result = call; \
    end(); \
    return result

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, real(path, flags, mode)); }
int openat(int folder, const char *path, int flags, ...) { OPENING(openat, folder, real(folder, path, flags, mode)); }
int openat64(int folder, const char *path, int flags, ...) {
    OPENING(openat64, folder, real(folder, path, flags, mode));
}
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* A failure of the second half is a short write, as of a disk that gets full. */
#define WRITING(name, first, second) \
    char place[PATH_MAX]; \
    NEXT(name); \
    size_t half = size; \
    if (!file_below(fd, place)) return first; \
    if (begin(WRITE, #name, place)) return -1; \
    if (size > 1) half = size / 2; \
    ssize_t done = first; \
    end(); \
    if (done < 0 || (size_t)done < half || half == size || begin(WRITE, #name " second half", place)) return done; \
    ssize_t more = second; \
    end(); \
    return more < 0 ? done : done + more

ssize_t write(int fd, const void *data, size_t size) {
    WRITING(write, real(fd, data, half), real(fd, (const char *)data + half, size - half));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    WRITING(pwrite, real(fd, data, half, at), real(fd, (const char *)data + half, size - half, at + (off_t)half));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    WRITING(pwrite64, real(fd, data, half, at), real(fd, (const char *)data + half, size - half, at + (off64_t)half));
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    OPERATION(ssize_t, WRITE, writev, file_below(fd, place), real(fd, parts, count));
}
ssize_t sendfile(int fd, int from, off_t *at, size_t size) {
    OPERATION(ssize_t, WRITE, sendfile, file_below(fd, place), real(fd, from, at, size));
}
ssize_t sendfile64(int fd, int from, off64_t *at, size_t size) {
    OPERATION(ssize_t, WRITE, sendfile64, file_below(fd, place), real(fd, from, at, size));
}
ssize_t copy_file_range(int from, off64_t *at, int fd, off64_t *to, size_t size, unsigned flags) {
    OPERATION(ssize_t, WRITE, copy_file_range, file_below(fd, place), real(from, at, fd, to, size, flags));
}
int ftruncate(int fd, off_t size) { OPERATION(int, TRUNCATE, ftruncate, file_below(fd, place), real(fd, size)); }
int ftruncate64(int fd, off64_t size) { OPERATION(int, TRUNCATE, ftruncate64, file_below(fd, place), real(fd, size)); }
int truncate(const char *path, off_t size) {
    OPERATION(int, TRUNCATE, truncate, path_below(AT_FDCWD, path, place), real(path, size));
}
int rename(const char *from, const char *to) {
    OPERATION(int, RENAME, rename, path_below(AT_FDCWD, to, place), real(from, to));
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    OPERATION(int, RENAME, renameat, path_below(to_folder, to, place), real(from_folder, from, to_folder, to));
}
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    OPERATION(int, RENAME, renameat2, path_below(to_folder, to, place), real(from_folder, from, to_folder, to, flags));
}
int unlink(const char *path) { OPERATION(int, UNLINK, unlink, path_below(AT_FDCWD, path, place), real(path)); }
int unlinkat(int folder, const char *path, int flags) {
    OPERATION(int, UNLINK, unlinkat, path_below(folder, path, place), real(folder, path, flags));
}
int remove(const char *path) { OPERATION(int, UNLINK, remove, path_below(AT_FDCWD, path, place), real(path)); }
int rmdir(const char *path) { OPERATION(int, UNLINK, rmdir, path_below(AT_FDCWD, path, place), real(path)); }
int mkdir(const char *path, mode_t mode) {
    OPERATION(int, MKDIR, mkdir, path_below(AT_FDCWD, path, place), real(path, mode));
}
int mkdirat(int folder, const char *path, mode_t mode) {
    OPERATION(int, MKDIR, mkdirat, path_below(folder, path, place), real(folder, path, mode));
}
int link(const char *from, const char *to) {
    OPERATION(int, LINK, link, path_below(AT_FDCWD, to, place), real(from, to));
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    OPERATION(int, LINK, linkat, path_below(to_folder, to, place), real(from_folder, from, to_folder, to, flags));
}
int symlink(const char *from, const char *to) {
    OPERATION(int, LINK, symlink, path_below(AT_FDCWD, to, place), real(from, to));
}
