"""Type stubs agree with the extension module, and the walk-through of the manual prints what it shows."""

import doctest
import inspect
import os
import pathlib
import re
import tempfile
import unittest

import planetree
import write_parameters
from planetree import _native, _parameters

from data import ROOT


class Types(unittest.TestCase):
    def test_the_types_of_parameters_are_current(self):
        self.assertEqual(write_parameters.PATH.read_text(), write_parameters.text(), "run `make python-types`")
        self.assertIn("num_trees", _parameters.Parameters.__annotations__)

    def test_the_package_is_typed(self):
        self.assertTrue((pathlib.Path(planetree.__file__).parent / "py.typed").exists())
        stub = (pathlib.Path(planetree.__file__).parent / "_native.pyi").read_text()
        for name in ("NativeModel", "Table"):
            body = re.search(rf"^class {name}.*?(?=^class |\Z)", stub, flags=re.M | re.S).group()
            for member in vars(getattr(_native, name)):
                if not member.startswith("_"):
                    self.assertIn(member, body, f"{name}.{member}")
        functions = [name for name, value in vars(_native).items() if inspect.isbuiltin(value)]
        for name in functions:
            self.assertIn(f"def {name}(", stub)

    def test_everything_public_has_a_text(self):
        for name in planetree.__all__:
            self.assertTrue(getattr(planetree, name).__doc__, name)


class Manual(unittest.TestCase):
    def test_the_walk_through_prints_what_it_shows(self):
        with tempfile.TemporaryDirectory() as room:
            here = os.getcwd()
            os.symlink(ROOT / "sample_data", f"{room}/sample_data")
            os.chdir(room)
            try:
                failed, tried = doctest.testfile(
                    str(ROOT / "docs/python.md"),
                    module_relative=False,
                    optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
                    parser=_Parser(),
                )
            finally:
                os.chdir(here)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 15)


class _Parser(doctest.DocTestParser):
    """Ends an expected output where the code block ends."""

    def parse(self, string, name="<string>"):
        return super().parse(string.replace("```\n", "\n"), name)


if __name__ == "__main__":
    unittest.main()
