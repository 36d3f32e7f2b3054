"""A text as a C array of its bytes: embed.py NAME INPUT OUTPUT."""

import pathlib
import sys

name, source, target = sys.argv[1:4]
data = pathlib.Path(source).read_bytes() + b"\0"
rows = [", ".join(str(b) for b in data[i : i + 24]) for i in range(0, len(data), 24)]
body = ",\n    ".join(rows)
pathlib.Path(target).write_text(f"extern const char {name}[];\nconst char {name}[] = {{\n    {body}}};\n")
