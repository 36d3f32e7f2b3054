#!/usr/bin/env python3
"""Makes the headers of a next minor version that there is not, from those of this one.

usage: next_minor.py plugin.h kernels.h dtype.h OUT_plugin.h OUT_kernels.h OUT_dtype.h

Whatever a version may add is added once, and hidden below TN_ABI_TARGET as plugin.h says: a member at
the end of each struct that may grow, a value in each enumeration, a bit in each set of flags, a dtype
whose number was reserved, an operator. One known operator gets another hash. What is added is called
`later`. Nothing here may fail to find its place: a struct that is new is asked for below."""

import re
import sys

# Tables get a function, the others a number.
TABLES = ("tn_host", "tn_memory_ops", "tn_stream_ops", "tn_event_ops", "tn_kernel", "tn_device_ops", "tn_plugin")
VALUES = ("tn_tensor_view", "tn_allocation", "tn_memory_info", "tn_call", "tn_plan")

# What stands before the first value, and the value that is added there.
ENUMERATORS = {
    "typedef enum tn_memory_space {": "TN_SPACE_LATER = 2,",
    "typedef enum tn_device_property {": "TN_PROP_LATER = 10,",
    "enum tn_cell_tag {": "TN_CELL_LATER = 9,",
    "enum {\n    TN_EVENT_TIMING": "TN_EVENT_LATER = 2u,",
    "enum {\n    TN_PLUGIN_FORK_SAFE": "TN_PLUGIN_LATER = 4u,",
}
REHASHED = "cumsum"  # no step of training here needs it


def later(new, old=""):
    return f"#if TN_ABI_TARGET >= TN_ABI_LATER\n{new}" + (f"#else\n{old}" if old else "") + "#endif\n"


class Header:
    def __init__(self, path):
        with open(path) as f:
            self.text = f.read()

    def replace(self, old, new):
        if self.text.count(old) != 1:
            sys.exit(f"next_minor.py: '{old}' stands {self.text.count(old)} times")
        self.text = self.text.replace(old, new)

    def match(self, pattern):
        m = re.search(pattern, self.text, re.S)
        return m or sys.exit(f"next_minor.py: no '{pattern}'")


def grow(h, name, member):
    """A member at the end, which the assertion of the layout follows."""
    assertion = h.match(rf"TN_LAST_MEMBER\({name}, \w+\);\n")[0]
    h.replace(assertion, later(f"TN_LAST_MEMBER({name}, later);\n", assertion))
    h.replace(f"}} {name};\n", later(f"    {member}\n") + f"}} {name};\n")


def map_entry(h, name, entry):
    """One more line of a map of X(...), and one more in its count."""
    body = h.match(rf"#define TN_{name}_MAP\(X\) \\\n(?:[^\n]*\\\n)*[^\n]*\n")[0]
    more = f"#define TN_{name}_MAP_LATER(X)"
    h.replace(body, later(f"{more} {entry}\n", f"{more}\n") + body[:-1] + f" \\\n    TN_{name}_MAP_LATER(X)\n")
    count = h.match(rf" +TN_{name}_COUNT = (\d+)")
    h.replace(count[0], "\n" + later(f"        TN_{name}_COUNT = {int(count[1]) + 1}\n", f"        TN_{name}_COUNT = {count[1]}\n"))


def plugin_h(source):
    h = Header(source)
    minor = h.match(r"#define TN_ABI_MINOR (\d+)u\n")
    h.replace(minor[0], f"#define TN_ABI_MINOR {int(minor[1]) + 1}u\n#define TN_ABI_LATER TN_ABI_VERSION\n")
    for name in TABLES:
        grow(h, name, "void (*later)(void);")
    for name in VALUES:
        grow(h, name, "uint64_t later;")
    if h.text.count("TN_ABI_LATER\nTN_LAST_MEMBER") != h.text.count("#else\nTN_LAST_MEMBER") or \
            len(re.findall(r"^TN_LAST_MEMBER", h.text, re.M)) != 2 * len(TABLES + VALUES):
        sys.exit("next_minor.py: a struct that may grow is missing in TABLES and VALUES")
    for place, value in ENUMERATORS.items():
        head, newline, first = place.partition("\n")
        h.replace(place, head + "\n" + later(f"    {value}\n") + (first or "    /* what there is */"))
    map_entry(h, "STATUS", 'X(ERR_LATER, 15, "LATER", "added by the next minor")')
    reserved = h.match(r' *(X\(U16, 10, [^\n]*\)) \\\n')
    map_entry(h, "DTYPE", reserved[1])
    h.replace("#define TN_KERNEL_STRIDED ", later("#define TN_KERNEL_LATER UINT64_C(128)\n") + "#define TN_KERNEL_STRIDED ")
    h.replace("typedef struct tn_memory_info {", later("enum { TN_ALLOC_LATER = 1u };\n") + "typedef struct tn_memory_info {")
    # Who copies the tables member by member says so with this, and would not compile. Here nothing is lost.
    h.replace("\n#endif /* TENON_PLUGIN_H */", """
#undef TN_LAST_MEMBER
#define TN_LAST_MEMBER(type, last) struct tn_layout_assert
#endif /* TENON_PLUGIN_H */""")
    return h.text


def kernels_h(source):
    h = Header(source)
    old = h.match(rf"#define TN_KERNEL_HASH_{REHASHED} UINT64_C\((\w+)\)")[1]
    h.text = h.text.replace(old, f"{int(old, 16) ^ 1:#018x}")
    # The new dtype is one that these operators take.
    h.text = re.sub(r"(#define TN_KERNEL_DTYPES_(?:add|mul) \{)(0x[0-9a-f]+)",
                    lambda m: f"{m[1]}{int(m[2], 16) | 1 << 10:#x}", h.text)
    h.replace("#define TN_KERNEL_TABLE(X) \\\n", """#define TN_KERNEL_entangle "entangle"
#define TN_KERNEL_HASH_entangle UINT64_C(0x1)
enum { TN_ARG_entangle_self = 0 };
#define TN_KERNEL_ARG_TYPES_entangle {0}
#define TN_KERNEL_OUT_TYPES_entangle {0}
#define TN_KERNEL_DTYPES_entangle {0xf}

#define TN_KERNEL_TABLE(X) \\
    X(entangle, UINT64_C(0x1), 0, pointwise, "entangle(Tensor self) -> Tensor") \\
""")
    return h.text


def dtype_h(source):
    """What plugins get to know is no storage dtype of the core any more."""
    h = Header(source)
    h.replace(h.match(r' *X\(U16, 10, [^\n]*\) \\\n')[0], "")
    return h.text


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    for make, source, output in zip((plugin_h, kernels_h, dtype_h), sys.argv[1:4], sys.argv[4:]):
        with open(output, "w") as f:
            f.write(make(source))
