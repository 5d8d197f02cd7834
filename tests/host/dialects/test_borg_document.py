"""The Borg document's examples, read by Hy itself without our loader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import ROOT
from tests.long.dialects.test_borg_document import DEPENDENCIES, HEADER, NODE_TYPES, OPS


def test_plain_hy_runs_the_borg_examples(tmp_path: Path) -> None:
    """`hy file.hy` and the REPL don't use our loader, so keywords are Hy's own there."""
    path = tmp_path / "plain.hy"
    path.write_text(
        HEADER
        + NODE_TYPES
        + DEPENDENCIES
        + OPS
        + """
(def p (process "/bin/x" {:provides :p :user :bob :group "g" :env {} :args [] :block? True}))
(assert (= (:provides (:node p)) "p"))
(assert (= (:user (:attrs (:node p))) "bob"))
(assert (= (get (get p :node) :provides) "p"))
(assert (= (:node p) (get (:nodemap p) "p")))
(assert (= (:produces-ops (:node p)) ["service-down" "ensure-running"]))
(assert (= (:provides (:node complete-graph)) "some-file"))
(assert (= (:args action) {"pathname" "/motd" "contents" "hello"}))
(assert (= (:op action) "write"))
(def q (process "/bin/y" :user "u" :group "g" :env {} :args [] :block? False))
(assert (is (get (:attrs (:node q)) "block?") False))
(print "read")
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "hy", str(path)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("read\n", "", 0)
