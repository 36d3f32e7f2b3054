/* A driver with the functions that every version has and no other: older, or newer and not whole. */
#pragma GCC visibility push(default)
int cuInit(unsigned flags);
int cuDriverGetVersion(int *out);
#pragma GCC visibility pop

int cuInit(unsigned flags) {
    return (int)flags;
}

int cuDriverGetVersion(int *out) {
    *out = VERSION;
    return 0;
}
