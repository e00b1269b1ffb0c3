#!/usr/bin/env bash
# Follow README.md and docs/quickstart.md to the letter with the `loki-mem` that is on PATH: an empty
# home, new folders, nothing of this checkout but the two pages. Every command of an `sh` block has to
# exit with 0; of `console` blocks, what is printed has to be what the page shows, exit codes included.
# tests/test_docs.py compares the same blocks with the checkout; this is for what is installed.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
program=$(command -v loki-mem) || { echo "install loki-mem first: it is not on PATH" >&2; exit 2; }
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT

# The commands of a page's blocks, `sh` or `console`, one per line; continued lines are joined.
commands() { # PAGE LANGUAGE
    awk -v language="$2" '
        /^```/ { inside = ($0 == "```" language); next }
        inside && language == "sh" && /^loki-mem / { print }
        inside && language == "console" && /^\$ / { if (held != "") print held; held = substr($0, 3); next }
        inside && language == "console" && /^> / { sub(/\\$/, "", held); held = held substr($0, 3); next }
        inside && language == "console" { if (held != "") { print held; held = "" } }
        END { if (held != "") print held }' "$top/$1"
}

# What a page shows below its commands, all `console` blocks in a row.
shown() { # PAGE
    awk '/^```/ { inside = ($0 == "```console"); next }
         inside && !/^\$ / && !/^> / { print }' "$top/$1"
}

# Run a command line in a folder as a newcomer would: no variable of ours but those of the pages' day.
newcomer() { # FOLDER COMMAND
    (cd "$1" && env -i HOME="$away/home" PATH="$(dirname "$program"):/usr/bin:/bin" LANG=C.UTF-8 \
        LOKI_NOW="${LOKI_NOW:-}" CI=1 COLUMNS=200 \
        GIT_AUTHOR_NAME=New GIT_AUTHOR_EMAIL=new@example.org \
        GIT_COMMITTER_NAME=New GIT_COMMITTER_EMAIL=new@example.org \
        bash -c "$2" < /dev/null 2>&1)
}

mkdir -p "$away/home/project" && git init -q "$away/home/project" # the quickstart begins after the README
for page in README.md docs/quickstart.md; do
    while IFS= read -r command; do
        said=$(newcomer "$away/home/project" "$command") || {
            echo "$page: \`$command\` failed: $said" >&2
            exit 1
        }
    done < <(commands "$page" sh)

    rm -rf "$away/home/tmp" && mkdir "$away/home/tmp"
    while IFS= read -r command; do
        code=0
        LOKI_NOW=2026-01-20T09:00:00Z newcomer "$away/home/tmp" "$command" || code=$?
        [ "$code" -eq 0 ] || echo "[exit $code]"
    done < <(commands "$page" console) |
        sed -E "s#$away/home/tmp#\$TMP#g; s#^(  index +)[0-9.]+ k?B#\1<size>#" > "$away/printed"
    shown "$page" | diff -u - "$away/printed" || { echo "$page shows something else" >&2; exit 1; }
    echo "$page: every command works and prints what is shown"
done
