"""The tests empty their home before each test: never one that was not made for them."""
import os
import tempfile
import unittest
from unittest import mock

import harness


class Home(harness.BoxCase):
    def test_only_a_scratch_home_is_emptied(self):
        with tempfile.TemporaryDirectory() as top:
            home = os.path.join(top, "home")
            precious = os.path.join(home, "precious")
            os.mkdir(home)
            with open(precious, "w", encoding="utf-8") as f:
                f.write("work of years")
            mark = os.path.join(top, "scratch-home")
            with mock.patch.multiple(harness, HOME=home, SCRATCH_MARK=mark):
                for named in (None, "", "/", home + "x"):
                    if named is not None:
                        with open(mark, "w", encoding="utf-8") as f:
                            f.write(named)
                    with self.assertRaisesRegex(RuntimeError, "no scratch home.*nothing was touched"):
                        harness.BoxCase("setUp").setUp()
                    self.assertEqual(os.listdir(home), ["precious"])


if __name__ == "__main__":
    unittest.main()
