"""Is a prompt told what somebody put into words about its work, and nothing else?

    python benchmarks/told/stated.py [--show]

Two small stores of rules as people write them, and prompts as they type them. Each prompt is a
session of its own and names the rule that would help, or none. The threshold of the hook was chosen
on the first store; the second was written afterwards. Printed are the prompts that got their rule,
and the told lines that were the right ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recall"))

from report import number, print_lines

from loki_memory import Workspace
from loki_memory.injection.before_prompt import reminder

Prompts = Mapping[str, str]  # a prompt -> the rule that helps with it; empty if none does
_SHOP = {
    "deploy this branch to staging": "Deploy to staging with `make deploy-staging`; production is "
    "deployed by CI from tags only",
    "add a migration for the new orders column": "The database migrations run with alembic, never "
    "by hand",
    "why do the integration tests fail on my machine?": "Integration tests need docker compose up "
    "before they run",
    "show the total price on the invoice page": "Prices are stored in cents as integers",
    "add an endpoint to list orders": "The public API is versioned under /v2; /v1 is frozen",
    "install left-pad": "Use pnpm, not npm, in this repository",
    "add a feature flag for the new checkout": "Feature flags live in config/flags.yaml and are "
    "read at start",
    "user profiles of other tenants show up in the cache": "The cache key of a user profile "
    "includes the tenant id",
    "log what the payment endpoint receives so we can debug it": "Never log request bodies of the "
    "payment endpoints",
    "send a welcome email when a user signs up": "Emails are sent by the worker queue, not inside "
    "the request",
    "the frontend build is slow, find out why": "The frontend is built with vite and served by "
    "nginx",
    "the dates in the order list are off by some hours": "Dates in the API are ISO 8601 in UTC",
    "webhooks are retried forever, fix it": "Retry of webhooks uses exponential backoff up to 24 "
    "hours",
    "prepare the release": "Translations are pulled from Lokalise before a release",
    "search does not find new products until the next day": "The search index is rebuilt nightly "
    "by the job reindex",
    "rename the variable foo to bar": "",
    "fix the typo in the readme": "",
    "write a unit test for the parser": "",
    "what does this function do?": "",
    "refactor the invoice module into smaller files": "",
}
_COMPILER = {
    "run the linter": "Rust edition is 2021; run cargo clippy with -D warnings before pushing",
    "measure whether the parser got faster": "Benchmarks run on the dedicated machine only, "
    "numbers from laptops are ignored",
    "the snapshot tests fail after my change": "Snapshot tests are reviewed with cargo insta "
    "review",
    "make a release": "Releases are tagged by release-plz, never by hand",
    "add a fuzz target for the formatter": "Fuzz corpora live in fuzz/corpus and are not committed",
    "add a new token for the pipe operator to the lexer": "The lexer is generated from tokens.yaml "
    "by build.rs; never edit lexer_gen.rs",
    "fix paths on windows": "We support Windows paths: always use camino Utf8Path",
    "make error messages show the place in the source": "Errors are reported through miette with "
    "a source span",
    "let users set the config in their home folder": "Config is read from tool.toml in the nearest "
    "parent folder",
    "the completion in the editor feels slow": "The LSP server must answer completion within 50 ms",
    "update the docs for the new option": "Docs are built with mdbook and deployed from the docs "
    "branch",
    "why is the wasm bundle broken?": "WASM builds need wasm-pack 0.12, newer ones break the "
    "bundler",
    "add an unsafe fast path for utf8 validation": "Unsafe code needs a SAFETY comment and a "
    "review by two people",
    "rename the variable x to y in main": "",
    "write a haiku about compilers": "",
    "clean up unused imports": "",
    "what is the time complexity of this loop?": "",
    "split this function in two": "",
}


class Counted(NamedTuple):
    """The prompts of a store that a rule helps with, those that were told it, and all lines."""

    helped: int
    told: int
    lines: int


def counted(prompts: Prompts, *, show: bool) -> Counted:
    wanted = sum(map(bool, prompts.values()))
    right = lines = 0
    with tempfile.TemporaryDirectory() as root, Workspace.init(Path(root)) as workspace:
        for rule in filter(None, prompts.values()):
            workspace.remember(rule)
        workspace.sync()
        for prompt, rule in prompts.items():
            told = reminder(workspace, prompt, prompt, "hook:UserPromptSubmit").splitlines()
            right += bool(rule) and any(rule in line for line in told)
            lines += len(told)
            if show:
                print(f"> {prompt}", *told, sep="\n")
    return Counted(wanted, right, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print what each prompt is told")
    show = parser.parse_args().show
    os.environ["LOKI_HOME"] = tempfile.mkdtemp()
    rows = []
    for name, prompts in (("shop", _SHOP), ("compiler", _COMPILER)):
        found = counted(prompts, show=show)
        right = number(found.told / max(1, found.lines))
        rows.append((name, str(found.helped), str(found.told), str(found.lines), right))
    print_lines(("store", "prompts with a rule", "told it", "lines", "right lines"), rows)


if __name__ == "__main__":
    main()
