/* From a file to its query function: dlopen, and what its failures mean.
 *
 * The ELF header is read first. dlopen maps a file that was cut short without complaint, and the
 * process dies of SIGBUS when the missing part is touched; it believes what it finds where a file was
 * never written to its end and holds zeros (SIGSEGV); and "wrong machine" said here is clearer than
 * what dlerror makes of it.
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

static tn_status holds_zeros(const char *path, const char *what) {
    return tni_fail(TN_ERR_IO,
                    "%s: the file holds zeros where its %s should be, as after a copy or a power"
                    " failure that left it unwritten; copy or build it again",
                    path, what);
}

static bool is_zero(const void *bytes, size_t n) {
    const char *at = bytes;
    return n == 0 || (at[0] == 0 && memcmp(at, at + 1, n - 1) == 0);
}

/* The table of sections stands at the end of most files; its last entry is never empty. */
static tn_status check_sections(const char *path, int fd, const Elf64_Ehdr *head) {
    Elf64_Shdr last;
    if (!head->e_shoff || head->e_shnum < 2 || head->e_shentsize != sizeof last)
        return TN_OK;
    off_t at = (off_t)(head->e_shoff + (head->e_shnum - 1u) * sizeof last);
    bool there = pread(fd, &last, sizeof last, at) == sizeof last;
    return there && is_zero(&last, sizeof last) ? holds_zeros(path, "table of sections") : TN_OK;
}

/* What an address within the object is in the file; false where that is nothing. */
static bool in_file(int fd, const Elf64_Ehdr *head, uint64_t address, uint64_t *out_at) {
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        if (pread(fd, &part, sizeof part, (off_t)(head->e_phoff + i * sizeof part)) != sizeof part)
            return false;
        if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
            address - part.p_vaddr < part.p_filesz) {
            *out_at = part.p_offset + (address - part.p_vaddr);
            return true;
        }
    }
    return false;
}

/* Does the second entry of the table at `address` hold zeros? The first always does. */
static bool is_empty(int fd, const Elf64_Ehdr *head, uint64_t address, size_t entry) {
    Elf64_Sym second;
    uint64_t at;
    return in_file(fd, head, address, &at) &&
           pread(fd, &second, entry, (off_t)(at + entry)) == (ssize_t)entry &&
           is_zero(&second, entry);
}

/* What dlopen reads: the dynamic section, and the symbols and names that it leads to. */
static tn_status check_dynamic(const char *path, int fd, const Elf64_Ehdr *head,
                               const Elf64_Phdr *part) {
    uint64_t names = 0, symbols = 0;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= part->p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (pread(fd, &entry, sizeof entry, (off_t)(part->p_offset + at)) != sizeof entry ||
            entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_STRTAB)
            names = entry.d_un.d_ptr;
        if (entry.d_tag == DT_SYMTAB)
            symbols = entry.d_un.d_ptr;
    }
    if (!names || !symbols)
        return holds_zeros(path, "dynamic section");
    if (is_empty(fd, head, names, 1) || is_empty(fd, head, symbols, sizeof(Elf64_Sym)))
        return holds_zeros(path, "table of symbols");
    return TN_OK;
}

static tn_status check_parts(const char *path, int fd, uint64_t size, const Elf64_Ehdr *head) {
    uint64_t needed = head->e_phoff + (uint64_t)head->e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr dynamic = {0};
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
        if (part.p_type == PT_DYNAMIC)
            dynamic = part;
    }
    if (needed > size)
        return truncated(path, size, needed);
    tn_status status = check_sections(path, fd, head);
    return !status && dynamic.p_type ? check_dynamic(path, fd, head, &dynamic) : status;
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
