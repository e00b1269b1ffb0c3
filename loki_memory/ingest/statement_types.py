"""The type of a statement: what the reader of a memory may do with it.

A preference or decision of the user comes first; then what the agent decided, a convention (it says
what should be), a gotcha (an outside tool and what is wrong with it), how two things relate, what
something is; everything else that is stated is a fact.
"""

from __future__ import annotations

import re

from loki_memory.ingest.statement_score import CODE_NAME, NEGATIVE, STATED, USER
from loki_memory.models.lesson_text import asks
from loki_memory.models.text import holds_everywhere

PREFERENCE, DECISION, CONVENTION, GOTCHA = "preference", "decision", "convention", "gotcha"
RELATIONSHIP, ENTITY, FACT = "relationship", "entity", "fact"

_FEW_WORDS, _MANY_WORDS = 4, 45  # of what a user states; more is pasted
_DECIDED_WORDS = 6
_LEAST_RELATION = 0.35
_FEW_NAMES = 3

_NOT_STATED = re.compile(
    r"\?\s*$|\bi'?d like to\b|\blet'?s (?:see|look|do it|try|check|fix|start|go|continue|discuss)\b"
    r"|\bfor now\b|https?://|^\W*(?:@|/|<)|\b(?:can|could|would) you\b"
    r"|^\W*(?:i think|what|why|how|i have|i(?:'m| am| was) \w+ing)\b",
    re.IGNORECASE,
)
_PREFERS = re.compile(
    r"\bi(?:'d)? prefer\b|\bi don'?t (?:want|like)\b"
    r"|\bplease (?:use|don'?t|do not|reply|always|never|keep|make sure|avoid)\b|\bremember to\b"
    r"|\bwe should (?:be using|use|always|never|not)\b"
    r"|\bshould(?:n'?t| not)? (?:always|never)\b|\bwrite (?:a |the )?tests? first\b"
    r"|\blet'?s (?:avoid|make sure|always|never|not use|use)\b|\buse \S+.{0,40}\binstead\b"
    r"|\btoo slow\b|^\W*(?:always|never|don'?t|do not|avoid|stop)\b"
    r"|\b(?:respond|reply) directly\b",
    re.IGNORECASE,
)
_ORDERS_ONCE = re.compile(  # a piece of work that is done once, wherever it has to be done
    r"\A\W*(?:(?:ok(?:ay)?|and|then|now|also|just|please|let'?s)[, ]+)*(?:add|apply|change|commit"
    r"|convert|copy|delete|drop|extract|fix|implement|make (?!sure)|merge|migrate|move|push|rebase"
    r"|refactor|remove|rename|replace|revert|split|update)\b",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\blet'?s (?:use|keep|drop|remove|have|move|make|rename|add|not|completely|put|store|call"
    r"|switch)\b|\bwe (?:don'?t|no longer) (?:have|need|use|support)\b"
    r"|\bshould be (?:committed|tracked|hidden|removed|ignored|optional|required)\b"
    r"|\bactually,? (?:i|we|let'?s)\b|\bthinking again\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:intentional(?:ly)?|by design|deliberate(?:ly)?|decided to|on purpose|chosen|we chose)\b",
    re.IGNORECASE,
)
_DEMANDS = re.compile(
    r"\b(?:should|must|always|never|unless|requires?|needs? to|has to|have to|avoid|prefer"
    r"|instead of|rather than|make sure|do not|don'?t)\b",
    re.IGNORECASE,
)
_NAME_FIRST = re.compile(
    r"(?:The\s+)?(`[^`]+`|\w*[a-z][A-Z]\w*|\w+_\w+|\w+\(\))\s+(?:\w+\s+){0,2}?"
)
_IS_A = re.compile(
    r"(?:is an?|is the|are|returns?|holds?|lives? in|represents?|stores?|contains?|means"
    r"|defines?)\b"
)
_RELATES = re.compile(
    r"(`[^`]+`|\w*[a-z][A-Z]\w*(?:\(\))?|\w+\(\))\s+(?:also |only |directly )?"
    r"(?:calls?|uses?|imports?|cannot import|falls back to|clears?|ignores?|wraps?|depends on"
    r"|reads?|writes?|extends?"
    r"|implements?|delegates to|overrides?|replaces?|routes?)\b[^.]{0,40}?"
    r"(`[^`]+`|\w*[a-z][A-Z]\w*(?:\(\))?|\w+\(\))"
)
# Programs, platforms and libraries that most projects meet; the session's own commands join them,
# and what a session edits is its own, however well it is known.
OUTSIDE = frozenset(
    re.findall(
        r"[\w.-]+",
        "actions aiohttp anaconda android angular apt astro awk aws azure babel bash bazel biome "
        "bitbucket black blazor brew bun bundler caddy cargo celery chart.js chrome ci clang "
        "claude clippy cloudflare cmake cobra cocoapods codex composer conda copilot curl cursor "
        "cypress darwin deno dependabot django docker dotnet drizzle elasticsearch elixir emacs "
        "esbuild eslint express fastapi firefox fish flake8 flask gcc gcp gemini gh git github "
        "gitlab go go-git gofmt goimports golang golangci-lint gopls goreleaser gpg gradle "
        "graphql grpc haskell helm hibernate homebrew httpx husky ios isort java jest jinja2 jira "
        "jq junit kafka keychain kotlin kotlinx kubectl kubernetes laravel launchd lerna linear "
        "linux llvm lsp macos make matplotlib maven meson mise mongodb mypy mysql nanostores "
        "nestjs netlify next nginx ninja node nolint nox npm nuget numpy nuxt nx ocaml pandas "
        "phoenix php phpunit pip playwright pnpm poetry postcss postgres postgresql powershell "
        "prettier prisma protobuf puppeteer pydantic pylint pytest python rabbitmq rails react "
        "redis remix renovate requests rollup rspec ruby ruff rust safari sass scikit-learn scipy "
        "seaborn sed selenium sentry setuptools shell sidekiq slack sphinx spring sqlalchemy "
        "sqlite ssh storybook svelte swift symfony sympy systemd tailwind tailwindcss tensorflow "
        "terraform testify testifylint tmux torch tox tsc tsconfig tsx turbo typescript urllib3 "
        "uv vercel vim viper virtualenv vite vitest vscode vue webpack werkzeug wheel windows "
        "xcode xcodebuild yarn zig zod zsh",
    )
)
# Names of them that are also words: they count only where they are quoted as code.
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        "actions black cat chrome check cursor express file find fish go head helm linear make "
        "meson next ninja node requests rust shell slack sort spring swift test time turbo wheel",
    )
)
_CODE = re.compile(r"`[^`]+`")
_WORD = re.compile(r"[A-Za-z][\w+-]*")
_SUFFIX = re.compile(r"(?<=\w)\.[a-z]{1,6}\b")  # of a file: `main.go` is not about Go
_SUBJECT = 4  # words at the beginning of a clause, of which one names what it is about
_WITHIN = re.compile(r"\b(?:in|on|under) (?:the )?(`[^`]+`|[A-Z][\w+-]*)")
_CLAUSE = re.compile(r" [\u2013\u2014-]+ |; |: |, (?:so|but|and|because) ")


def statement_type(text: str, source: str, score: float, tools: frozenset[str]) -> str:
    """The type of a statement; empty for words of a user that state nothing."""
    if source == USER:
        return _of_user(text)
    is_norm = _DEMANDS.search(text) is not None
    first = _NAME_FIRST.match(text)
    types = (
        (DECISION, _DECIDED.search(text)),
        (GOTCHA, NEGATIVE.search(text) and _is_tool_subject(text, tools)),
        (CONVENTION, is_norm and len(set(CODE_NAME.findall(text))) <= _FEW_NAMES),
        (RELATIONSHIP, score >= _LEAST_RELATION and _RELATES.search(text)),
        (ENTITY, first and _IS_A.match(text, first.end())),
        (FACT, STATED.search(text)),
    )
    return next((name for name, applies in types if applies), "")


def _is_tool_subject(text: str, tools: frozenset[str]) -> bool:
    """Check whether a statement is about a name from outside the project.

    A clause of it begins with the name, or it says what is so "in Astro 6".
    """
    clauses = (" ".join(clause.split()[:_SUBJECT]) for clause in _CLAUSE.split(text))
    return any(is_about_tool(part, tools) for part in (*clauses, *_WITHIN.findall(text)))


def is_about_tool(text: str, tools: frozenset[str]) -> bool:
    """Check whether a statement names a program, library or platform from outside the project."""
    plain = _SUFFIX.sub("", text)
    quoted = {word.lower() for code in _CODE.findall(plain) for word in _WORD.findall(code)}
    words = {word.lower() for word in _WORD.findall(plain)} - (_ENGLISH - quoted)
    return not words.isdisjoint(tools)


def _of_user(text: str) -> str:
    count = len(text.split())
    if _NOT_STATED.search(text) or not _FEW_WORDS <= count <= _MANY_WORDS:
        return ""
    is_everywhere = holds_everywhere(text) and count >= _DECIDED_WORDS and asks(text)
    if not _ORDERS_ONCE.match(text) and (_PREFERS.search(text) or is_everywhere):
        return PREFERENCE
    return DECISION if _DECIDES.search(text) and count >= _DECIDED_WORDS else ""
