/* A program that loads libtenon by hand and lets it go again while threads live that used it: what they
 * registered for their end is still there when they end.
 *
 *   test_unload LIBTENON */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <tenon/tenon.h>

static sem_t used, closed;
static void (*clear)(void);
static tn_device (*parse)(const char *name);
static uint64_t (*held)(void);

static void *use(void *user) {
    tn_device d = parse("cpu:0");
    clear();
    if (d.type == 0)
        fprintf(stderr, "there is no cpu:0\n");
    held();
    parse("nosuch:0"); /* leaves an error, which the thread's end frees */
    sem_post(&used);
    sem_wait(&closed);
    return NULL;
}

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: test_unload LIBTENON");
        return 2;
    }
    *(void **)&clear = dlsym(library, "tn_error_clear");
    *(void **)&parse = dlsym(library, "tn_device_parse");
    *(void **)&held = dlsym(library, "tn_scope_held");
    pthread_t thread;
    if (!clear || !parse || !held || sem_init(&used, 0, 0) || sem_init(&closed, 0, 0) ||
        pthread_create(&thread, NULL, use, NULL))
        return 2;
    sem_wait(&used);
    dlclose(library);
    sem_post(&closed);
    pthread_join(thread, NULL);
    printf("ended well\n");
    return 0;
}
