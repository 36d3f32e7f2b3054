"""What is known not to pass, and why."""


def read_expected(path):
    """{(kind, name, dtype): (status, reason)} of a file of lines `NAME DTYPE KINDS STATUS REASON`."""
    expected = {}
    for line in open(path) if path else ():
        if line.strip() and not line.startswith("#"):
            name, dtype, kinds, status, reason = line.split(maxsplit=4)
            for kind in kinds.split(","):
                expected[kind, name, dtype] = status, reason.strip()
    return expected
