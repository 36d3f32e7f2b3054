/* The `tenon` command: asks the library what it has and prints the answer. */
#include "cli/cli.h"
#include "cli/output.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

typedef struct command {
    const char *name;
    int (*run)(const options *o);
    int n_arguments; /* at most so many */
    enum { PRINTS, LOADS, WRITES } kind;
    const char *arguments;
    const char *summary;
    const char *help;
} command;

static const command commands[] = {
    {"devices", command_devices, 0, LOADS, "", "the devices that can be used",
     "Loads every plugin and opens every device. The default is marked with a star: what\n"
     "TENON_DEVICE names, else cpu:0. A device that does not open is listed with the reason. A "
     "plugin\n"
     "that ends the process, or does not come back, does so to a process of its own.\n"},
    {"plugins", command_plugins, 0, LOADS, "",
     "the plugins that were found, and what became of each",
     "A plugin is `ready` (started), `refused` (its file or its tables are wrong), `failed` (it\n"
     "could not start) or `disabled` (by TENON_PLUGINS_DISABLE). The reason says what to do. One\n"
     "that ends the process, or does not come back, does so to a process of its own.\n"},
    {"ops", command_ops, 1, LOADS, " [NAME]",
     "the operators; with NAME, who answers its calls and why",
     "Without NAME: every operator with its schema. With one, such as `add` or `add.Tensor`: for\n"
     "each key the handler, who registered it and why it is the one; and the kernels that each\n"
     "device has. --json also has, of each, its C function, form, arguments with defaults, and\n"
     "results: what a language binding is made from.\n"},
    {"dtypes", command_dtypes, 0, PRINTS, "", "the element types, with their numbers",
     "The numbers are what the C functions and boxed calls take.\n"},
    {"env", command_env, 0, PRINTS, "", "the environment variables that are read, and their values",
     "The value shown is the one that holds now: what the environment says, or the default where "
     "it\n"
     "says nothing or what is not allowed. Then what looks like a variable of Tenon's and is an\n"
     "option of a plugin, or is read by nobody.\n"},
    {"new-plugin", command_new_plugin, 2, WRITES, " VENDOR TYPE",
     "the project of a new device plugin",
     "Writes a project that builds with Meson and with CMake, loads, and shows one device TYPE:0;\n"
     "what is to be written in it says so when it is called. Such as: tenon new-plugin acme npu\n"
     "In C++ it stands on tenon/plugin.hpp.\n"},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(*commands) };

#define JSON_OPTION "  --json      print JSON instead of a table\n"

/* What each kind of command takes. */
static const struct kind {
    const char *usage, *options;
    struct option table[6];
} kinds[] = {
    [PRINTS] = {"[--json]",
                JSON_OPTION,
                {{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {0}}},
    [LOADS] = {"[--json] [--timeout SECONDS]",
               JSON_OPTION
               "  --timeout SECONDS   how long a plugin may take to start; 60 if not given\n",
               {{"help", no_argument, NULL, 'h'},
                {"json", no_argument, NULL, 'j'},
                {"timeout", required_argument, NULL, 't'},
                {0}}},
    [WRITES] = {"[--dir DIR] [--lang L] [--wheel] [--ci]",
                "  --dir DIR   the folder to write, new or empty; tenon-TYPE if not given\n"
                "  --lang L    c or c++; c if not given\n"
                "  --wheel     what makes a wheel of it, too: `pip wheel --no-deps .`\n"
                "  --ci        what GitHub, GitLab or Jenkins run, too: conformance.sh and jobs\n",
                {{"help", no_argument, NULL, 'h'},
                 {"dir", required_argument, NULL, 'd'},
                 {"lang", required_argument, NULL, 'l'},
                 {"wheel", no_argument, NULL, 'w'},
                 {"ci", no_argument, NULL, 'c'},
                 {0}}},
};

#define HELP_OPTION "  --help      this text\n"
#define EXIT_CODES \
    "Exit code: 0, or 1 when what was asked for failed or is not there, or 2 for a mistake\n" \
    "in the command line.\n"

static void print_help(void) {
    printf("usage: tenon COMMAND [--json]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        char usage[40];
        const command *c = &commands[i];
        snprintf(usage, sizeof(usage), "%s%s", c->name, c->arguments);
        printf("  %-26s%s\n", usage, c->summary);
    }
    printf("\n" JSON_OPTION HELP_OPTION "  --version   the version of the library\n");
    printf("\n" EXIT_CODES "`tenon COMMAND --help` says more about one.\n");
}

static void print_command_help(const command *c) {
    const struct kind *kind = &kinds[c->kind];
    printf("usage: tenon %s%s %s\n\n%s\n%s" HELP_OPTION "\n" EXIT_CODES, c->name, c->arguments,
           kind->usage, c->help, kind->options);
}

static int usage_error(const char *what, const char *word) {
    fprintf(stderr, "tenon: %s '%s'; `tenon --help` lists what there is\n", what, word);
    return EXIT_USAGE;
}

int report_failure(void) {
    fputs("tenon: ", stderr);
    put_safely(stderr, tn_error_message(), true);
    fputc('\n', stderr);
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

static const command *find_command(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static bool read_seconds(const char *text, int *out) {
    size_t n = strspn(text, "0123456789");
    *out = n > 0 && n <= 4 && !text[n] ? atoi(text) : 0;
    return *out > 0;
}

static int run_command(const command *c, int argc, char **argv) {
    options o = {0};
    opterr = 0; /* said in our own words */
    for (int key; (key = getopt_long(argc, argv, ":h", kinds[c->kind].table, NULL)) != -1;) {
        if (key == 'h') {
            print_command_help(c);
            return EXIT_OK;
        }
        if (key == '?')
            return usage_error("there is no option", argv[optind - 1]);
        int named = key == ':' ? optopt : key;
        if (key == ':' && named == 'l')
            return usage_error("c or c++ must follow", "--lang");
        if (named == 'd' && (key == ':' || !*optarg))
            return usage_error("a folder's name must follow", "--dir");
        if (named == 't' && (key == ':' || !read_seconds(optarg, &o.timeout)))
            return usage_error("a number of seconds, from 1 to 9999, must follow", "--timeout");
        o.json |= key == 'j';
        o.wheel |= key == 'w';
        o.ci |= key == 'c';
        o.dir = key == 'd' ? optarg : o.dir;
        o.lang = key == 'l' ? optarg : o.lang;
    }
    if (argc - optind > c->n_arguments)
        return usage_error("one word too many:", argv[optind + c->n_arguments]);
    for (int i = optind; i < argc; i++)
        o.arguments[i - optind] = argv[i];
    return c->run(&o);
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
    const command *found = find_command(word);
    if (!found)
        return usage_error(word[0] == '-' ? "there is no option" : "there is no command", word);
    return run_command(found, argc - 1, argv + 1);
}

int check_output(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("tenon: standard output");
        return EXIT_FAILED;
    }
    return code;
}

int main(int argc, char **argv) {
    return check_output(run(argc, argv));
}
