/* The `tenon` command: asks the library what it has and prints the answer. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

static const struct command {
    const char *name;
    int (*run)(const struct options *options);
    int n_arguments;  /* at most so many */
    bool makes_files; /* takes --dir; the others print, and take --json */
    const char *arguments;
    const char *summary;
    const char *help;
} commands[] = {
    {"devices", command_devices, 0, false, "", "the devices that can be used",
     "Loads every plugin and opens every device. The default is marked with a star: what\n"
     "TENON_DEVICE names, else cpu:0. A device that does not open is listed with the reason.\n"},
    {"plugins", command_plugins, 0, false, "",
     "the plugins that were found, and what became of each",
     "A plugin is `ready` (started), `refused` (its file or its tables are wrong), `failed` (it\n"
     "could not start) or `disabled` (by TENON_PLUGINS_DISABLE). The reason says what to do.\n"},
    {"ops", command_ops, 1, false, " [NAME]",
     "the operators; with NAME, who answers its calls and why",
     "Without NAME: every operator with its schema. With one, such as `add` or `add.Tensor`: for\n"
     "each key the handler, who registered it and why it is the one; and the kernels that each\n"
     "device has.\n"},
    {"env", command_env, 0, false, "", "the environment variables that are read, and their values",
     "The value shown is the one that holds now: what the environment says, or the default.\n"},
    {"new-plugin", command_new_plugin, 2, true, " VENDOR TYPE",
     "the project of a new device plugin",
     "Writes a project that builds with Meson and with CMake, loads, and shows one device TYPE:0;\n"
     "what is to be written in it says so when it is called. Such as: tenon new-plugin acme npu\n"},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(*commands) };

#define JSON_OPTION "  --json      print JSON instead of a table\n"
#define DIR_OPTION "  --dir DIR   the folder to write, new or empty; tenon-TYPE if not given\n"
#define HELP_OPTION "  --help      this text\n"

static void print_help(void) {
    printf("usage: tenon COMMAND [--json]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        char usage[40];
        const struct command *c = &commands[i];
        snprintf(usage, sizeof(usage), "%s%s", c->name, c->arguments);
        printf("  %-26s%s\n", usage, c->summary);
    }
    printf("\n" JSON_OPTION HELP_OPTION "  --version   the version of the library\n");
    printf(
        "\nExit code: 0, or 1 when what was asked for failed or is not there, or 2 for a mistake\n"
        "in the command line. `tenon COMMAND --help` says more about one.\n");
}

static void print_command_help(const struct command *c) {
    printf("usage: tenon %s%s [%s]\n\n%s\n%s" HELP_OPTION, c->name, c->arguments,
           c->makes_files ? "--dir DIR" : "--json", c->help,
           c->makes_files ? DIR_OPTION : JSON_OPTION);
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
    int n = 0; /* arguments so far */
    for (int i = 0; i < n_args; i++) {
        if (!command->makes_files && strcmp(args[i], "--json") == 0) {
            options.json = true;
        } else if (command->makes_files && strcmp(args[i], "--dir") == 0) {
            if (++i == n_args || !*args[i])
                return usage_error("a folder's name must follow", "--dir");
            options.dir = args[i];
        } else if (strcmp(args[i], "--help") == 0 || strcmp(args[i], "-h") == 0) {
            print_command_help(command);
            return EXIT_OK;
        } else if (args[i][0] == '-') {
            return usage_error("there is no option", args[i]);
        } else if (n == command->n_arguments) {
            return usage_error("one word too many:", args[i]);
        } else {
            options.arguments[n++] = args[i];
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
