/* The `tenon` command: asks the library what it has and prints the answer. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

static const struct command {
    const char *name;
    int (*run)(const struct options *options);
    const char *argument; /* NULL: takes none */
    const char *summary;
    const char *help;
} commands[] = {
    {"devices", command_devices, NULL, "the devices that can be used",
     "Loads every plugin and opens every device. The default is marked with a star: what\n"
     "TENON_DEVICE names, else cpu:0. A device that does not open is listed with the reason.\n"},
    {"plugins", command_plugins, NULL, "the plugins that were found, and what became of each",
     "A plugin is `ready` (started), `refused` (its file or its tables are wrong), `failed` (it\n"
     "could not start) or `disabled` (by TENON_PLUGINS_DISABLE). The reason says what to do.\n"},
    {"ops", command_ops, "NAME", "the operators; with NAME, who answers its calls and why",
     "Without NAME: every operator with its schema. With one, such as `add` or `add.Tensor`: for\n"
     "each key the handler, who registered it and why it is the one; and the kernels that each\n"
     "device has.\n"},
    {"env", command_env, NULL, "the environment variables that are read, and their values",
     "The value shown is the one that holds now: what the environment says, or the default.\n"},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(*commands) };

static const char *const trailer = "\n"
                                   "  --json      print JSON instead of a table\n"
                                   "  --help      this text\n";

static void print_help(void) {
    printf("usage: tenon COMMAND [--json]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        char usage[40];
        const struct command *c = &commands[i];
        snprintf(usage, sizeof(usage), c->argument ? "%s [%s]" : "%s", c->name, c->argument);
        printf("  %-12s%s\n", usage, c->summary);
    }
    printf("%s  --version   the version of the library\n", trailer);
    printf(
        "\nExit code: 0, or 1 when what was asked for failed or is not there, or 2 for a mistake\n"
        "in the command line. `tenon COMMAND --help` says more about one.\n");
}

static void print_command_help(const struct command *c) {
    printf("usage: tenon %s%s%s%s [--json]\n\n%s%s", c->name, c->argument ? " [" : "",
           c->argument ? c->argument : "", c->argument ? "]" : "", c->help, trailer);
}

static int usage_error(const char *what, const char *word) {
    fprintf(stderr, "tenon: %s '%s'; `tenon --help` lists what there is\n", what, word);
    return EXIT_USAGE;
}

int report_failure(void) {
    fprintf(stderr, "tenon: %s\n", tn_error_message());
    tn_error_clear();
    return EXIT_FAILED;
}

char *dtypes_text(unsigned long long mask, char *out, unsigned size) {
    unsigned used = 0;
    out[0] = '\0';
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT && used < size; dtype++) {
        if (mask & TN_DTYPE_BIT(dtype))
            used += (unsigned)snprintf(out + used, size - used, "%s%s", used ? " " : "",
                                       tn_dtype_name(dtype));
    }
    return out;
}

static const struct command *find_command(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int run_command(const struct command *command, int n_args, char **args) {
    struct options options = {0};
    for (int i = 0; i < n_args; i++) {
        if (strcmp(args[i], "--json") == 0) {
            options.json = true;
        } else if (strcmp(args[i], "--help") == 0 || strcmp(args[i], "-h") == 0) {
            print_command_help(command);
            return EXIT_OK;
        } else if (args[i][0] == '-') {
            return usage_error("there is no option", args[i]);
        } else if (!command->argument || options.name) {
            return usage_error("one word too many:", args[i]);
        } else {
            options.name = args[i];
        }
    }
    return command->run(&options);
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_help();
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help();
        return EXIT_OK;
    }
    if (strcmp(word, "--version") == 0) {
        printf("tenon %s\n", tn_version());
        return EXIT_OK;
    }
    const struct command *command = find_command(word);
    if (!command)
        return usage_error(word[0] == '-' ? "there is no option" : "there is no command", word);
    return run_command(command, argc - 2, argv + 2);
}

int main(int argc, char **argv) {
    int code = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("tenon: standard output");
        return EXIT_FAILED;
    }
    return code;
}
