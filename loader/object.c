/* From a file to its query function: dlopen, and what its failures mean.
 *
 * The ELF header is read first. dlopen maps a file that was cut short without complaint, and the
 * process dies of SIGBUS when the missing part is touched; and "wrong machine" said here is clearer
 * than what dlerror makes of it.
 */
#include "base/error.h"
#include "base/log.h"
#include "loader/internal.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { THIS_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { THIS_MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { THIS_MACHINE = EM_PPC64 };
#elif defined(__s390x__)
enum { THIS_MACHINE = EM_S390 };
#else
enum { THIS_MACHINE = EM_NONE }; /* not checked here; dlopen does */
#endif

static const char *machine_name(unsigned machine) {
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_X86_64:
        return "x86-64";
    case EM_ARM:
        return "32-bit ARM";
    case EM_AARCH64:
        return "AArch64";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "64-bit POWER";
    case EM_S390:
        return "s390";
    default:
        return "another machine";
    }
}

static tn_status truncated(const char *path, uint64_t size, uint64_t needed) {
    return tni_fail(TN_ERR_IO,
                    "%s: the file is truncated: it has %llu bytes and should have at least %llu;"
                    " copy or build it again",
                    path, (unsigned long long)size, (unsigned long long)needed);
}

static tn_status not_an_object(const char *path) {
    return tni_fail(TN_ERR_IO,
                    "%s: the file is no shared object (it does not begin as an ELF file does);"
                    " put the built plugin there",
                    path);
}

static tn_status check_parts(const char *path, int fd, uint64_t size, const Elf64_Ehdr *head) {
    uint64_t needed = head->e_phoff + (uint64_t)head->e_phnum * sizeof(Elf64_Phdr);
    if (head->e_phoff > size || needed > size)
        return truncated(path, size, needed);
    if (head->e_shoff) {
        uint64_t end = head->e_shoff + (uint64_t)head->e_shnum * head->e_shentsize;
        needed = end > needed ? end : needed;
    }
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head->e_phoff + i * sizeof part);
        if (pread(fd, &part, sizeof part, at) != sizeof part)
            return truncated(path, size, needed);
        if (part.p_type == PT_LOAD && part.p_offset + part.p_filesz > needed)
            needed = part.p_offset + part.p_filesz;
    }
    return needed > size ? truncated(path, size, needed) : TN_OK;
}

static tn_status check_file(const char *path, int fd) {
    struct stat st;
    Elf64_Ehdr head;
    if (fstat(fd, &st) != 0)
        return tni_fail(TN_ERR_IO, "%s: %s", path, strerror(errno));
    uint64_t size = (uint64_t)st.st_size;
    ssize_t n = pread(fd, &head, sizeof head, 0);
    if (n < SELFMAG || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return n == 0 ? truncated(path, 0, sizeof head) : not_an_object(path);
    if (n < (ssize_t)sizeof head)
        return truncated(path, size, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64)
        return tni_fail(TN_ERR_UNSUPPORTED, "%s: the file is for 32-bit programs; build it for %s",
                        path, machine_name(THIS_MACHINE));
    if (THIS_MACHINE != EM_NONE && head.e_machine != THIS_MACHINE)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: the file has the wrong architecture: it is for %s (ELF machine %u),"
                        " this process is %s; install or build the plugin for this machine",
                        path, machine_name(head.e_machine), head.e_machine,
                        machine_name(THIS_MACHINE));
    if (head.e_type != ET_DYN || head.e_phentsize != sizeof(Elf64_Phdr))
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: the file is an ELF file, but no shared object; link the plugin with"
                        " -shared",
                        path);
    return check_parts(path, fd, size, &head);
}

/* What to do about the texts of glibc's dlerror. */
static const struct {
    const char *text, *hint;
} hints[] = {
    {"version `GLIBC_", "the plugin was built on a system with a newer C library; build it on the"
                        " oldest system it is to run on, or update this one"},
    {"version `", "a library of the plugin is older here than where it was built; update that"
                  " library"},
    {"undefined symbol", "no library of the plugin defines that symbol; link the one that does"
                         " (-Wl,-z,defs finds this when building). Tenon's own symbols are not for"
                         " plugins: what they may call is in the tn_host table"},
    {"cannot open shared object file", "a library that the plugin needs is not installed, or not"
                                       " where the system looks; install it, or add its directory"
                                       " to LD_LIBRARY_PATH (ldd shows what is missing)"},
    {"file too short", "the file is truncated; copy or build it again"},
    {"invalid ELF header", "a library that the plugin needs is no shared object; reinstall it"},
    {"wrong ELF class", "a library that the plugin needs is for 32-bit programs; install the"
                        " 64-bit one"},
    {"static TLS", "the plugin or its library uses thread-local storage of the initial-exec model;"
                   " build it without -ftls-model=initial-exec"},
    {"failed to map segment", "the file system may be mounted noexec; put the plugin elsewhere"},
    {"position-independent executable", "the file is a program; link the plugin with -shared"},
};

static tn_status open_failed(const char *path) {
    const char *text = dlerror();
    if (!text)
        text = "dlopen gave no reason";
    /* dlerror mostly begins with the path, as our message does. */
    size_t n = strlen(path);
    if (strncmp(text, path, n) == 0 && text[n] == ':')
        text += n + 1 + (text[n + 1] == ' ');
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(text, hints[i].text))
            return tni_fail(TN_ERR_IO, "%s: %s; %s", path, text, hints[i].hint);
    return tni_fail(TN_ERR_IO, "%s: %s", path, text);
}

static tn_status no_query(const char *path, void *handle) {
    for (int major = 2; major < 10; major++) {
        char name[] = TN_PLUGIN_QUERY_NAME;
        name[sizeof name - 2] = (char)('0' + major);
        if (dlsym(handle, name))
            return tni_fail(TN_ERR_ABI,
                            "%s: the file exports %s, the entry of a newer plugin interface, but"
                            " no " TN_PLUGIN_QUERY_NAME "; use a newer Tenon, or a build of the"
                            " plugin for this one",
                            path, name);
    }
    return tni_fail(TN_ERR_NOT_FOUND,
                    "%s: the file exports no " TN_PLUGIN_QUERY_NAME "; define it as in"
                    " tenon/plugin.h, with TN_PLUGIN_EXPORT and extern \"C\", and see that the"
                    " linker's version script lists it (nm -D shows what is exported)",
                    path);
}

tn_status tni_object_open(const char *path, void **out_handle, tn_plugin_query_fn *out_query) {
    *out_handle = NULL;
    *out_query = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tni_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    tn_status status = check_file(path, fd);
    close(fd);
    if (status)
        return status;
    tni_log_line(TN_LOG_DEBUG, "loader", "opening %s", path);
    /* NOW: a missing symbol is told here, not in the middle of a call. LOCAL: plugins do not see
     * each other. No DEEPBIND: it breaks allocators and sanitizers. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return open_failed(path);
    void *symbol = dlsym(handle, TN_PLUGIN_QUERY_NAME);
    if (!symbol) {
        /* The object stays mapped: its constructors ran, and may have started threads. */
        return no_query(path, handle);
    }
    *out_handle = handle;
    memcpy(out_query, &symbol, sizeof symbol);
    return TN_OK;
}
