#!/usr/bin/env python3
"""Checks that fork knows every lock of the library.

usage: check_locks.py ROOT

Each lock of base, dispatcher and core is a row of TNI_FORK_MAP (base/fork.h), each row is a lock that
there is, and the level of each is registered. A loop on an atomic exchange is a lock as well, and holds
tni_fork_generation. A plugin that says TN_PLUGIN_FORK_SAFE has no locks, or the extension TN_EXT_FORK.
"""

import pathlib
import re
import sys

LOCK = re.compile(r"^[ \t]*(?!extern\b)(?:static\s+|_Atomic\s+|TNI_TLS\s+)*"
                  r"(?:pthread_(?:mutex|rwlock|spinlock|cond|barrier)_t|tni_lock|mtx_t|cnd_t|sem_t|atomic_flag)"
                  r"\s+(\w+)\s*(?:\[[^\]]*\])?\s*(?:=|;|,)", re.M)
SPIN = re.compile(r"\bwhile\s*\([^;{]*(?:atomic_exchange|atomic_flag_test_and_set|__atomic_exchange|"
                  r"__atomic_test_and_set|__sync_lock_test_and_set)\w*\([^;{]*")
ROW = re.compile(r'^\s*X\((\w+), "([\w.]+)", (\w+)\)', re.M)
REGISTERED = re.compile(r"^TNI_FORK_(?:PART|MUTEX|LOCK)\((\w+)", re.M)
OWN = {("fork.c", "one_fork"), ("fork.h", "mutex")}  # the table's own


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h", ".cl"))


def problems_of_library(root):
    rows = {}
    for level, file, name in ROW.findall((root / "base/fork.h").read_text()):
        rows[file, name] = level
    problems, found, registered = [], set(), set()
    for folder in ("base", "dispatcher", "loader", "core"):
        for path in sources(root / folder):
            text = path.read_text()
            registered.update(REGISTERED.findall(text))
            for lock in LOCK.finditer(text):
                key = path.name, lock[1]
                found.add(key)
                if key not in rows and key not in OWN:
                    problems.append(f"{path}:{text.count(chr(10), 0, lock.start(1)) + 1}: lock '{lock[1]}' is no row"
                                    " of TNI_FORK_MAP in base/fork.h; a forked child may find it held for ever")
            for spin in SPIN.finditer(text):
                before = text[max(0, spin.start() - 120):spin.start()]
                if "tni_fork_generation" not in before + spin[0]:
                    problems.append(f"{path}:{text.count(chr(10), 0, spin.start()) + 1}: a lock that spins must hold"
                                    " tni_fork_generation (base/fork.h)")
    problems += [f"base/fork.h: TNI_FORK_MAP has {f}, {n}, which is no lock that there is"
                 for f, n in rows if (f, n) not in found]
    problems += [f"base/fork.h: nobody registers {level}" for level in rows.values() if level not in registered]
    return len(rows), problems


def problems_of_plugin(folder):
    texts = {path: path.read_text() for path in sources(folder)}
    if not any(re.search(r"\.flags\s*=[^,;]*TN_PLUGIN_FORK_SAFE", text) for text in texts.values()):
        return []
    if any("TN_EXT_FORK" in text for text in texts.values()):
        return []
    return [f"{path}: lock '{name}' of a plugin that says TN_PLUGIN_FORK_SAFE, without the extension TN_EXT_FORK"
            for path, text in texts.items() for name in LOCK.findall(text)]


def main():
    root = pathlib.Path(sys.argv[1])
    n_rows, problems = problems_of_library(root)
    for folder in sorted(p for p in (root / "plugins").iterdir() if p.is_dir()):
        problems += problems_of_plugin(folder)
    print("\n".join(problems) or f"locks: {n_rows}, all known to fork")
    return 1 if problems or not n_rows else 0


sys.exit(main())
