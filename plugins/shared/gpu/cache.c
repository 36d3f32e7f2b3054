/* A file of the cache:
 *
 *     "tenon-kernel 1\n"  bytes of what follows up to the binary, and of the binary, u64 each
 *     who built it, options, the source's hash: lines
 *     the binary, and its hash, u64 */
#include "plugins/shared/gpu/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MAGIC[16] = "tenon-kernel 1\n";

enum { HEADER = 2048 };

static const uint64_t MAX_BINARY = 256u << 20;

/* FNV-1a, 64 bits (Fowler, Noll, Vo). Against accidents, not against attackers: those the file's
 * owner and mode keep out. */
static uint64_t hash(uint64_t h, const void *data, uint64_t bytes) {
    const unsigned char *p = data;
    for (uint64_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static const uint64_t BASIS = UINT64_C(0xcbf29ce484222325);

/* ---- the folder -------------------------------------------------------------------------- */

static bool make_folders(char *path) {
    for (char *at = path + 1;; at++)
        if (*at == '/' || *at == '\0') {
            char c = *at;
            *at = '\0';
            bool good = mkdir(path, 0700) == 0 || errno == EEXIST;
            *at = c;
            if (!good || c == '\0')
                return good;
        }
}

/* Who else may write there could put other programs into it. -1 when it is not to be used. */
static int open_folder(const char *path) {
    struct stat s;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &s) != 0 || s.st_uid != geteuid() || (s.st_mode & S_IWOTH))) {
        close(fd);
        errno = EPERM;
        fd = -1;
    }
    return fd;
}

/* One that is not there yet will be ours. */
static void check_folder(gpu_cache *cache) {
    char line[GPU_CACHE_PATH + 160];
    int fd = open_folder(cache->folder);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || errno != EPERM)
        return;
    snprintf(line, sizeof line,
             "built programs are not kept: the folder %s belongs to somebody else, or everyone may "
             "write to it; option `cache` names another",
             cache->folder);
    cache->host->log_message(cache->host, TN_LOG_WARN, line);
    cache->folder[0] = '\0';
}

void gpu_cache_init(gpu_cache *cache, const tn_host *host, const char *device_type) {
    const char *option = host->option(host, "cache"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n = -1;
    *cache = (gpu_cache){.host = host};
    if (getauxval(AT_SECURE)) /* who started us must not choose the code we run */
        return;
    if (option && *option) {
        if (strcmp(option, "off") != 0 && strcmp(option, "0") != 0)
            n = snprintf(cache->folder, sizeof cache->folder, "%s", option);
        cache->is_named = true;
    } else if (xdg && *xdg == '/') {
        n = snprintf(cache->folder, sizeof cache->folder, "%s/tenon/%s", xdg, device_type);
    } else if (home && *home == '/') {
        n = snprintf(cache->folder, sizeof cache->folder, "%s/.cache/tenon/%s", home, device_type);
    }
    if (n < 0 || n >= (int)sizeof cache->folder)
        cache->folder[0] = '\0';
    if (cache->folder[0])
        check_folder(cache);
}

/* ---- what a file says -------------------------------------------------------------------- */

/* What identifies a program; 0 where there is no room for it. */
static uint64_t header_of(const gpu_cache_key *key, char out[HEADER]) {
    int n = snprintf(out, HEADER, "%s\n%s\n%016" PRIx64 "\n", key->builder, key->options,
                     hash(BASIS, key->source, strlen(key->source)));
    return n > 0 && n < HEADER ? (uint64_t)n : 0;
}

enum { NAME = 40 };

static bool name_of(const gpu_cache *cache, const char *header, uint64_t bytes, char out[NAME]) {
    snprintf(out, NAME, "%016" PRIx64, hash(BASIS, header, bytes));
    return cache->folder[0] && bytes;
}

/* ---- reading ----------------------------------------------------------------------------- */

static bool read_all(int fd, void *out, uint64_t bytes) {
    char *p = out;
    while (bytes) {
        ssize_t n = read(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (uint64_t)n;
    }
    return true;
}

/* A file that others could have written is not trusted. */
static bool is_ours(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
           (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static unsigned char *read_entry(const tn_host *host, int fd, const char *expected, uint64_t n,
                                 uint64_t *out_bytes) {
    char header[HEADER], magic[sizeof MAGIC];
    uint64_t sizes[2], sum;
    if (!is_ours(fd) || !read_all(fd, magic, sizeof magic) ||
        memcmp(magic, MAGIC, sizeof magic) != 0 || !read_all(fd, sizes, sizeof sizes) ||
        sizes[0] != n || sizes[1] == 0 || sizes[1] > MAX_BINARY || !read_all(fd, header, n) ||
        memcmp(header, expected, n) != 0)
        return NULL;
    unsigned char *binary = host->alloc(host, sizes[1], 64);
    if (!binary)
        return NULL;
    if (!read_all(fd, binary, sizes[1]) || !read_all(fd, &sum, sizeof sum) ||
        sum != hash(BASIS, binary, sizes[1])) {
        host->dealloc(host, binary);
        return NULL;
    }
    *out_bytes = sizes[1];
    return binary;
}

unsigned char *gpu_cache_load(const gpu_cache *cache, const gpu_cache_key *key,
                              uint64_t *out_bytes) {
    char name[NAME], header[HEADER];
    uint64_t n = header_of(key, header);
    if (!name_of(cache, header, n, name))
        return NULL;
    int folder = open_folder(cache->folder);
    if (folder < 0)
        return NULL;
    /* NONBLOCK: in the place of the file may be a FIFO, in which nobody writes */
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    close(folder);
    if (fd < 0)
        return NULL;
    unsigned char *binary = read_entry(cache->host, fd, header, n, out_bytes);
    close(fd);
    return binary;
}

/* ---- writing ----------------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, uint64_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (uint64_t)n;
    }
    return true;
}

static bool write_entry(int fd, const char *header, const uint64_t sizes[2],
                        const unsigned char *binary) {
    uint64_t sum = hash(BASIS, binary, sizes[1]);
    return write_all(fd, MAGIC, sizeof MAGIC) && write_all(fd, sizes, 2 * sizeof sizes[0]) &&
           write_all(fd, header, sizes[0]) && write_all(fd, binary, sizes[1]) &&
           write_all(fd, &sum, sizeof sum);
}

void gpu_cache_save(const gpu_cache *cache, const gpu_cache_key *key, const unsigned char *binary,
                    uint64_t bytes) {
    char path[GPU_CACHE_PATH], name[NAME], draft[2 * NAME], header[HEADER];
    const uint64_t sizes[2] = {header_of(key, header), bytes};
    if (bytes == 0 || bytes > MAX_BINARY || !name_of(cache, header, sizes[0], name))
        return;
    memcpy(path, cache->folder, sizeof path);
    int folder = make_folders(path) ? open_folder(path) : -1;
    if (folder < 0)
        return;
    snprintf(draft, sizeof draft, "%s.%ld.tmp", name, (long)getpid());
    int fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        bool good = write_entry(fd, header, sizes, binary);
        good = close(fd) == 0 && good;
        if (!good || renameat(folder, draft, folder, name) != 0)
            unlinkat(folder, draft, 0);
    }
    close(folder);
}
