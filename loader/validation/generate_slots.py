#!/usr/bin/env python3
"""Lists the slots of the plugin interface, for the tables that stand in front of a plugin's.

usage: generate_slots.py HEADER OUTPUT.h COMPILER...

Of each the output has the prototype of its checked form, and a line of the list TNI_SLOTS. A slot whose checked form
nobody has written does not link.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "plugin-sdk"))
from plugin_h import preprocessed, structs  # noqa: E402

# struct: (its member of tni_tables, what the names of its slots begin with)
TABLES = {"tn_host": ("host", "host_"), "tn_plugin": ("plugin", ""), "tn_device_ops": ("devices", ""),
          "tn_memory_ops": ("memory", ""), "tn_stream_ops": ("streams", "stream_"), "tn_event_ops": ("events", "event_")}

SLOT = re.compile(r"(.*?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)")


def slots(header):
    for struct, members in header:
        table, prefix = TABLES.get(struct, (None, None))
        for _, declaration in members if table else ():
            slot = SLOT.fullmatch(declaration)
            if slot:
                result, name, parameters = (part.strip() for part in slot.groups())
                yield table, name, prefix + name, result, parameters


def main(header, output, *compiler):
    prototypes, listed = "", "#define TNI_SLOTS(X, N)"
    for table, name, function, result, parameters in slots(structs(preprocessed(header, compiler))):
        arguments = ", ".join(re.search(r"\w+$", p)[0] for p in parameters.split(","))
        prototypes += f"{result} tni_watched_{function}(tni_watch *w, {parameters});\n"
        listed += (f" \\\n    X(N, {table}, {name}, {function}, {result}, ({parameters}),"
                   f" (&tni_watches[N], {arguments}))")
    pathlib.Path(output).write_text(
        f"/* Made by generate_slots.py from tenon/plugin.h. */\n\n{prototypes}\n"
        f"/* X(N, table, slot, function, result, parameters, arguments) */\n{listed}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
