"""Projects in Rust, Go, Ruby, PHP, Java, C and C++: what their manifests say about the work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loki_memory.seed.project_files import ProjectFiles, table, texts
from loki_memory.seed.proposal import (
    COMMANDS,
    CONFIGURED,
    Proposal,
    Task,
    convention,
    is_plain,
    of_name,
    plain,
    quoted,
    required,
)

RUST, GO, RUBY, PHP, JAVA, C = "Rust", "Go", "Ruby", "PHP", "Java", "C"
_GO_VERSION = re.compile(r"^go (\d+\.\d+)", re.MULTILINE)
_JAVA_VERSION = re.compile(r"<(?:maven\.compiler\.)?(?:release|source)>(?:1\.)?(\d+)</")
_TESTED = re.compile(
    r"^\s*(?:enable_testing\s*\(|include\s*\(\s*CTest)", re.MULTILINE | re.IGNORECASE
)
_CMAKE_VERSION = re.compile(
    r"^\s*cmake_minimum_required\s*\(\s*VERSION\s+([\d.]+)", re.MULTILINE | re.IGNORECASE
)


def tasks(files: ProjectFiles) -> Iterator[Task]:
    """The standard calls of each language's tool, and the scripts that a manifest defines."""
    yield from _rust(files)
    yield from _go(files)
    yield from _ruby(files)
    yield from _php(files)
    yield from _java(files)
    yield from _cmake(files)


def _configured(purpose: str, command: str, source: str, language: str) -> Task:
    return Task(purpose, command, source, CONFIGURED, language)


def _rust(files: ProjectFiles) -> Iterator[Task]:
    if not files.toml("Cargo.toml"):
        return
    yield _configured("test", "cargo test", "Cargo.toml", RUST)
    yield _configured("build", "cargo build", "Cargo.toml", RUST)
    style = files.first("rustfmt.toml", ".rustfmt.toml")
    if style:
        yield _configured("format", "cargo fmt", style, RUST)
    rules = files.first("clippy.toml", ".clippy.toml")
    if rules:
        yield _configured("lint", "cargo clippy", rules, RUST)


def _go(files: ProjectFiles) -> Iterator[Task]:
    if not files.has("go.mod"):
        return
    yield _configured("test", "go test ./...", "go.mod", GO)
    yield _configured("build", "go build ./...", "go.mod", GO)
    rules = files.first(".golangci.yml", ".golangci.yaml", ".golangci.toml")
    if rules:
        yield _configured("lint", "golangci-lint run", rules, GO)


def _ruby(files: ProjectFiles) -> Iterator[Task]:
    if not files.has("Gemfile"):
        return
    if files.has(".rspec"):
        yield _configured("test", "bundle exec rspec", ".rspec", RUBY)
    if files.has(".rubocop.yml"):
        yield _configured("lint", "bundle exec rubocop", ".rubocop.yml", RUBY)


def _php(files: ProjectFiles) -> Iterator[Task]:
    for name in table(files.json("composer.json"), "scripts"):
        purpose, is_part = of_name(name)
        if purpose and is_plain(name, 40):
            yield Task(purpose, f"composer {name}", "composer.json", language=PHP, is_part=is_part)
    settings = files.first("phpunit.xml", "phpunit.xml.dist")
    if settings:
        yield _configured("test", "vendor/bin/phpunit", settings, PHP)


def _java(files: ProjectFiles) -> Iterator[Task]:
    if files.has("pom.xml"):
        run = "./mvnw" if files.has("mvnw") else "mvn"
        yield _configured("test", f"{run} test", "pom.xml", JAVA)
        yield _configured("build", f"{run} package", "pom.xml", JAVA)
    script = files.first("build.gradle.kts", "build.gradle")
    if script and re.search(r"\b(?:java|kotlin|groovy)\b", files.text(script)):
        run = "./gradlew" if files.has("gradlew") else "gradle"
        yield _configured("test", f"{run} test", script, JAVA)
        yield _configured("build", f"{run} build", script, JAVA)


def _cmake(files: ProjectFiles) -> Iterator[Task]:
    text = files.text("CMakeLists.txt")
    if not text:
        return
    command = "cmake -S . -B build && cmake --build build"
    yield _configured("build", command, "CMakeLists.txt", C)
    if _TESTED.search(text):
        yield _configured("test", "ctest --test-dir build", "CMakeLists.txt", C)


def facts(files: ProjectFiles) -> Iterator[Proposal]:
    """Versions, workspaces, and how dependencies are installed."""
    yield from _rust_facts(files)
    version = _GO_VERSION.search(files.text("go.mod"))
    if version:
        yield convention(f"Go {version[1]} or newer is required.", "go.mod", 76)
    if files.has("Gemfile"):
        text = "Dependencies are installed with `bundle install`."
        yield Proposal(text, "convention", COMMANDS, ("Gemfile",), 86)
    java = _JAVA_VERSION.search(files.text("pom.xml"))
    if java:
        yield convention(f"The code is Java {java[1]}.", "pom.xml", 76)
    php = table(files.json("composer.json"), "require").get("php")
    if isinstance(php, str) and is_plain(php, 40):
        yield convention(required("PHP", php), "composer.json", 76)
    cmake = _CMAKE_VERSION.search(files.text("CMakeLists.txt"))
    if cmake:
        yield convention(f"CMake {cmake[1]} or newer is required.", "CMakeLists.txt", 74)


def _rust_facts(files: ProjectFiles) -> Iterator[Proposal]:
    cargo = files.toml("Cargo.toml")
    package = table(cargo, "package") or table(cargo, "workspace", "package")
    for name, said in (
        ("rust-version", "Rust {} or newer is required."),
        ("edition", "The code is Rust edition {}."),
    ):
        value = package.get(name)
        if isinstance(value, str) and is_plain(value, 12):
            yield convention(said.format(value), "Cargo.toml", 76 if name != "edition" else 60)
    members = plain(texts(table(cargo, "workspace").get("members")), 40)
    if members:
        text = f"This is a Cargo workspace; its crates are in {quoted(*members[:4])}."
        yield convention(text, "Cargo.toml", 84)
