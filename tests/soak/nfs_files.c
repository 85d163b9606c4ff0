/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded before a program (LD_PRELOAD): a client of NFS in user space, for the calls with which
 * host/register keeps a register in a directory. What lies below $NFS_PLACE is on the server of
 * $NFS_URL (as libnfs has it). Each thread is a client of its own, and none keeps anything of what
 * it has seen. A file or directory that is open there has the descriptor of an empty file here. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <unistd.h>

#include <nfsc/libnfs.h>

#define DESCRIPTORS 4096
#define PATH_SIZE 4096
#define CHUNK ((size_t)2 << 10) /* libnfs encodes no more for NFS 4 */
#define NFS_MAGIC 0x6969

/* What the program's own calls are done with. */
#define REAL(type, name, symbol, ...)                                                              \
    static type (*name)(__VA_ARGS__);                                                              \
    if (name == NULL) {                                                                            \
        *(void **)&name = dlsym(RTLD_NEXT, symbol);                                                \
    }

struct there {
    struct nfs_context *client;
    struct nfsfh *file; /* NULL: a directory */
    char path[PATH_SIZE];
};

static struct there *there[DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct nfs_context *client;
static pthread_key_t client_of_thread; /* the same, so that the end of the thread ends it */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct there *find(int fd) {
    if (fd < 0 || fd >= DESCRIPTORS) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct there *found = there[fd];
    pthread_mutex_unlock(&lock);
    return found;
}

static void put(int fd, struct there *what) {
    pthread_mutex_lock(&lock);
    there[fd] = what;
    pthread_mutex_unlock(&lock);
}

/* The result of a call of libnfs as that of the system call. */
static int result(int status) {
    if (status < 0) {
        errno = -status;
        return -1;
    }
    return status;
}

static void disconnect_client(void *context) {
    (void)nfs_umount(context);
    nfs_destroy_context(context);
}

static void make_key(void) {
    (void)pthread_key_create(&client_of_thread, disconnect_client);
}

static struct nfs_context *connect_client(void) {
    if (client == NULL) {
        struct nfs_context *made = nfs_init_context();
        struct nfs_url *url = nfs_parse_url_dir(made, getenv("NFS_URL"));
        char name[64];
        snprintf(name, sizeof name, "muster %d", (int)gettid());
        nfs4_set_client_name(made, name);
        nfs_set_dircache(made, 0);
        int status = url == NULL ? -EINVAL : nfs_mount(made, url->server, url->path);
        if (status != 0) {
            fprintf(stderr, "nfs_files: %s: %s\n", getenv("NFS_URL"), nfs_get_error(made));
            abort();
        }
        nfs_destroy_url(url);
        client = made;
        pthread_once(&once, make_key);
        (void)pthread_setspecific(client_of_thread, made);
    }
    return client;
}

/* Whether the name is below the place; then its path there. */
static bool is_there(int directory, const char *name, char path[PATH_SIZE]) {
    const char *place = getenv("NFS_PLACE");
    const struct there *above = directory == AT_FDCWD ? NULL : find(directory);
    if (above != NULL && name[0] != '/') {
        bool is_same = strcmp(name, ".") == 0;
        return snprintf(path, PATH_SIZE, is_same ? "%s" : "%s/%s", above->path, name) < PATH_SIZE;
    }
    size_t length = place == NULL ? 0 : strlen(place);
    return length > 0 && strncmp(name, place, length) == 0 && name[length] == '/' &&
           snprintf(path, PATH_SIZE, "%s", name + length) < PATH_SIZE;
}

static int open_there(const char *path, int flags, mode_t mode) {
    struct nfs_stat_64 status;
    struct there *opened = calloc(1, sizeof *opened);
    opened->client = connect_client();
    int code = nfs_lstat64(opened->client, path, &status);
    snprintf(opened->path, PATH_SIZE, "%s", path);
    if (code == 0 && (flags & O_NOFOLLOW) != 0 && S_ISLNK((mode_t)status.nfs_mode)) {
        code = -ELOOP;
    } else if ((flags & O_DIRECTORY) != 0) {
        code = code == 0 && !S_ISDIR((mode_t)status.nfs_mode) ? -ENOTDIR : code;
    } else {
        code = nfs_open2(opened->client, path,
            flags & ~(O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), (int)mode, &opened->file);
    }
    int fd = code < 0 ? result(code) : memfd_create("on NFS", MFD_CLOEXEC);
    if (fd < 0 || fd >= DESCRIPTORS) {
        free(opened);
        return -1;
    }
    put(fd, opened);
    return fd;
}

/* With large files, as everything here is built, the C library calls these open64 and so on. */
int openat(int directory, const char *name, int flags, ...) {
    REAL(int, real_openat, "openat64", int, const char *, int, ...)
    char path[PATH_SIZE];
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return is_there(directory, name, path) ? open_there(path, flags, mode)
                                           : real_openat(directory, name, flags, mode);
}

int open(const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return openat(AT_FDCWD, name, flags, mode);
}

int close(int fd) {
    REAL(int, real_close, "close", int)
    struct there *what = find(fd);
    if (what != NULL) {
        put(fd, NULL);
        (void)real_close(fd);
        int code = what->file == NULL ? 0 : nfs_close(what->client, what->file);
        free(what);
        return result(code);
    }
    return real_close(fd);
}

/* A system call may do less than it is asked for. */
static size_t part_of(size_t length) {
    return length < CHUNK ? length : CHUNK;
}

ssize_t read(int fd, void *data, size_t length) {
    REAL(ssize_t, real_read, "read", int, void *, size_t)
    struct there *what = find(fd);
    return what == NULL ? real_read(fd, data, length)
                        : result(nfs_read(what->client, what->file, part_of(length), data));
}

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t, real_write, "write", int, const void *, size_t)
    struct there *what = find(fd);
    return what == NULL ? real_write(fd, data, length)
                        : result(nfs_write(
                              what->client, what->file, part_of(length), (void *)(uintptr_t)data));
}

/* A server of NFS answers when a directory is on its disk. */
int fsync(int fd) {
    REAL(int, real_fsync, "fsync", int)
    struct there *what = find(fd);
    if (what == NULL) {
        return real_fsync(fd);
    }
    return what->file == NULL ? 0 : result(nfs_fsync(what->client, what->file));
}

static int take_status(int code, const struct nfs_stat_64 *status, struct stat *out) {
    *out = (struct stat){.st_mode = (mode_t)status->nfs_mode,
        .st_nlink = (nlink_t)status->nfs_nlink,
        .st_uid = (uid_t)status->nfs_uid,
        .st_gid = (gid_t)status->nfs_gid,
        .st_size = (off_t)status->nfs_size,
        .st_mtim = {.tv_sec = (time_t)status->nfs_mtime, .tv_nsec = (long)status->nfs_mtime_nsec},
        .st_ctim = {.tv_sec = (time_t)status->nfs_ctime, .tv_nsec = (long)status->nfs_ctime_nsec}};
    return result(code);
}

int fstat(int fd, struct stat *out) {
    REAL(int, real_fstat, "fstat64", int, struct stat *)
    struct there *what = find(fd);
    struct nfs_stat_64 status = {0};
    if (what == NULL) {
        return real_fstat(fd, out);
    }
    int code = what->file != NULL ? nfs_fstat64(what->client, what->file, &status)
                                  : nfs_stat64(what->client, what->path, &status);
    return take_status(code, &status, out);
}

int fstatat(int directory, const char *name, struct stat *out, int flags) {
    REAL(int, real_fstatat, "fstatat64", int, const char *, struct stat *, int)
    char path[PATH_SIZE];
    struct nfs_stat_64 status = {0};
    if (!is_there(directory, name, path)) {
        return real_fstatat(directory, name, out, flags);
    }
    return take_status(nfs_lstat64(connect_client(), path, &status), &status, out);
}

int fstatfs(int fd, struct statfs *out) {
    REAL(int, real_fstatfs, "fstatfs64", int, struct statfs *)
    if (find(fd) == NULL) {
        return real_fstatfs(fd, out);
    }
    *out = (struct statfs){.f_type = NFS_MAGIC};
    return 0;
}

int mkdirat(int directory, const char *name, mode_t mode) {
    REAL(int, real_mkdirat, "mkdirat", int, const char *, mode_t)
    char path[PATH_SIZE];
    return is_there(directory, name, path) ? result(nfs_mkdir2(connect_client(), path, (int)mode))
                                           : real_mkdirat(directory, name, mode);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    REAL(int, real_linkat, "linkat", int, const char *, int, const char *, int)
    char old_path[PATH_SIZE];
    char new_path[PATH_SIZE];
    return is_there(from, old, old_path) && is_there(to, new, new_path)
               ? result(nfs_link(connect_client(), old_path, new_path))
               : real_linkat(from, old, to, new, flags);
}

int renameat(int from, const char *old, int to, const char *new) {
    REAL(int, real_renameat, "renameat", int, const char *, int, const char *)
    char old_path[PATH_SIZE];
    char new_path[PATH_SIZE];
    return is_there(from, old, old_path) && is_there(to, new, new_path)
               ? result(nfs_rename(connect_client(), old_path, new_path))
               : real_renameat(from, old, to, new);
}

int unlinkat(int directory, const char *name, int flags) {
    REAL(int, real_unlinkat, "unlinkat", int, const char *, int)
    char path[PATH_SIZE];
    return is_there(directory, name, path) ? result(nfs_unlink(connect_client(), path))
                                           : real_unlinkat(directory, name, flags);
}

/* Listing. */

struct listing {
    struct nfs_context *client;
    struct nfsdir *directory;
    int fd;
    struct dirent entry;
};

static _Thread_local struct listing *listed; /* one at a time */

DIR *fdopendir(int fd) {
    REAL(DIR *, real_fdopendir, "fdopendir", int)
    struct there *what = find(fd);
    if (what == NULL) {
        return real_fdopendir(fd);
    }
    struct listing *listing = calloc(1, sizeof *listing);
    struct nfs_stat_64 status;
    int code;
    do { /* libnfs gives up a listing when a file that it lists is removed meanwhile, or busy */
        code = nfs_opendir(what->client, what->path, &listing->directory);
    } while ((code == -ENOENT || code == -EAGAIN) &&
             nfs_lstat64(what->client, what->path, &status) == 0);
    if (result(code) < 0) {
        free(listing);
        return NULL;
    }
    listing->client = what->client;
    listing->fd = fd;
    listed = listing;
    return (DIR *)listing;
}

struct dirent *readdir(DIR *directory) {
    REAL(struct dirent *, real_readdir, "readdir64", DIR *)
    if ((void *)directory != (void *)listed || listed == NULL) {
        return real_readdir(directory);
    }
    const struct nfsdirent *entry = nfs_readdir(listed->client, listed->directory);
    errno = 0; /* libnfs has read all of it before */
    if (entry == NULL) {
        return NULL;
    }
    snprintf(listed->entry.d_name, sizeof listed->entry.d_name, "%s", entry->name);
    return &listed->entry;
}

int closedir(DIR *directory) {
    REAL(int, real_closedir, "closedir", DIR *)
    struct listing *listing = (struct listing *)(void *)directory;
    if (listing != listed || listed == NULL) {
        return real_closedir(directory);
    }
    nfs_closedir(listing->client, listing->directory);
    listed = NULL;
    (void)close(listing->fd);
    free(listing);
    return 0;
}
