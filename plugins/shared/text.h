/* Texts for the host, which are UTF-8. */
#ifndef TNI_PLUGINS_SHARED_TEXT_H
#define TNI_PLUGINS_SHARED_TEXT_H

/* How many bytes the character at `c` has; 0 where none begins. */
static inline int plugin_character_bytes(const unsigned char *c) {
    int bytes = *c < 0x80                 ? 1
                : *c >= 0xc2 && *c < 0xe0 ? 2
                : *c >= 0xe0 && *c < 0xf0 ? 3
                : *c >= 0xf0 && *c < 0xf5 ? 4
                                          : 0;
    for (int i = 1; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

/* What was cut within a character, or came from elsewhere, has question marks where no character is. */
static inline void plugin_mend_text(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c;) {
        int bytes = plugin_character_bytes(c);
        if (!bytes)
            *c = '?';
        c += bytes ? bytes : 1;
    }
}

#endif
