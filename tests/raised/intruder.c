/* The code of somebody who may start a program, to be run by a library in its place: as a driver,
 * a layer or a tool it only says that it was loaded. */
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void intrude(void) {
    printf("the caller's code runs as user %d\n", (int)geteuid());
    fflush(stdout);
}
