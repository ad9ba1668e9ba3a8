"""S6: a budget over time holds across restarts."""
import unittest

from harness import P0, BoxCase

LIMIT = """
@id("few_lists") @description("Twelve listings an hour.") forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.operation == Box::FsReadOperation::"enumerate" }
when temporal { (count for (t: Timepoint). where (formerly within 1h (
    Box::Action::"fs:read"::%s{ input.operation: Box::FsReadOperation::"enumerate"%s } && tp(t)))) >= 12 };
"""


class Budget(BoxCase):
    def enumerations(self):
        return [r for r in self.records() if r.action == "fs:read" and r.attrs.get("file.path") == "~/src/app/sub"]

    def denied(self):
        return [r for r in self.records() if r.verdict == "deny"]

    def test_responses_count_and_survive_a_restart(self):
        self.policy(P0 + LIMIT % ("response", ', output.result: Box::FsResponseResult::"completed"'))
        first = self.run_ok("ls sub; ls sub; ls sub")
        ident = first.err.splitlines()[0].split()[2]
        r = self.sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ls sub; done")
        self.assertEqual(r.out.count("x.txt"), 9, r.err)
        self.assertEqual(r.err.count("[policy: few_lists]: Twelve listings an hour."), 3)
        self.assertEqual(len(self.denied()), 3)
        self.policy(P0)
        self.assertIn(ident, self.run_ok("true").err)

    def test_requests_count_the_one_being_decided(self):
        self.policy(P0 + LIMIT % ("request", ""))
        r = self.sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do ls sub; done")
        self.assertEqual(r.out.count("x.txt"), 11, r.err)
        self.assertEqual(len(self.denied()), 2)
        self.sh("ls sub")
        self.assertEqual(len(self.denied()), 3)


if __name__ == "__main__":
    unittest.main()
