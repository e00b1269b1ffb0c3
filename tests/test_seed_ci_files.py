"""Commands that continuous integration runs, and how they meet those of manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_seed_manifests import proposed

WORKFLOW = """\
on: push
jobs:
  test:
    strategy:
      matrix:
        python-version: ["3.9", "3.10", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - run: |
          pip install -e .
          CI=1 python -m pytest \\
            -n auto
      - run: mypy src
      - working-directory: frontend
        run: eslint .
      - run: ruff check ${{ matrix.path }}
      - run: |
          cd docs
          mkdocs build
"""


def test_the_steps_that_test_and_lint_are_found(project: Path) -> None:
    (project / "src").mkdir()
    found = proposed(project, {".github/workflows/ci.yml": WORKFLOW})
    where = (".github/workflows/ci.yml",)
    assert found == {
        "Tests run with `python -m pytest -n auto`.": where,
        "Types are checked with `mypy src`.": where,
        "CI tests Python 3.9 to 3.13.": where,
    }


def test_a_command_whose_path_is_not_there_is_not_shown(project: Path) -> None:
    step = "jobs:\n  a:\n    steps:\n    - run: pytest tests/unit\n"
    assert proposed(project, {".github/workflows/ci.yml": step}) == {}


def test_a_script_of_a_manifest_wins_over_its_raw_form_and_ci_is_cited(project: Path) -> None:
    step = "jobs:\n  a:\n    steps:\n    - run: eslint .\n    - run: npm run test\n"
    manifest = '{"scripts": {"lint": "eslint .", "test": "tap"}}'
    files = {".github/workflows/ci.yml": step, "package.json": manifest}
    found = proposed(project, files)
    sources = ("package.json", ".github/workflows/ci.yml")
    assert found["The code is linted with `npm run lint`, which runs `eslint .`."] == sources
    assert found["Tests run with `npm test`, which runs `tap`."] == sources


def test_of_two_runners_the_one_that_ci_uses_is_shown(project: Path) -> None:
    step = "jobs:\n  a:\n    steps:\n    - run: make test\n"
    tox = "[tox]\nenvlist = py311\n"
    files = {"setup.py": "", "tox.ini": tox, "Makefile": "test:\n", ".github/workflows/a.yml": step}
    assert "Tests run with `make test`." in proposed(project, files)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".gitlab-ci.yml", "unit:\n  script:\n    - go test ./...\n"),
        (
            ".circleci/config.yml",
            "jobs:\n  a:\n    steps:\n    - run:\n        command: go test ./...\n",
        ),
        ("azure-pipelines.yml", "steps:\n- script: go test ./...\n"),
        (".travis.yml", "script: go test ./...\n"),
    ],
)
def test_every_system_keeps_its_commands_under_a_known_key(
    project: Path, path: str, text: str
) -> None:
    assert proposed(project, {path: text}) == {"Tests run with `go test ./...`.": (path,)}


def test_a_target_that_only_ci_names_is_not_shown(project: Path) -> None:
    step = "jobs:\n  a:\n    steps:\n    - run: make test\n    - run: npm run lint\n"
    assert proposed(project, {".github/workflows/ci.yml": step}) == {}
