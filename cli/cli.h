/* What the commands of `tenon` share: their entry, their exit codes, the two ways to print. */
#ifndef TNI_CLI_CLI_H
#define TNI_CLI_CLI_H

#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum { MAX_ARGUMENTS = 2 };

struct options {
    bool json;
    const char *dir;                      /* of --dir, or NULL */
    const char *arguments[MAX_ARGUMENTS]; /* the command's, NULL after the last */
};

int command_devices(const struct options *options);
int command_plugins(const struct options *options);
int command_ops(const struct options *options);
int command_env(const struct options *options);
int command_new_plugin(const struct options *options);

/* Prints the standing error after "tenon: " on standard error, forgets it, returns EXIT_FAILED. */
int report_failure(void);

/* "f32 f64 i64" for a mask of dtypes, into `out` of `size` bytes; returns out. */
char *dtypes_text(unsigned long long mask, char *out, unsigned size);

#endif
