/* IDX files, plain or gzip: zlib reads both through one call. */
#include "core/io/idx.h"
#include "core/tensor/tensor.h"
#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/io.h>
#include <unistd.h>
#include <zlib.h>

/* Opens `path` for reading; NULL with the error set. */
static gzFile open_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return tni_fail_null(TN_ERR_NOT_FOUND, "tn_idx_read: %s does not exist; check the path",
                             path);
    if (fd < 0)
        return tni_fail_null(TN_ERR_IO, "tn_idx_read: %s cannot be opened: %s", path,
                             strerror(errno));
    struct stat about;
    if (fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
        tni_fail(TN_ERR_IO, "tn_idx_read: %s is a directory; give the path of one IDX file", path);
        close(fd);
        return NULL;
    }
    gzFile file = gzdopen(fd, "rb");
    if (!file) {
        tni_fail_memory("the reader of an IDX file");
        close(fd);
    }
    return file;
}

/* Reads all of the file, or at least one byte more than its header announces: the first read cannot
 * know what that is. The buffer grows with what is there, not with what is announced. */
static tn_status read_all(gzFile file, const char *path, uint8_t **out_data, size_t *out_n) {
    size_t n = 0, capacity = 64 * 1024, most = SIZE_MAX;
    tni_idx idx;
    *out_data = tni_alloc(capacity);
    if (!*out_data)
        return tni_fail_memory("the content of an IDX file");
    for (;;) {
        size_t room = (capacity < most ? capacity : most) - n;
        int got = gzread(file, *out_data + n, (unsigned)(room < 1u << 30 ? room : 1u << 30));
        int code = Z_OK;
        const char *reason = got < (int)room || got < 0 ? gzerror(file, &code) : "";
        /* A file that ends inside its compressed data is told by the code alone. */
        if (got < 0 || code == Z_BUF_ERROR)
            return tni_fail(TN_ERR_IO, "tn_idx_read: %s: %s; get the file again", path,
                            code == Z_BUF_ERROR ? "its compressed data is cut short"
                            : code == Z_ERRNO   ? strerror(errno)
                                                : reason);
        n += (size_t)got;
        *out_n = n;
        tn_status status = most == SIZE_MAX ? tni_idx_parse_header(*out_data, n, &idx) : TN_OK;
        if (most == SIZE_MAX && status == TN_OK)
            most = (size_t)(idx.header_bytes + idx.element_bytes + 1);
        if (got == 0 || n >= most || (status != TN_OK && status != TN_NOT_READY))
            return TN_OK;
        if (n == capacity) {
            size_t more = capacity * 2 < most ? capacity * 2 : most;
            uint8_t *grown = tni_realloc(*out_data, more);
            if (!grown)
                return tni_fail_memory("the content of an IDX file");
            *out_data = grown;
            capacity = more;
        }
    }
}

tn_status tn_idx_read(const char *path, tn_device device, tn_tensor **out) {
    if (!path || !out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_idx_read: path or out is NULL");
    *out = NULL;
    gzFile file = open_file(path);
    if (!file)
        return tn_error_status();
    uint8_t *data = NULL;
    size_t n = 0;
    tni_idx idx;
    tn_status status = read_all(file, path, &data, &n);
    gzclose(file);
    if (status == TN_OK) {
        status = tni_idx_parse(data, n, &idx);
        if (status != TN_OK)
            tni_fail(status, "tn_idx_read: %s: %s", path, idx.problem);
    }
    if (status == TN_OK) {
        uint8_t *elements = data + idx.header_bytes;
        tni_idx_to_host_order(elements, &idx);
        *out = tn_from_data(elements, tn_ints_of(idx.sizes, idx.rank), idx.dtype, device);
        status = *out ? TN_OK : tn_error_status();
    }
    tni_free(data);
    return status;
}
