/* What the commands of `tenon` share: their entry and their exit codes. */
#ifndef TNI_CLI_CLI_H
#define TNI_CLI_CLI_H

#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum { MAX_ARGUMENTS = 2 };

typedef struct options {
    bool json;
    bool wheel, ci;                       /* --wheel, --ci */
    const char *dir, *lang;               /* of --dir and --lang, or NULL */
    int timeout;                          /* of --timeout, in seconds, or 0 */
    const char *arguments[MAX_ARGUMENTS]; /* the command's, NULL after the last */
} options;

int command_devices(const options *o);
int command_plugins(const options *o);
int command_ops(const options *o);
int command_dtypes(const options *o);
int command_env(const options *o);
int command_new_plugin(const options *o);

/* Prints the standing error after "tenon: " on standard error, forgets it, returns EXIT_FAILED. */
int report_failure(void);

/* `code`, or EXIT_FAILED after a word where standard output cannot be written. */
int check_output(int code);

/* "f32 f64 i64" for a mask of dtypes, into `out` of `size` bytes; returns out. */
char *dtypes_text(unsigned long long mask, char *out, unsigned size);

#endif
