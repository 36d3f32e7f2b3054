/* See kind.h. */
#include "plugin-sdk/conformance/runner/run/kind.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 8, LONGEST = 40 };

static bool is_subject(const char *line, const char *word, size_t n) {
    const char *slash = strchr(line, '/');
    size_t n_subject = slash ? strcspn(slash + 1, " ") : 0;
    while (n > 0 && (word[n - 1] == ':' || word[n - 1] == ','))
        n--;
    return n > 0 && n == n_subject && memcmp(slash + 1, word, n) == 0;
}

char *tc_kind(const char *line, tc_status status, uint32_t requirement, const char *message,
              char out[TC_MESSAGE]) {
    int n = snprintf(out, TC_MESSAGE, "%s TNP-%u", tc_status_name(status), requirement);
    if (status == TC_TIMEOUT)
        return out;
    if (status == TC_CRASH) {
        snprintf(out + n, TC_MESSAGE - (size_t)n, " %.*s", (int)strcspn(message, ";"), message);
        return out;
    }
    int depth = 0, n_words = 0;
    for (const char *p = message; *p && n_words < WORDS && n < TC_MESSAGE - 64;) {
        size_t length = strcspn(p, " ()[]");
        bool word = length > 0 && length < LONGEST && depth == 0 && !is_subject(line, p, length);
        for (size_t i = 0; i < length; i++)
            word &= isalpha((unsigned char)p[i]) || strchr("_:,.-", p[i]) != NULL;
        if (word) {
            n += snprintf(out + n, TC_MESSAGE - (size_t)n, " %.*s", (int)length, p);
            n_words++;
        }
        p += length;
        depth += *p == '(' || *p == '[' ? 1 : *p == ')' || *p == ']' ? -1 : 0;
        p += *p != '\0';
    }
    return out;
}
