/* Feeds bytes to the schema parser: nothing may be read past the end, and what parses must be
 * printed as text that parses to the same text.
 *
 * A libFuzzer target; with -DFUZZ_STANDALONE a program that runs the files it is given. */
#include "dispatcher/schema.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    memcpy(text, data, n);
    text[n] = 0;
    tni_schema *schema = NULL, *again = NULL;
    if (tni_schema_parse(text, &schema) == TN_OK && strlen(schema->text) <= TNI_MAX_SCHEMA_BYTES) {
        if (tni_schema_parse(schema->text, &again) != TN_OK ||
            strcmp(schema->text, again->text) != 0)
            abort();
        tn_cell cell = {.tag = TN_CELL_I64, .v.i64 = 3};
        for (uint32_t i = 0; i < schema->n_args; i++) {
            (void)tni_schema_check(schema, i, &cell);
            (void)tni_schema_check(again, i, &schema->args[i].fallback);
        }
    }
    tn_error_clear();
    tni_schema_destroy(again);
    tni_schema_destroy(schema);
    free(text);
    return 0;
}

#ifdef FUZZ_STANDALONE
int main(int argc, char **argv) {
    static uint8_t data[1 << 16];
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t n = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, n);
    }
    return 0;
}
#endif
