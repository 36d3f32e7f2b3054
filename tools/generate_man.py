#!/usr/bin/env python3
"""Makes a man page of what a program says of itself: --help, and --help of each command.

usage: generate_man.py NAME VERSION env.def OUTPUT PROGRAM

Only what no --help says stands here: what the program is, where its files are, what else to read.
"""

import os
import pathlib
import re
import subprocess
import sys

WHAT = {
    "tenon": ("shows devices, plugins, operators and settings of Tenon",
              ["tenon asks the library what it has: the devices that can be used, what became of each plugin that was "
               "found, who answers an operator, which environment variables hold. It also writes the project of a new "
               "device plugin."]),
    "tenon-conform": ("tests a device plugin for Tenon",
                      ["tenon-conform runs cases on the devices of a plugin, each in a worker process, against what the "
                       "plugin interface promises and what a slow reference computes, and says which levels hold: Load, "
                       "Memory, Core, Full, Train, Perf. What fails comes as a line that runs that one case again."]),
}
SEE = {"tenon": "tenon-conform", "tenon-conform": "tenon"}
COMMAND = re.compile(r"^ {2,4}([a-z][a-z-]*)( [A-Z\[][^ ]*(?: [A-Z]+)*)? {2,}\S", re.M)
OPTION = re.compile(r"^ {2,6}(-\S.*?)(?: {2,}(\S.*))?$")
CONTINUED = re.compile(r"^ {12,}\S")
GROUP = re.compile(r"^ (\S.*)$")
ENTRY = re.compile(r'^X\((\w+), "[^"]*", "([^"]*)", ([01]), "([^"]*)", "((?:[^"\\]|\\.)*)"\)$', re.M)
OF_ARGP = re.compile(r"Mandatory or optional arguments to long options|--usage|^-\?, --help$|Give this help list")


def said(program, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "ARGP_"))} | {"LC_ALL": "C"}
    result = subprocess.run([program, *args, "--help"], capture_output=True, text=True, env=env)
    if result.returncode != 0:
        sys.exit(f"{program} {' '.join(args)} --help: {result.stderr}")
    return result.stdout


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def paragraphs(lines):
    return [" ".join(block.split()) for block in "\n".join(lines).split("\n\n") if block.strip()]


def body(text):
    """A help text after its first line: paragraphs, groups and options, as they come."""
    plain = []
    option = None
    for line in text.splitlines()[1:] + [""]:
        match = OPTION.match(line)
        if option and CONTINUED.match(line) and not match:
            option[1] += " " + line.strip()
            continue
        if option:
            if not OF_ARGP.search(option[0]):
                yield f".TP\n\\fB{roff(option[0])}\\fR\n{roff(option[1].strip())}\n"
            option = None
        if match or (GROUP.match(line) and not line.startswith("  ")):
            yield from (f".PP\n{roff(p)}\n" for p in paragraphs(plain) if not OF_ARGP.search(p))
            plain = []
        if match:
            option = [match[1], match[2] or ""]
        elif GROUP.match(line) and not line.startswith("  "):
            yield f".PP\n{roff(line.strip())}\n"
        else:
            plain.append(line)
    yield from (f".PP\n{roff(p)}\n" for p in paragraphs(plain) if not OF_ARGP.search(p))


def environment(definitions):
    yield ".SH ENVIRONMENT\n"
    for name, default, guarded, allowed, text in ENTRY.findall(definitions):
        words = text.replace('\\"', '"') + (f" ({allowed})" if allowed else "") + (f"; {default}" if default else "")
        ignored = ". Ignored where the program runs with raised privileges" if guarded == "1" else ""
        yield f".TP\n\\fBTENON_{name}\\fR\n{roff(words + ignored)}.\n"
    yield (".TP\n\\fBTENON_\\fITYPE\\fB_\\fIOPTION\\fR\noption of the plugins of a device type, such as "
           "TENON_CPU_THREADS.\n")


def page(name, version, definitions, program):
    what, description = WHAT[name]
    top = said(program)
    commands = [match[1] for match in COMMAND.finditer(top)]
    if not commands:
        sys.exit(f"{program} --help names no command")
    yield f'.TH {name.upper()} 1 "" "Tenon {version}" "Tenon"\n'
    yield f".SH NAME\n{name} \\- {what}\n"
    yield f".SH SYNOPSIS\n.B {name}\n.I COMMAND\n.RI [ OPTION ]...\n"
    yield ".SH DESCRIPTION\n" + "".join(f".PP\n{roff(p)}\n" for p in description)
    yield f"The commands are {', '.join(commands[:-1])} and {commands[-1]}; each says more with --help.\n".replace("-", "\\-")
    yield ".SH COMMANDS\n"
    for command in commands:
        text = said(program, command)
        usage = re.sub(r"^usage: ", "", text.splitlines()[0], flags=re.I)
        yield f".SS {roff(usage)}\n"
        yield from body(text)
    yield from environment(definitions)
    yield (".SH FILES\n.TP\n.I share/doc/tenon\nall pages of the documentation, samples, and the simulated device as "
           "source.\n.TP\n.I lib/tenon/plugins\nwhere plugins are installed.\n")
    yield f".SH SEE ALSO\n.BR {roff(SEE[name])} (1)\n"


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    name, version, definitions, output, program = sys.argv[1:]
    pathlib.Path(output).write_text("".join(page(name, version, pathlib.Path(definitions).read_text(), program)))


main()
