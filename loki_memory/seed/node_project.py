"""JavaScript projects: the scripts and settings of package.json, and the files of its tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from loki_memory.seed.project_files import ProjectFiles, Table, table, texts
from loki_memory.seed.proposal import (
    COMMANDS,
    CONFIGURED,
    Proposal,
    Task,
    convention,
    gotcha,
    is_plain,
    of_script,
    plain,
    quoted,
    required,
)

JAVASCRIPT = "JavaScript"
_MANIFEST = "package.json"
_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_CALLED = re.compile(r"(?:^|[;&|]\s*)(pnpm|yarn|bun)\s")  # a script that runs another script
_GIVEN = re.compile(r"\b(?:npm run|pnpm|yarn|bun run) ([\w:.-]+) [\w./*]")  # an argument: a helper
_NOTHING = re.compile(r"\s*(?:echo\b.*|exit \d|true|:)\s*", re.DOTALL)  # `npm init` writes one
_CONDITIONS = 3  # levels of conditions in `exports`
_SHORT = {"test", "start"}  # npm knows them without `run`


class NodeProject(NamedTuple):
    """The manifest of a JavaScript project."""

    files: ProjectFiles
    manifest: Table

    def manager(self) -> tuple[str, str]:
        """The package manager, and the file that shows it."""
        named = str(self.manifest.get("packageManager", "")).partition("@")[0]
        if named in {"npm", "pnpm", "yarn", "bun"}:
            return named, _MANIFEST
        lock = next(filter(self.files.has, _LOCKS), "")
        return (_LOCKS[lock], lock) if lock else (self._called() or "npm", "")

    def _called(self) -> str:
        """The package manager by which scripts run each other; empty if they disagree."""
        named = {found[1] for body in self.scripts().values() for found in _CALLED.finditer(body)}
        return named.pop() if len(named) == 1 else ""

    def scripts(self) -> dict[str, str]:
        """The scripts that do something."""
        found = table(self.manifest, "scripts")
        return {
            name: body
            for name, body in found.items()
            if isinstance(body, str) and is_plain(name, 40) and not _NOTHING.fullmatch(body)
        }


def read(files: ProjectFiles) -> NodeProject | None:
    """Read package.json; None if there is none."""
    manifest = files.json(_MANIFEST)
    return NodeProject(files, manifest) if manifest else None


def tasks(node: NodeProject) -> Iterator[Task]:
    """The scripts with a known purpose, then the tools that are configured."""
    manager, _ = node.manager()
    given = {found[1] for body in node.scripts().values() for found in _GIVEN.finditer(body)}
    for name, body in node.scripts().items():
        purpose, is_part = of_script(name, body)
        if purpose:
            runs = body if is_plain(body, 60) else ""
            command, is_part = call(manager, name), is_part or name in given
            yield Task(purpose, command, _MANIFEST, language=JAVASCRIPT, runs=runs, is_part=is_part)
    if node.files.has("tsconfig.json"):
        run = "npx" if manager == "npm" else f"{manager} exec"
        yield Task("types", f"{run} tsc --noEmit", "tsconfig.json", CONFIGURED, JAVASCRIPT)


def call(manager: str, script: str) -> str:
    """The command that runs a script.

    >>> call("npm", "test"), call("npm", "lint"), call("yarn", "lint"), call("bun", "test")
    ('npm test', 'npm run lint', 'yarn lint', 'bun run test')
    """
    if manager in {"yarn", "pnpm"} or (manager == "npm" and script in _SHORT):
        return f"{manager} {script}"
    return f"{manager} run {script}"


def facts(node: NodeProject) -> Iterator[Proposal]:
    """Facts beside the scripts: versions, the package manager, and how the package is laid out."""
    yield from _package_manager(node)
    yield from _engines(node)
    yield from _workspaces(node)
    yield from _modules(node)
    yield from _hooks(node)
    yield from _parts(node)


def _package_manager(node: NodeProject) -> Iterator[Proposal]:
    manager, source = node.manager()
    if source and node.scripts():
        text = f"Dependencies are installed with `{manager} install`"
        other = "" if manager == "npm" else ", not with npm"
        yield Proposal(f"{text}{other}.", "convention", COMMANDS, (source,), 87)


def _engines(node: NodeProject) -> Iterator[Proposal]:
    spec = table(node.manifest, "engines").get("node")
    if isinstance(spec, str) and is_plain(spec, 40):
        yield convention(required("Node.js", spec), _MANIFEST, 76)


def _workspaces(node: NodeProject) -> Iterator[Proposal]:
    listed = node.manifest.get("workspaces")
    patterns = plain(texts(table(node.manifest, "workspaces").get("packages") or listed), 40)
    source = _MANIFEST
    if not patterns:
        source = "pnpm-workspace.yaml"
        patterns = plain(texts(node.files.yaml(source).get("packages")), 40)
    if patterns:
        text = f"This is a monorepo; its packages are in {quoted(*patterns[:4])}."
        yield convention(text, source, 84)


def _modules(node: NodeProject) -> Iterator[Proposal]:
    if node.manifest.get("type") == "module":
        text = 'The package is ES modules (`"type": "module"`), so `require` does not work in it.'
        yield gotcha(text, _MANIFEST, 70)
    elif node.manifest.get("type") == "commonjs":
        yield convention('The package is CommonJS (`"type": "commonjs"`).', _MANIFEST, 66)
    options = table(node.files.jsonc("tsconfig.json"), "compilerOptions")
    if options.get("strict") is True:
        yield convention("TypeScript is strict.", "tsconfig.json", 69)


def _hooks(node: NodeProject) -> Iterator[Proposal]:
    staged = [name for name in table(node.manifest, "lint-staged") if is_plain(name, 40)]
    if staged:
        text = f"lint-staged checks {quoted(*staged[:3])} before each commit."
        yield convention(text, _MANIFEST, 73)
    body = node.scripts().get("prepublishOnly", "")
    if body and is_plain(body, 70):
        yield gotcha(f"Publishing first runs `{body}` (prepublishOnly).", _MANIFEST, 60)
    for tool in ("nyc", "c8"):
        settings = table(node.manifest, tool)
        least = settings.get("lines")
        if settings.get("check-coverage") is True and isinstance(least, int | float):
            yield gotcha(f"Coverage below {least} % of the lines fails.", _MANIFEST, 72)


def _parts(node: NodeProject) -> Iterator[Proposal]:
    """The entry point, the commands that are installed, and what runs beside."""
    main = _entry(node.manifest) or "index.js"  # as Node.js has it
    if main and is_plain(main, 60) and node.files.has(main):
        yield convention(f"The package's entry point is `{main}`.", _MANIFEST, 58)
    commands = node.manifest.get("bin")
    named = (
        {str(node.manifest.get("name", "")): commands} if isinstance(commands, str) else commands
    )
    for name, path in list((named or {}).items())[:2] if isinstance(named, dict) else ():
        if len(plain([name, path])) == 2 and node.files.has(path):  # noqa: PLR2004 - both
            yield convention(f"The command `{name}` is `{path}`.", _MANIFEST, 57)
    declared = node.manifest.get("types") or node.manifest.get("typings")
    if isinstance(declared, str) and is_plain(declared, 60) and node.files.has(declared):
        yield convention(f"Type declarations are in `{declared}`.", _MANIFEST, 55)
    has_none = not table(node.manifest, "dependencies") and "devDependencies" in node.manifest
    if has_none and not node.manifest.get("private"):
        yield convention("The package has no runtime dependencies.", _MANIFEST, 53)
    peers = plain(_needed_peers(node.manifest), 40)
    if peers:
        yield convention(f"Users bring {quoted(*peers[:4])} themselves (peers).", _MANIFEST, 54)


def _needed_peers(manifest: Table) -> list[str]:
    optional = table(manifest, "peerDependenciesMeta")
    peers = table(manifest, "peerDependencies")
    return [name for name in peers if table(optional, name).get("optional") is not True]


def _entry(manifest: Table) -> str:
    """The entry point: for `import` in a package of ES modules, else for `require`."""
    exported = manifest.get("exports")
    root = table(manifest, "exports").get(".", exported)
    way = "import" if manifest.get("type") == "module" else "require"
    for _ in range(_CONDITIONS):
        if isinstance(root, dict):
            root = root.get(way) or root.get("default") or root.get("import")
    found = root if isinstance(root, str) else manifest.get("main")
    return found if isinstance(found, str) else ""
