#!/usr/bin/env python3
"""Tests the checks: each must find the mistake it is for, planted in a small tree.

usage: checks_test.py SOURCE-ROOT
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
TOOLS = ROOT / "tools"


def run(tool, *args):
    result = subprocess.run([sys.executable, TOOLS / tool, *map(str, args)],
                            capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


class Planted(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name).resolve()

    def put(self, path, text):
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        return full


DRAWING = "plugin-sdk  <-  base  <-  dispatcher  <-  loader  <-  core  <-  nn  <-  cli, samples, tests, bench\n" \
          "     ^--- plugins (each knows itself, plugins/shared and plugin-sdk)\n"
HOUSE = "## The house\n```\nnn\ncore\nloader\ndispatcher\nbase\nplugins --- plugin-sdk\n```\n"


class Layers(Planted):
    def setUp(self):
        super().setUp()
        self.put("plugin-sdk/include/tenon/plugin.h", "")
        self.put("base/alloc.h", "")
        self.put("core/include/tenon/tensor.h", "#include <tenon/plugin.h>\n")
        self.put("core/tensor.h", '#include "base/alloc.h"\n#include <stdio.h>\n')
        self.put("plugins/cpu/b.h", "")
        self.put("plugins/shared/gpu/c.h", "")
        self.put("CONTRIBUTING.md", f"```\n{DRAWING}```\n")
        self.put("README.md", HOUSE)

    def check(self):
        return run("check_layers.py", "--root", self.root)

    def test_a_clean_tree_passes(self):
        self.put("samples/s.c", "#include <tenon/tensor.h>\n")
        self.put("plugins/cpu/a.c", '#include "plugins/cpu/b.h"\n#include "plugins/shared/gpu/c.h"\n'
                                    "#include <tenon/plugin.h>\n")
        self.put("build/core/ops/list.h", "")
        self.put("core/ops/a.c", '#include "core/ops/list.h"\n')
        code, text = self.check()
        self.assertEqual(code, 0, text)

    def assert_found(self, path, include, reason):
        self.put(path, f"\n#include {include}\n")
        code, text = self.check()
        self.assertEqual(code, 1)
        self.assertIn(f"{path}:2: ", text)
        self.assertIn(reason, text)

    def test_a_lower_layer_must_not_look_up(self):
        self.assert_found("base/b.c", '"core/tensor.h"', "base is below core")
        self.assert_found("dispatcher/b.c", '"loader/l.h"', "leads nowhere")
        self.put("loader/l.h", "")
        self.assert_found("dispatcher/b.c", '"loader/l.h"', "dispatcher is below loader")

    def test_a_plugin_must_not_know_the_core(self):
        self.assert_found("plugins/cpu/p.c", "<tenon/tensor.h>", "plugin-sdk's headers")

    def test_a_plugin_must_not_know_another(self):
        self.assert_found("plugins/sim/p.c", '"plugins/cpu/b.h"', "its own folder")

    def test_what_plugins_share_must_not_know_one_of_them(self):
        self.assert_found("plugins/shared/gpu/d.c", '"plugins/cpu/b.h"', "its own folder")

    def test_the_core_must_not_know_a_plugin(self):
        self.assert_found("core/c.c", '"plugins/cpu/b.h"', "must not know a plugin")

    def test_a_sample_must_not_know_internals(self):
        self.assert_found("cli/s.c", '"core/tensor.h"', "public headers only")
        self.assert_found("samples/s.c", '"core/tensor.h"', "leads nowhere")

    def test_a_public_header_must_not_know_internals(self):
        self.assert_found("core/include/tenon/x.h", '"base/alloc.h"', "public headers only")

    def test_the_template_is_a_program_of_a_stranger(self):
        self.put("plugin-sdk/template/a.c", '#include "b.h"\n#include <tenon/tensor.h>\n')
        self.put("plugin-sdk/template/b.h", "#include <tenon/plugin.h>\n")
        code, text = self.check()
        self.assertEqual(code, 0, text)
        self.assert_found("plugin-sdk/template/c.c", '"base/alloc.h"', "from the file's folder")

    def test_the_suites_worker_stands_below_its_runner(self):
        self.put("plugin-sdk/conformance/runner/r.h", "")
        self.put("plugin-sdk/conformance/worker/w.h", "")
        self.put("plugin-sdk/conformance/runner/r.c", '#include "plugin-sdk/conformance/worker/w.h"\n')
        self.put("plugin-sdk/conformance/worker/core/c.c", "#include <tenon/tensor.h>\n")
        self.assertEqual(self.check()[0], 0)
        self.assert_found("plugin-sdk/conformance/worker/w.c", '"plugin-sdk/conformance/runner/r.h"',
                          "must not know the suite's runner")
        self.assert_found("plugin-sdk/conformance/worker/core/d.c", '"core/tensor.h"', "worker for core")
        self.assert_found("plugin-sdk/conformance/worker/w.c", "<tenon/tensor.h>", "plugin-sdk is below core")

    def test_a_header_that_does_not_exist(self):
        self.assert_found("samples/s.c", "<tenon/tensr.h>", "there is no header")
        self.assert_found("core/c.c", '"tensor.h"', "leads nowhere; a quoted include is a path from the root")

    def test_a_page_that_draws_other_layers(self):
        for name, text, words in [("CONTRIBUTING.md", DRAWING.replace("loader  <-  ", ""), "are not drawn as"),
                                  ("README.md", HOUSE.replace("loader\n", ""), "has the floors")]:
            kept = (self.root / name).read_text()
            self.put(name, text)
            code, said = self.check()
            self.assertEqual(code, 1)
            self.assertIn(f"{name}: ", said)
            self.assertIn(words, said)
            self.put(name, kept)


class Symbols(Planted):
    PAGE = "| folder | shared between its files |\n| --- | --- |\n" \
           "| `base`, `loader` | `tni_*` (and the public `tn_*`) |\n| `plugins/sim` | `sim_*` |\n\n"

    def check(self, sources):
        self.put("CONTRIBUTING.md", self.PAGE)
        commands = []
        for number, (path, text) in enumerate(sources.items()):
            source, output = self.put(path, text), f"{number}.o"
            (self.root / "build").mkdir(exist_ok=True)
            subprocess.run(["cc", "-c", source, "-o", self.root / "build" / output], check=True)
            commands.append({"file": f"../{path}", "output": output})
        self.put("build/compile_commands.json", json.dumps(commands))
        return run("check_symbols.py", "--root", self.root, self.root / "build")

    def test_a_folders_prefix_passes_and_other_folders_are_asked_for_nothing(self):
        code, text = self.check({"base/a.c": "int tni_a, tn_b; static int c;", "cli/main.c": "int main(void) { return 0; }",
                                 "plugins/sim/k/a.c": "int sim_a, tenon_plugin_query_v1;", "cli/a.c": "int helper;"})
        self.assertEqual(code, 0, text)

    def test_a_shared_symbol_without_the_prefix(self):
        code, text = self.check({"base/a.c": "int tni_a; int run_a(void) { return 0; }",
                                 "build/loader/made.c": "int made;", "plugins/sim/k/a.c": "int tni_b;"})
        self.assertEqual(code, 1)
        self.assertIn("base/a.c: 'run_a' is shared and does not begin with tni_ or tn_", text)
        self.assertIn("loader/made.c: 'made'", text)
        self.assertIn("plugins/sim/k/a.c: 'tni_b'", text)
        self.assertNotIn("tni_a'", text)


class Links(Planted):
    def check(self, text, path="docs/page.md"):
        self.put("core/ops/scan.c", "")
        self.put("docs/other.md", "# A `title` of [two](x.md)\n```\n# no heading\n```\n")
        (self.root / "docs/x.md").touch()
        self.put(path, text)
        return run("check_links.py", "--root", self.root)

    def test_what_is_there_passes(self):
        code, text = self.check("[a](other.md) [b](other.md#a-title-of-two) [c](../core) <https://a.b> [d](https://a.b/c)\n"
                                "`core/ops/scan.c`, core/ops/s*.c, `core/<folder>/scan.c`, core/NAME/scan.c, `[x](no.md)`\n")
        self.assertEqual(code, 0, text)
        code, text = self.check('/* As core/ops/scan.c has it. */\nint x; char *path = "core/none";\n', "core/a.c")
        self.assertEqual(code, 0, text)

    def test_a_link_that_leads_nowhere(self):
        code, text = self.check("\n[a](none.md)\n")
        self.assertEqual(code, 1)
        self.assertIn("docs/page.md:2: the link to 'none.md' leads nowhere", text)

    def test_an_anchor_that_no_heading_has(self):
        for anchor in ("no-heading", "a-title"):
            code, text = self.check(f"[a](other.md#{anchor})\n")
            self.assertEqual(code, 1)
            self.assertIn(f"no heading for the anchor '#{anchor}'", text)

    def test_a_path_in_a_page_that_is_not_there(self):
        code, text = self.check("See `core/ops/along.c`.\n")
        self.assertEqual(code, 1)
        self.assertIn("docs/page.md:1: there is no 'core/ops/along.c'", text)

    def test_a_path_in_a_comment_that_is_not_there(self):
        for name, comment in [("core/a.c", "\n/* tests it:\n * core/kernels */\n"), ("core/meson.build", "x = 1\n\n# core/kernels\n")]:
            code, text = self.check(comment, name)
            self.assertEqual(code, 1)
            self.assertIn(f"{name}:3: there is no 'core/kernels'", text)
            (self.root / name).unlink()


    def test_an_option_that_no_page_lists(self):
        self.put("plugins/sim/a.c", '/* TENON_SIM_MEMORY */ char *s = "TENON_SIM_SPEED";\n')
        code, text = self.check("`TENON_SIM_MEMORY`\n")
        self.assertEqual(code, 1)
        self.assertIn("plugins/sim/a.c:1: no page lists the option TENON_SIM_SPEED", text)
        self.assertNotIn("TENON_SIM_MEMORY", text)


class Suites(Planted):
    PAGE = "These suites run once, in the plain build: `slow` (trains),\n`source` (looks). More `words`.\n"
    SUMMARY = 'ONCE = {"slow", "source"}\n'

    def check(self, page, summary):
        self.put("CONTRIBUTING.md", page)
        self.put("tools/test_summary.py", summary)
        return run("check_suites.py", "--root", self.root, "slow", "source")

    def test_who_says_what_runs_once(self):
        self.assertEqual(self.check(self.PAGE, self.SUMMARY)[0], 0)
        code, text = self.check(self.PAGE.replace("`slow` (trains),\n", ""), self.SUMMARY)
        self.assertEqual(code, 1)
        self.assertIn("CONTRIBUTING.md: names source as what runs once; meson.build has slow, source", text)
        code, text = self.check(self.PAGE, 'ONCE = {"slow", "source", "install"}\n')
        self.assertEqual(code, 1)
        self.assertIn("tools/test_summary.py: names install, slow, source", text)


class Style(Planted):
    GUARD = "#ifndef TNI_BASE_A_H\n#define TNI_BASE_A_H\n#endif\n"

    def check(self, text, path="base/a.c"):
        self.put(path, text)
        return run("check_style.py", "--root", self.root)

    def assert_found(self, line, words, text, path="base/a.c"):
        code, said = self.check(text, path)
        self.assertEqual(code, 1, text)
        self.assertIn(f"{path}:{line}: ", said)
        self.assertIn(words, said)

    def test_good_style_passes(self):
        code, text = self.check("/* Why it exists.\n *   a     a list item that\n *         goes on\n *   b     another,\n"
                                " *         too.\n * text after it. */\n/* ---- title ---------- */\n"
                                "#define M(T, a, b) \\\n    T *x = (T *)(a); \\\n    x[0] = (a) * (b) + *x\n"
                                "static int f(const char *s) {\n    const char *const t = s;\n    return sizeof *(t);\n}\n")
        self.assertEqual(code, 0, text)
        self.assertEqual(self.check(self.GUARD, "base/a.h")[0], 0)

    def test_a_broken_banner(self):
        for banner in ("/* ---- title ------\n */", "/* ---- title " + "-" * 90 + " */", "/* ---- title ---- text */",
                       "/* ---- title --------\n * text */"):
            self.assert_found(2, "a banner is", f"\n{banner}\n")

    def test_a_broken_list_item(self):
        for first, second in [("  record->op is the name, its hash may be 0. It needs an argument,", "returns tensors"),
                              ("  local   LOCAL arrays in a kernel: LLVM may move", "the array there values    i8"),
                              ("  lose=-36@5    the fifth call from now fails with", "-36, and so do all log=x   the log")]:
            self.assert_found(3, "does not stand under", f"/* List:\n * {first}\n * {second}\n */\n")

    def test_a_product_that_looks_like_a_pointer(self):
        for product in ("(U)a *(U)b", "a *(1 - b)", "x = a *b", "(a) *b", "x[0] = y[i] *z"):
            self.assert_found(2, "a product is written", f"#define M(a, b) \\\n    {product}\n")

    def test_a_first_comment_that_repeats_the_files_name(self):
        self.assert_found(1, "its name is known", "/* a.c: why it exists. */\n")

    def test_a_public_header_without_its_name(self):
        text = "/* Why. */\n#ifndef TENON_A_H\n#define TENON_A_H\n#endif\n"
        self.assert_found(1, "begins with 'tenon/a.h:'", text, "base/include/tenon/a.h")

    def test_an_include_that_climbs(self):
        self.assert_found(1, 'not through ".."', '#include "../a.h"\n')

    def test_a_const_value(self):
        for local in ("    const int n = 1;", "    for (const uint64_t i = 0; i < 1;) {", "    const unsigned long n = f();"):
            self.assert_found(2, "not marked const", f"\n{local}\n")

    def test_a_guard_that_is_not_the_path_is_found_and_written(self):
        self.assert_found(2, "the include guard is TNI_BASE_A_H", "\n" + self.GUARD.replace("BASE_A", "BASE"), "base/a.h")
        self.assertEqual(run("check_style.py", "--root", self.root, "--write-guards")[0], 0)
        self.assertEqual((self.root / "base/a.h").read_text(), "\n" + self.GUARD)

    def test_what_a_reader_copies_has_conventions_of_its_own(self):
        self.assertEqual(self.check('/* a.c: why. */\n#include "../a.h"\n', "samples/a.c")[0], 0)
        self.assert_found(1, "a banner is", "/* ---- title --\n */\n", "samples/a.c")


SLOT = "typedef struct tn_x {{\n    /* {} */\n    void (*run)(int a);\n}} tn_x;\n"


class Slots(Planted):
    def check(self, comment):
        return run("check_slots.py", self.put("x.h", SLOT.format(comment)))

    def test_a_tagged_slot_passes(self):
        code, text = self.check("Runs the thing and returns. [any-thread] [loaded] [required]")
        self.assertEqual(code, 0, text)

    def test_a_missing_tag_is_named(self):
        code, text = self.check("Runs the thing and returns. [any-thread] [required]")
        self.assertEqual(code, 1)
        self.assertIn("x.h:3: tn_x.run", text)
        self.assertIn("[loaded]", text)

    def test_two_tags_of_a_kind(self):
        self.assertEqual(self.check("Runs the thing and returns. [any-thread] [one-thread] [loaded] "
                                    "[required]")[0], 1)

    def test_no_contract(self):
        self.assertEqual(self.check("[any-thread] [loaded] [required]")[0], 1)


class Exports(Planted):
    def build(self, source, versions=""):
        path = self.put("x.c", source)
        library = self.root / "libx.so"
        flag = [f"-Wl,--version-script={self.put('x.map', versions)}"] if versions else []
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, path, *flag], check=True)
        return library

    def test_a_plugin_with_its_entry_alone_passes(self):
        code, text = run("check_exports.py", "plugin", self.build("int tenon_plugin_query_v1;"))
        self.assertEqual(code, 0, text)

    def test_a_second_symbol(self):
        code, text = run("check_exports.py", "plugin",
                         self.build("int tenon_plugin_query_v1, helper;"))
        self.assertEqual(code, 1)
        self.assertIn("exports helper", text)

    def test_no_entry(self):
        self.assertEqual(run("check_exports.py", "plugin", self.build("int helper;"))[0], 1)

    def test_a_plugin_that_needs_the_library(self):
        code, text = run("check_exports.py", "plugin", self.build(
            "void tn_add(void); void tenon_plugin_query_v1(void) { tn_add(); }"))
        self.assertEqual(code, 1)
        self.assertIn("needs tn_add", text)

    def test_the_library_exports_one_prefix(self):
        versions = "TENON_1 { global: tn_*; };"
        self.assertEqual(run("check_exports.py", "library", self.build("int tn_a;", versions))[0], 0)
        code, text = run("check_exports.py", "library", self.build("int tn_a, tni_b;", versions))
        self.assertEqual(code, 1)
        self.assertIn("exports tni_b", text)

    def test_its_symbols_have_versions(self):
        code, text = run("check_exports.py", "library", self.build("int tn_a;"))
        self.assertEqual(code, 1)
        self.assertIn("tn_a has no version", text)

    def test_what_was_released_stays(self):
        library = self.build("int tn_a, tn_b;", "TENON_1 { global: tn_a; tn_b; local: *; };")
        released = self.put("released.txt", run("check_exports.py", "list", library)[1])
        self.assertEqual(released.read_text().split("\n")[:2], ["tn_a TENON_1", "tn_b TENON_1"])
        self.assertEqual(run("check_exports.py", "library", library, released)[0], 0)
        for source, versions, gone in [
                ("int tn_a, tn_c;", "TENON_1 { global: tn_a; tn_c; local: *; };", "tn_b@TENON_1"),
                ("int tn_a, tn_b;", "TENON_2 { global: tn_a; tn_b; local: *; };", "tn_a@TENON_1")]:
            code, text = run("check_exports.py", "library", self.build(source, versions), released)
            self.assertEqual(code, 1)
            self.assertIn(f"{gone} was released, and is gone", text)


class Headers(Planted):
    def check(self, text, name="tenon/x.h"):
        self.put(name, text)
        return run("check_headers.py", "-I", self.root)

    def test_a_header_that_stands_alone_passes(self):
        self.assertEqual(self.check("#pragma once\n#include <stdint.h>\nextern int32_t x;\n")[0], 0)

    def test_a_missing_include(self):
        code, text = self.check("extern int32_t x;\n")
        self.assertEqual(code, 1)
        self.assertIn("does not compile alone", text)

    def test_a_missing_guard(self):
        self.assertEqual(self.check("typedef struct x { int a; } x;\n")[0], 1)

    def test_c11_is_too_new_for_the_plugin_header(self):
        anonymous = "#ifndef X\n#define X\nstruct x { union { int a; float b; }; };\n#endif\n"
        self.assertEqual(self.check(anonymous, "tenon/ext/x.h")[0], 1)


class EnvironmentPage(Planted):
    def test_an_old_page_is_found(self):
        table = self.put("env.def", 'X(A, "flag", "0", 1, "0 or 1", "help")\n')
        page = self.root / "page.md"
        self.assertEqual(run("generate_env_doc.py", table, page)[0], 0)
        self.assertEqual(run("generate_env_doc.py", "--check", table, page)[0], 0)
        table.write_text('X(A, "flag", "1", 1, "0 or 1", "help")\n')
        self.assertEqual(run("generate_env_doc.py", "--check", table, page)[0], 1)


class RequirementsPage(Planted):
    ONE = '[[group]]\ntitle = "T"\nrequirement = [\n{ id = 1, name = "DOES", slots = [%s], text = "Does it."%s }, %s\n]\n'
    CASES = ', cases = ["contract/a-*"]'

    def check(self, slots='"tn_x.run", "tenon_plugin_query_v1"', more="", *options, cases=CASES):
        header = self.put("x.h", SLOT.format("Runs the thing."))
        table = self.put("r.toml", self.ONE % (slots, cases, more))
        return run("generate_requirements.py", *options, table, self.root / "page.md", header)

    def test_every_slot_answered_passes_and_makes_the_page(self):
        code, text = self.check()
        self.assertEqual(code, 0, text)
        self.assertIn("TNP-1<br>`DOES` | Does it.<br>Checked by: `contract/a-*` |", (self.root / "page.md").read_text())

    def test_a_requirement_that_no_case_checks_says_why(self):
        code, text = self.check(cases=', unchecked = "nobody can look"')
        self.assertEqual(code, 0, text)
        self.assertIn("Does it.<br>Not checked: nobody can look. |", (self.root / "page.md").read_text())

    def test_a_requirement_has_cases_or_a_reason_and_not_both(self):
        for cases in ("", ", cases = []", self.CASES + ', unchecked = "nobody can look"'):
            code, text = self.check(cases=cases)
            self.assertEqual(code, 1)
            self.assertIn("TNP-1: needs either the cases", text)

    def test_a_slot_without_requirement_is_named(self):
        code, text = self.check('"tenon_plugin_query_v1"')
        self.assertEqual(code, 1)
        self.assertIn("tn_x.run: no requirement binds it", text)

    def test_a_slot_that_is_not_there(self):
        code, text = self.check('"tn_x.run", "tenon_plugin_query_v1", "tn_x.walk"')
        self.assertEqual(code, 1)
        self.assertIn("TNP-1: there is no tn_x.walk", text)

    def test_a_number_used_twice(self):
        code, text = self.check(more='{ id = 1, name = "AGAIN", slots = ["tn_x.run"], text = "Again." }')
        self.assertEqual(code, 1)
        self.assertIn("TNP-1 stands twice", text)

    def test_a_number_that_was_dropped(self):
        code, text = self.check(more='{ id = 3, name = "THIRD", slots = ["tn_x.run"], text = "Third." }')
        self.assertEqual(code, 1)
        self.assertIn("TNP-2 is gone", text)

    def test_a_name_used_twice_or_missing(self):
        code, text = self.check(more='{ id = 2, name = "DOES", slots = ["tn_x.run"], text = "Again." }')
        self.assertEqual(code, 1)
        self.assertIn("name DOES stands twice", text)
        code, text = self.check(more='{ id = 2, slots = ["tn_x.run"], text = "Again." }')
        self.assertEqual(code, 1)
        self.assertIn("TNP-2: needs a name", text)

    def test_names_become_constants(self):
        self.check()
        header = self.root / "requirements.h"
        code, text = run("generate_requirements.py", "--header", self.root / "r.toml", header)
        self.assertEqual(code, 0, text)
        self.assertIn("/* Does it. */\n    TNP_DOES = 1,\n", header.read_text())

    def test_a_withdrawn_requirement_answers_nothing(self):
        code, text = self.check('"tenon_plugin_query_v1"', '{ id = 2, name = "NO", slots = ["tn_x.run"], text = "No.", '
                                'withdrawn = "why" }')
        self.assertEqual(code, 1)
        self.assertIn("tn_x.run: no requirement binds it", text)

    def test_an_old_page_is_found(self):
        self.assertEqual(self.check()[0], 0)
        code, text = self.check('"tn_x.run", "tenon_plugin_query_v1", "tn_x"', "", "--check")
        self.assertEqual(code, 1)
        self.assertIn("is not what r.toml says", text.replace(str(self.root) + "/", ""))


class Listings(Planted):
    SOURCE = "/* Adds. */\nint add(int a) {\n    return a + 1;\n}\n\nint other;\n"
    PAGE = "<!-- from a.c: {} -->\n```c\n```\n"
    # All of tenon that a listing needs to be run.
    TENON = "#define TN_SCOPE\n#define TN_OK 0\n#define TN_ERR_INTERNAL 1\ntypedef int tn_status;\n" \
            'static inline int tn_error_status(void) { return 0; }\n' \
            'static inline const char *tn_error_message(void) { return "none"; }\n'

    def check(self, page, *options):
        self.put("a.c", self.SOURCE)
        self.put("page.md", page)
        return run("check_listings.py", "--root", self.root, *options)

    def run_page(self, page):
        self.put("include/tenon/tenon.h", self.TENON)
        self.put("include/tenon/validation.h", "")
        return self.check(page, f"--flag=-I{self.root}/include", "--cc", "cc")

    def test_a_listing_is_written_and_then_current(self):
        self.assertEqual(self.check(self.PAGE.format("add"), "--write")[0], 0)
        page = (self.root / "page.md").read_text()
        self.assertIn("/* Adds. */\nint add(int a) {\n    return a + 1;\n}\n```", page)
        self.assertNotIn("other", page)
        self.assertEqual(self.check(page)[0], 0)

    def test_a_listing_in_cpp_is_a_copy(self):
        self.put("a.cpp", "/* Any. */\ntemplate <class T> T any() {\n    return T();\n}\n\n"
                          "constexpr int record =\n    any<int>();\n\nint other;\n")
        page = "<!-- from a.cpp: any record -->\n```cpp\n```\n"
        self.assertEqual(self.check(page)[0], 1)
        self.assertEqual(self.check(page, "--write")[0], 0)
        page = (self.root / "page.md").read_text()
        self.assertIn("/* Any. */\ntemplate <class T> T any() {\n    return T();\n}\n\n"
                      "constexpr int record =\n    any<int>();\n```", page)
        self.assertNotIn("other", page)
        code, text = self.check("```cpp\nint x;\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("page.md:2: a listing in C++ is a copy", text)

    def test_a_page_that_differs_is_found(self):
        code, text = self.check(self.PAGE.format("add"))
        self.assertEqual(code, 1)
        self.assertIn("not what the source says", text)

    def test_a_name_that_is_not_there(self):
        code, text = self.check(self.PAGE.format("subtract"))
        self.assertEqual(code, 1)
        self.assertIn("a.c has no definition of 'subtract'", text)

    def test_a_mark_without_a_listing(self):
        code, text = self.check("<!-- from a.c: add -->\n\ntext\n```c\nint x;\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("page.md:1: this mark stands before no listing", text)

    def test_listings_that_run_pass(self):
        code, text = self.run_page("```c top\nstatic int twice(int x) { return 2 * x; }\n```\n"
                                   '<!-- given: int y = 2; -->\n```c\nprintf("%d\\n", twice(y));\n```\n```text\n4\n```\n'
                                   '```c\nint main(void) {\n    return 0;\n}\n```\n<!-- sketch: of none -->\n```c\n...\n```\n')
        self.assertEqual(code, 0, text)

    def test_a_listing_that_does_not_compile(self):
        for page in ("```c\nreturn undeclared;\n```\n", "```c\nint main(void) {\n    return undeclared;\n}\n```\n"):
            code, text = self.run_page(page)
            self.assertEqual(code, 1)
            self.assertIn("'undeclared' undeclared", text.replace("‘", "'").replace("’", "'"))

    def test_a_listing_that_prints_something_else(self):
        code, text = self.run_page('\n```c\nputs("5");\n```\n```text\n4\n```\n')
        self.assertEqual(code, 1)
        self.assertIn("page.md:3: prints\n5\nbut the page says\n4", text)


unittest.main(argv=sys.argv[:1], verbosity=2)
