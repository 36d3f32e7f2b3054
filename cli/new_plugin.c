/* tenon new-plugin: writes the project of a new device plugin.
 *
 * The project is a copy of the template of the plugin SDK: what all languages share, the sources in
 * one, which compile as they stand, and where it is asked for what makes a wheel and what a CI runs.
 * The made-up names in it are replaced. What was written is taken back when something fails. */
#include "cli/cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TYPE = 31, MAX_VENDOR = 63 };

static int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "tenon: new-plugin: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return code;
}

/* ---- names ------------------------------------------------------------------------------- */

/* [a-z][a-z0-9_]*, for it becomes part of C names and of the plugin's id. */
static bool is_name(const char *name, size_t most) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= most && !name[n] && name[0] >= 'a';
}

static int check_names(const char *vendor, const char *type) {
    if (!is_name(vendor, MAX_VENDOR))
        return fail(EXIT_USAGE,
                    "VENDOR is '%s'; write a lower-case letter, then lower-case letters, digits or "
                    "_, at most %d characters, such as acme",
                    vendor, (int)MAX_VENDOR);
    if (!is_name(type, MAX_TYPE))
        return fail(EXIT_USAGE,
                    "TYPE is '%s'; write what users will put before the colon in "
                    "TENON_DEVICE=npu:0: a lower-case letter, then lower-case letters, digits or "
                    "_, at most %d characters",
                    type, (int)MAX_TYPE);
    static const char *const own[] = {"meta", "tn", "cpu", "sim", "opencl", "cuda"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(type, own[i]) == 0)
            return fail(EXIT_USAGE, "TYPE '%s' is Tenon's own; choose another", type);
    return EXIT_OK;
}

/* ---- languages --------------------------------------------------------------------------- */

/* A language of plugins, and what stands in the shared files for its made-up names. */
typedef struct language {
    const char *name;   /* of --lang */
    const char *folder; /* of the template */
    const char *suffix, *meson, *cmake;
} language;

static const language languages[] = {{"c", "c", "c", "'c'", "C"},
                                     {"c++", "cpp", "cpp", "'c', 'cpp'", "C CXX"}};
enum { N_LANGUAGES = sizeof languages / sizeof *languages };

static const language *find_language(const char *name) {
    for (int i = 0; i < N_LANGUAGES; i++)
        if (strcmp(languages[i].name, name) == 0)
            return &languages[i];
    return NULL;
}

/* ---- the template ------------------------------------------------------------------------ */

/* Where the template is: in the build tree a note beside the program says so, else it is installed,
 * at a known way from the program. */
static bool find_template(char *out, size_t size) {
    char folder[PATH_MAX], path[PATH_MAX + 32];
    if (!realpath("/proc/self/exe", folder))
        return false;
    *strrchr(folder, '/') = '\0';

    snprintf(path, sizeof path, "%s/.tenon-template", folder);
    FILE *note = fopen(path, "r");
    if (note) {
        bool found = fgets(out, (int)size, note);
        fclose(note);
        out[strcspn(out, "\n")] = '\0';
        return found;
    }
    static const char way[] = TENON_TEMPLATE; /* from the program's folder, or absolute */
    int n =
        way[0] == '/' ? snprintf(out, size, "%s", way) : snprintf(out, size, "%s/%s", folder, way);
    return (size_t)n < size;
}

static int is_file(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* The files that a project gets, in the folders that they come from. */
enum { MAX_FOLDERS = 4 };
typedef struct source {
    char folder[2 * PATH_MAX + 8];
    struct dirent **names;
    int n_names; /* -1: the folder cannot be read */
} source;

/* How many files they have, or 0 when one of the folders has none. */
static int sources_open(source sources[MAX_FOLDERS], int *out_n_folders, const char *template,
                        const language *lang, const options *o) {
    const char *folders[MAX_FOLDERS] = {"shared", lang->folder, o->wheel ? "wheel" : NULL,
                                        o->ci ? "ci" : NULL};
    int n = 0;
    bool whole = true;
    for (int i = 0; i < MAX_FOLDERS; i++) {
        if (!folders[i])
            continue;
        source *s = &sources[(*out_n_folders)++];
        snprintf(s->folder, sizeof s->folder, "%s/%s", template, folders[i]);
        s->n_names = scandir(s->folder, &s->names, is_file, alphasort);
        whole &= s->n_names > 0;
        n += s->n_names;
    }
    return whole ? n : 0;
}

static void sources_close(source sources[MAX_FOLDERS]) {
    for (int f = 0; f < MAX_FOLDERS; f++) {
        for (int i = 0; i < sources[f].n_names; i++)
            free(sources[f].names[i]);
        free(sources[f].names);
    }
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Each made-up name of the template, and what stands for it. */
typedef struct replacement {
    const char *from, *to;
} replacement;

enum { N_REPLACEMENTS = 6 };

static void write_replaced(FILE *out, const char *text, size_t n,
                           const replacement replacements[N_REPLACEMENTS]) {
    for (size_t i = 0; i < n;) {
        const replacement *found = NULL;
        for (int r = 0; r < N_REPLACEMENTS && !found; r++) {
            if (strncmp(text + i, replacements[r].from, strlen(replacements[r].from)) == 0)
                found = &replacements[r];
        }
        if (found) {
            fputs(found->to, out);
            i += strlen(found->from);
        } else {
            putc(text[i++], out);
        }
    }
}

/* A file's bytes and a NUL, to be freed, and whether it is a program; NULL with errno. */
static char *read_whole(int folder, const char *name, size_t *out_n, bool *out_program) {
    char *text = NULL;
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    if (!in) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (fstat(fd, &st) == 0 && (text = malloc((size_t)st.st_size + 1))) {
        *out_n = fread(text, 1, (size_t)st.st_size, in);
        text[*out_n] = '\0';
        *out_program = st.st_mode & S_IXUSR;
        if (ferror(in)) {
            free(text);
            text = NULL;
        }
    }
    fclose(in);
    return text;
}

/* Makes `to`/`name`, which must not be there. False with errno, and then it is not there. */
static bool write_file(int to, const char *name, const char *text, size_t n, bool program,
                       const replacement replacements[N_REPLACEMENTS]) {
    int fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, program ? 0777 : 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    write_replaced(out, text, n, replacements);
    bool failed = ferror(out);
    failed |= fclose(out) != 0;
    if (failed) {
        int error = errno;
        unlinkat(to, name, 0);
        errno = error;
    }
    return !failed;
}

static void unlink_files(int to, const source *s, int n) {
    while (n-- > 0)
        unlinkat(to, s->names[n]->d_name, 0);
}

/* Copies the files of one folder; on failure none of them is left. */
static int copy_files(const source *s, int to, const char *dir,
                      const replacement replacements[N_REPLACEMENTS]) {
    int from = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return fail(EXIT_FAILED, "cannot read the template: %s", strerror(errno));
    int code = EXIT_OK;
    for (int i = 0; i < s->n_names && code == EXIT_OK; i++) {
        const char *name = s->names[i]->d_name;
        size_t n = 0;
        bool program;
        char *text = read_whole(from, name, &n, &program);
        if (!text || !write_file(to, name, text, n, program, replacements)) {
            int error = errno;
            unlink_files(to, s, i);
            code = fail(EXIT_FAILED,
                        text ? "cannot write %s/%s: %s" : "cannot read %s of the template%s: %s",
                        text ? dir : name, text ? name : "", strerror(error));
        }
        free(text);
    }
    close(from);
    return code;
}

/* ---- the command ------------------------------------------------------------------------- */

/* A new folder, or one that is there and empty. */
static int open_project(const char *dir, bool *out_made, int *out_fd) {
    *out_fd = -1;
    *out_made = mkdir(dir, 0777) == 0;
    if (!*out_made && errno != EEXIST)
        return fail(EXIT_FAILED, "cannot make the folder '%s': %s", dir, strerror(errno));
    struct dirent **entries;
    int n = scandir(dir, &entries, is_file, NULL);
    if (n < 0)
        return fail(EXIT_FAILED, "'%s' is there and cannot be used: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    if (n > 0)
        return fail(EXIT_FAILED, "the folder '%s' is not empty; --dir names another", dir);
    *out_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out_fd < 0)
        return fail(EXIT_FAILED, "'%s' cannot be used: %s", dir, strerror(errno));
    return EXIT_OK;
}

static int write_project(const source sources[MAX_FOLDERS], int n_folders, const char *dir,
                         const replacement replacements[N_REPLACEMENTS]) {
    bool made;
    int to, copied = 0, code = open_project(dir, &made, &to);
    if (code != EXIT_OK)
        return code;
    while (copied < n_folders && code == EXIT_OK) {
        code = copy_files(&sources[copied], to, dir, replacements);
        copied += code == EXIT_OK;
    }
    if (code != EXIT_OK) {
        while (copied-- > 0)
            unlink_files(to, &sources[copied], sources[copied].n_names);
        if (made)
            rmdir(dir);
    }
    close(to);
    return code;
}

int command_new_plugin(const options *o) {
    const char *vendor = o->arguments[0], *type = o->arguments[1];
    if (!vendor || !type)
        return fail(EXIT_USAGE, "VENDOR and TYPE are needed, such as: tenon new-plugin acme npu");
    int code = check_names(vendor, type);
    if (code != EXIT_OK)
        return code;
    const language *lang = find_language(o->lang ? o->lang : "c");
    if (!lang)
        return fail(EXIT_USAGE, "there is no template in '%s'; --lang takes c or c++", o->lang);

    char template[2 * PATH_MAX] = "", dir[MAX_TYPE + 8], upper[MAX_TYPE + 1] = "";
    source sources[MAX_FOLDERS] = {0};
    int n_names = 0, n_folders = 0;
    if (find_template(template, sizeof template))
        n_names = sources_open(sources, &n_folders, template, lang, o);
    if (n_names == 0) {
        sources_close(sources);
        return fail(
            EXIT_FAILED,
            "the template is not in %s; it is installed with Tenon, as share/tenon/template",
            template);
    }
    for (int i = 0; type[i]; i++)
        upper[i] = (char)toupper((unsigned char)type[i]);
    snprintf(dir, sizeof dir, "tenon-%s", type);
    const char *to = o->dir ? o->dir : dir;
    const replacement replacements[N_REPLACEMENTS] = {{"yourvendor", vendor},
                                                      {"yourtype", type},
                                                      {"YOURTYPE", upper},
                                                      {"yourc", lang->suffix},
                                                      {"'yourlanguages'", lang->meson},
                                                      {"YOURLANGUAGES", lang->cmake}};
    bool here = strcmp(to, ".") == 0;
    code = write_project(sources, n_folders, to, replacements);
    sources_close(sources);
    if (code == EXIT_OK)
        printf("%s: %d files. Next:\n\n"
               "%s%s%s"
               "  meson setup build && meson compile -C build\n"
               "  TENON_PLUGIN_PATH=$PWD/build tenon devices\n\n"
               "README.md there says what to write first.\n",
               to, n_names, here ? "" : "  cd ", here ? "" : to, here ? "" : "\n");
    return code;
}
