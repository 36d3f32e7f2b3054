/* Opens the first device of a plugin, as the smallest program does, and says what came of it and
 * whether it has raised privileges: opener PLUGIN.so. */
#include <mini_host.h>

#include <stdio.h>
#include <sys/auxv.h>

int main(int argc, char **argv) {
    mini m;
    bool is_open = argc == 2 && mini_open(&m, argv[1], 0);
    printf("secure: %lu\n%s\n", getauxval(AT_SECURE), is_open ? "open" : mini_error());
    if (is_open)
        mini_close(&m);
    return is_open ? 0 : 1;
}
