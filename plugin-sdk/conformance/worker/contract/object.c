/* Dynamic symbols by way of libelf, which checks everything in the file before it is used: the file
 * is the subject's. */
#include "plugin-sdk/conformance/worker/contract/object.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WRONG(...) tc_why(why, TC_MESSAGE, __VA_ARGS__)

static void symbols(Elf *elf, Elf_Data *table, size_t strings, tc_symbol_fn each, void *context) {
    GElf_Sym symbol;
    for (int i = 1; gelf_getsym(table, i, &symbol); i++) {
        const char *name = elf_strptr(elf, strings, symbol.st_name);
        if (GELF_ST_BIND(symbol.st_info) == STB_LOCAL || !name)
            continue;
        /* A version's own name is an absolute symbol, which nothing can bind to. */
        bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
        int visibility = GELF_ST_VISIBILITY(symbol.st_other);
        if (defined && visibility != STV_DEFAULT && visibility != STV_PROTECTED)
            continue;
        if (defined || symbol.st_shndx == SHN_UNDEF)
            each(context, name, defined);
    }
}

static bool parse(Elf *elf, tc_symbol_fn each, void *context, char why[TC_MESSAGE]) {
    if (elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64)
        return WRONG("the file is no ELF object of 64 bits");
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
            continue;
        Elf_Data *table = elf_getdata(section, NULL);
        if (!table)
            return WRONG("the object's dynamic symbols cannot be read: %s", elf_errmsg(-1));
        symbols(elf, table, header.sh_link, each, context);
        return true;
    }
    return WRONG("the object has no section of dynamic symbols");
}

bool tc_object_symbols(const char *path, tc_symbol_fn each, void *context, char why[TC_MESSAGE]) {
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return WRONG("%.150s: %s", path, strerror(errno));
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool good = elf ? parse(elf, each, context, why) : WRONG("%.150s: %s", path, elf_errmsg(-1));
    elf_end(elf);
    close(fd);
    return good;
}
