/* See output_file.h. */
#include "plugin-sdk/conformance/runner/run/output_file.h"

#include <errno.h>
#include <string.h>

enum { MOST = 64 << 20 }; /* bytes; what comes then is in messages only */

/* Whether all of it is in the file now; `why` where that cannot be written. */
static bool keep_all(tc_output_file *f, const tc_output *output, const char *line,
                     const char **why) {
    if (!f->path)
        return false;
    if (!f->file)
        f->file = fopen(f->path, "ae");
    if (f->file && ftell(f->file) > MOST)
        return false;
    bool good = f->file && fprintf(f->file, "==== %s\n", line) > 0;
    if (good)
        tc_output_put(output, f->file);
    if (good && fflush(f->file) == 0 && !ferror(f->file))
        return true;
    *why = strerror(errno);
    return false;
}

void tc_output_tell(tc_output_file *f, const tc_output *output, const char *line,
                    const char *excerpt, bool keep, tc_verdict *v) {
    const char *why = NULL, *path = f->path;
    if (output->n == 0)
        return;
    bool kept = keep && keep_all(f, output, line, &why);
    size_t n = strlen(v->message);
    char *at = v->message + n;
    size_t room = sizeof v->message - n;
    if (kept)
        snprintf(at, room, "%sprinted (all of it is in %.300s): %s", n ? "; " : "", path, excerpt);
    else if (why)
        snprintf(at, room, "%sprinted (%.300s: %s): %s", n ? "; " : "", path, why, excerpt);
    else
        snprintf(at, room, "%sprinted: %s", n ? "; " : "", excerpt);
    if (why)
        f->path = NULL;
}

void tc_output_close(tc_output_file *f) {
    if (f->file)
        fclose(f->file);
    f->file = NULL;
}
