/* Exports nothing at all. */
int unused_by_anyone(void);
int unused_by_anyone(void) {
    return 0;
}
