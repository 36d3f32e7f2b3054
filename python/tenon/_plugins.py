"""Finds plugins that were installed as wheels: tenon_plugins/NAME/libtenon_*.so beside other packages.

Their folders are added to TENON_PLUGIN_PATH, behind what is there. No code of theirs is run: the library judges,
loads and passes over plugins as it does everywhere.
"""

import os
import pathlib
import sys


def folders():
    """Of every plugin that a folder of sys.path has, in its order."""
    found = []
    for entry in filter(None, sys.path):  # not the working directory, which may be anyone's
        for plugin in sorted(pathlib.Path(entry).resolve().glob("tenon_plugins/*/libtenon_*.so")):
            if str(plugin.parent) not in found and ":" not in str(plugin.parent):
                found.append(str(plugin.parent))
    return found


def add_to(environment):
    here = [p for p in environment.get("TENON_PLUGIN_PATH", "").split(":") if p]
    more = [folder for folder in folders() if folder not in here]
    if more:
        environment["TENON_PLUGIN_PATH"] = ":".join(here + more)


add_to(os.environ)
