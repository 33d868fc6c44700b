/* Copies a folder before and after each change of a file in it, as a kill at that moment would leave it.
 *
 * Loaded into a command by LD_PRELOAD. The environment says what to do:
 * POINTS_FOLDER     the folder that is watched and copied
 * POINTS_COPIES     where the copies go, numbered from 0
 * POINTS_STATE      a file of zeros that all processes of the command share
 * POINTS_KILL       the number of a point at which the process group is killed instead; no copies are made then
 * A point is a call that creates, renames, links, removes or syncs a file. Names of a point are added to
 * POINTS_COPIES/names, one a line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 8192 };
struct state {
    int is_ready;
    long count;
    pthread_mutex_t mutex;
};
static struct state *state;
static const char *folder, *copies;
static long kill_at = -1;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("POINTS_STATE"), *number = getenv("POINTS_KILL");
    folder = getenv("POINTS_FOLDER");
    copies = getenv("POINTS_COPIES");
    if (!folder || !copies || !file) return;
    if (number) kill_at = atol(number);
    int descriptor = open(file, O_RDWR);
    if (descriptor < 0) return;
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (state == MAP_FAILED) state = NULL;
    /* The first process of the command starts the others, so only it finds zeros. */
    if (state && !state->is_ready) {
        pthread_mutexattr_t shared;
        pthread_mutexattr_init(&shared);
        pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&state->mutex, &shared);
        state->is_ready = 1;
    }
}

/* Writes the whole path of a file into whole; returns whether it is in the folder. */
static int is_inside(int directory, const char *path, char *whole) {
    char link[64], base[LONGEST / 2];
    if (!state || !path || strlen(path) >= LONGEST / 2) return 0;
    base[0] = 0;
    if (path[0] != '/') {
        snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
        ssize_t size = readlink(link, base, sizeof base - 1);
        if (size < 0) return 0;
        base[size] = 0;
    }
    snprintf(whole, LONGEST, "%s%s%s", base, base[0] ? "/" : "", path);
    size_t size = strlen(folder);
    return !strncmp(whole, folder, size) && whole[size] == '/';
}

static void copy_folder(long number) {
    char copy[LONGEST];
    char *arguments[] = {"cp", "-a", (char *)folder, copy, NULL}, *nothing[] = {NULL};
    pid_t child;
    snprintf(copy, sizeof copy, "%s/%ld", copies, number);
    if (posix_spawn(&child, "/bin/cp", NULL, NULL, arguments, nothing) == 0) waitpid(child, NULL, 0);
}

static void name_point(const char *when, const char *call, const char *path) {
    char line[2 * LONGEST];
    snprintf(line, sizeof line, "%s/names", copies);
    int (*really_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int descriptor = really_open(line, O_WRONLY | O_APPEND | O_CREAT, 0644);
    int size = snprintf(line, sizeof line, "%s %s %s\n", when, call, path + strlen(folder) + 1);
    if (descriptor < 0) return;
    if (write(descriptor, line, size) != size) abort();
    close(descriptor);
}

static void reach(const char *when, const char *call, const char *path) {
    int error = errno;
    pthread_mutex_lock(&state->mutex);
    long number = state->count++;
    if (number == kill_at) kill(0, SIGKILL);
    if (kill_at < 0) {
        name_point(when, call, path);
        copy_folder(number);
    }
    pthread_mutex_unlock(&state->mutex);
    errno = error;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = dlsym(RTLD_NEXT, #name)

#define AROUND(call, directory, path, expression) \
    do { \
        char whole[LONGEST]; \
        if (!is_inside(directory, path, whole)) return expression; \
        reach("before", call, whole); \
        int result = expression; \
        reach("after", call, whole); \
        return result; \
    } while (0)

#define MODE \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0; \
    va_end(more)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        MODE; \
        if (!(flags & O_CREAT)) return real(path, flags, mode); \
        AROUND("create", AT_FDCWD, path, real(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        REAL(name); \
        MODE; \
        if (!(flags & O_CREAT)) return real(directory, path, flags, mode); \
        AROUND("create", directory, path, real(directory, path, flags, mode)); \
    }
OPENAT(openat)
OPENAT(openat64)

int rename(const char *from, const char *to) {
    REAL(rename);
    AROUND("rename", AT_FDCWD, to, real(from, to));
}

int renameat(int old, const char *from, int new, const char *to) {
    REAL(renameat);
    AROUND("rename", new, to, real(old, from, new, to));
}

int renameat2(int old, const char *from, int new, const char *to, unsigned flags) {
    REAL(renameat2);
    AROUND("rename", new, to, real(old, from, new, to, flags));
}

int link(const char *from, const char *to) {
    REAL(link);
    AROUND("link", AT_FDCWD, to, real(from, to));
}

int linkat(int old, const char *from, int new, const char *to, int flags) {
    REAL(linkat);
    AROUND("link", new, to, real(old, from, new, to, flags));
}

int unlink(const char *path) {
    REAL(unlink);
    AROUND("unlink", AT_FDCWD, path, real(path));
}

int unlinkat(int directory, const char *path, int flags) {
    REAL(unlinkat);
    AROUND("unlink", directory, path, real(directory, path, flags));
}

int rmdir(const char *path) {
    REAL(rmdir);
    AROUND("unlink", AT_FDCWD, path, real(path));
}

static int sync_by(int (*real)(int), int descriptor) {
    char link[64], path[LONGEST / 2];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = state ? readlink(link, path, sizeof path - 1) : -1;
    if (size < 0) return real(descriptor);
    path[size] = 0;
    AROUND("fsync", AT_FDCWD, path, real(descriptor));
}

int fsync(int descriptor) {
    REAL(fsync);
    return sync_by(real, descriptor);
}

int fdatasync(int descriptor) {
    REAL(fdatasync);
    return sync_by(real, descriptor);
}
