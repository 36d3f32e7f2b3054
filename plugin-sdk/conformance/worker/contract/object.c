/* See object.h. Everything in the file is checked before it is used: the file is the subject's. */
#include "plugin-sdk/conformance/worker/contract/object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRONG(...) (snprintf(why, TC_MESSAGE, __VA_ARGS__), false)

typedef struct image {
    const unsigned char *bytes;
    uint64_t n;
} image;

static bool within(const image *file, uint64_t offset, uint64_t n) {
    return offset <= file->n && n <= file->n - offset;
}

static bool read_section(const image *file, uint64_t table, uint64_t i, Elf64_Shdr *out) {
    if (!within(file, table + i * sizeof *out, sizeof *out))
        return false;
    memcpy(out, file->bytes + table + i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || within(file, out->sh_offset, out->sh_size);
}

static void symbols(const image *file, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                    tc_symbol_fn each, void *context) {
    const char *text = (const char *)file->bytes + strings->sh_offset;
    for (uint64_t i = 1; (i + 1) * sizeof(Elf64_Sym) <= table->sh_size; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, file->bytes + table->sh_offset + i * sizeof symbol, sizeof symbol);
        if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || symbol.st_name >= strings->sh_size ||
            !memchr(text + symbol.st_name, '\0', strings->sh_size - symbol.st_name))
            continue;
        /* A version's own name is an absolute symbol, which nothing can bind to. */
        bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
        if (defined && ELF64_ST_VISIBILITY(symbol.st_other) != STV_DEFAULT &&
            ELF64_ST_VISIBILITY(symbol.st_other) != STV_PROTECTED)
            continue;
        if (defined || symbol.st_shndx == SHN_UNDEF)
            each(context, text + symbol.st_name, defined);
    }
}

static bool parse(const image *file, tc_symbol_fn each, void *context, char why[TC_MESSAGE]) {
    Elf64_Ehdr head;
    if (file->n < sizeof head)
        return WRONG("the file is too short for an ELF object");
    memcpy(&head, file->bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
        return WRONG("the file is no ELF object of 64 bits");
    if (head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shnum == 0)
        return WRONG("the object has no section headers, from which its symbols could be read");
    for (uint64_t i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr table, strings;
        if (!read_section(file, head.e_shoff, i, &table))
            return WRONG("the object's section %llu lies beyond its file", (unsigned long long)i);
        if (table.sh_type != SHT_DYNSYM)
            continue;
        if (!read_section(file, head.e_shoff, table.sh_link, &strings) ||
            strings.sh_type != SHT_STRTAB)
            return WRONG("the object's dynamic symbols have no names");
        symbols(file, &table, &strings, each, context);
        return true;
    }
    return WRONG("the object has no dynamic symbols");
}

bool tc_object_symbols(const char *path, tc_symbol_fn each, void *context, char why[TC_MESSAGE]) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return WRONG("%.150s: %s", path, strerror(error));
    }
    void *bytes = info.st_size > 0 ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                                   : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED)
        return WRONG("%.150s: cannot be mapped", path);
    image file = {bytes, (uint64_t)info.st_size};
    bool ok = parse(&file, each, context, why);
    munmap(bytes, (size_t)info.st_size);
    return ok;
}
