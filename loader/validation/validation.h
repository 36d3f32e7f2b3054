/* The validation layer, as the loader sees it: tables of its own in place of a plugin's and of the
 * host's, which check each call and hand it on.
 *
 * Nothing else of Tenon knows of it. While TENON_VALIDATE is off there is no watch, and the tables
 * that travel are the plugin's and the host's own.
 */
#ifndef TNI_LOADER_VALIDATION_VALIDATION_H
#define TNI_LOADER_VALIDATION_VALIDATION_H

#include <stdbool.h>
#include <tenon/plugin.h>

/* A plugin that is watched. */
typedef struct tni_watch tni_watch;

/* Begins to watch the plugin that comes from `where`, before its query function is called; `host` is
 * what it would be given unwatched. While TENON_VALIDATE is off, or with a watch in `*out` already, it
 * does nothing. False without memory. */
bool tni_watch_begin(const char *where, const tn_host *host, tni_watch **out);

/* The table that stands for `host`. */
const tn_host *tni_watch_host(tni_watch *watch);

/* The table that stands for `table`, which was found valid: `table` itself with watch NULL. NULL
 * without memory. */
const tn_plugin *tni_watch_tables(tni_watch *watch, const tn_plugin *table);

/* Ends it; the plugin was shut down, or is never called again. NULL is fine. */
void tni_watch_end(tni_watch *watch);

/* Logs how many findings there are, if any plugin was watched since the last time. */
void tni_validation_summary(void);

#endif
