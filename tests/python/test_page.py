"""docs/python.md, or the page that PAGE names: each listing prints what stands below it."""

import contextlib
import io
import os
import pathlib
import re
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / os.environ.get("PAGE", "python.md")


class Page(unittest.TestCase):
    def test_listings(self):
        found = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertEqual(len(found), PAGE.read_text().count("```python"))
        names = {}
        for code, expected in found:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, str(PAGE), "exec"), names)
            self.assertEqual(out.getvalue(), expected, code)


if __name__ == "__main__":
    unittest.main()
