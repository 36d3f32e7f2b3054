/* A table for people: aligned columns; on a terminal the last column wraps at its width.
 *
 * Cells are copied. Rows are printed by table_print, when all widths are known.
 */
#ifndef TNI_CLI_TABLE_H
#define TNI_CLI_TABLE_H

enum { TABLE_MAX_COLUMNS = 8 };

typedef struct table table;

/* Headings, NULL after the last. NULL without memory, and so do all below accept a NULL table. */
table *table_create(const char *const *headings);
void table_destroy(table *t);

/* One cell for each column, NULL after the last; an empty cell is shown as "-". */
void table_row(table *t, const char *const *cells);
/* Text under the last row, indented. */
void table_note(table *t, const char *text);

/* Every line starts with `indent` spaces. */
void table_print(const table *t, int indent);

/* Columns of the terminal, or 0 when standard output is none. */
int terminal_width(void);

#endif
