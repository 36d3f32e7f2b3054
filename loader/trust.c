/* Whom to let put code into this program: a plugin that others can write, or whose directory they
 * can write, is theirs to replace. */
#include "loader/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool trusted_step(const char *path, bool is_ancestor, bool secure, char *why, size_t size) {
    struct stat st;
    if (stat(path, &st) != 0) {
        snprintf(why, size, "%s cannot be examined: %s", path, strerror(errno));
        return false;
    }
    /* In a sticky directory others can add files, but not replace ours. */
    mode_t others = secure ? S_IWOTH | S_IWGRP : S_IWOTH;
    bool replaceable = (st.st_mode & others) && !(is_ancestor && (st.st_mode & S_ISVTX));
    const char *kind = S_ISDIR(st.st_mode) ? "directory" : "file";
    if (replaceable) {
        bool group = !(st.st_mode & S_IWOTH);
        snprintf(why, size,
                 "the %s %s may be written by %s, who could so put code into this program; "
                 "chmod %s it, or move the plugin elsewhere",
                 kind, path, group ? "its group" : "everyone", group ? "g-w" : "o-w");
        return false;
    }
    if (secure && st.st_uid != 0 && st.st_uid != geteuid()) {
        snprintf(why, size,
                 "the %s %s belongs to user %u, and this program runs with raised privileges; "
                 "plugins for it must belong to root or to user %u",
                 kind, path, (unsigned)st.st_uid, (unsigned)geteuid());
        return false;
    }
    return true;
}

bool tni_trusted(const char *path, bool secure, char *why, size_t size) {
    if (!trusted_step(path, false, secure, why, size))
        return false;
    struct stat st;
    bool first = stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    /* The directory of a file always; all that lie above only where a lot is at stake. */
    for (char *slash; (first || secure) && (slash = strrchr(parent, '/')); first = false) {
        slash[slash == parent] = '\0';
        if (!trusted_step(parent, !first, secure, why, size))
            return false;
        if (slash == parent)
            break;
    }
    return true;
}
