"""Errors that teach nothing: of the client's own tools, missing files, red tests, conflicts.

Such errors happen in every session and explain themselves; no lesson about them helps anybody.
Sentences that explain them come in as statements.
"""

from __future__ import annotations

import re

from loki_memory.models.diagnostics import rule

# Tools of agents themselves: how to use them is for the client to teach.
_CLIENT_TOOLS = re.compile(
    r"(?:read|edit|multiedit|write|notebookedit|notebookread|grep|glob|ls|task|agent|skill|todowrite"
    r"|todoread|exitplanmode|enterplanmode|webfetch|websearch|toolsearch|bashoutput|killshell"
    r"|askuserquestion|slashcommand|view|str_replace_editor|apply_patch|update_plan|write_stdin"
    r"|taskcreate|taskupdate|taskoutput|sendmessage)",
    re.IGNORECASE,
)
_PROTOCOL = re.compile(
    r"string to replace not found|has not been read yet|modified since read|no changes to make"
    r"|matches of the string|exceeds maximum allowed|unknown skill|agent type .* not found"
    r"|no such tool available|sibling tool call|request interrupted|InputValidationError"
    r"|command timed out|tool use was rejected|permission to use|operation was aborted|posix_spawn"
    r"|user (?:doesn't want|rejected)|was blocked\. for security",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"no such file or directory|\b(?:file|path|directory|folder)\b.*does not exist|cannot access"
    r"|no matches found|not a directory|ENOENT|did not match any file",
    re.IGNORECASE,
)
_CONFLICT = re.compile(
    r"CONFLICT \(|merge conflict|automatic merge failed|could not apply|needs merge", re.IGNORECASE
)
_RED_TEST = re.compile(
    r"^(?:---\s+FAIL|FAIL\b|FAILED\b|\s*(?:E\s+)?(?:AssertionError|assert )|[✗✕]|\S+\tfail\t"
    r"|\d+ (?:failed|failing)|Tests?:? +\d+ failed|panic: test|Error:\s+(?:Should|Not|Expected)\b)"
    r"|expected .* (?:but )?(?:got|received|actual)|not equal|\.\.\. (?:ERROR|FAIL)\b",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"\b(?:pytest|jest|vitest|mocha|rspec|phpunit|ctest|unittest|tox|nox"
    r"|(?:go|cargo|npm|pnpm|yarn|bun|mvn|gradle|dotnet|mix|swift|make|just|mise|task)"
    r"\s+(?:run\s+)?[\w:-]*test[\w:-]*)"
)
# What is wrong with the place in which tests run, and not with what they test.
_ENVIRONMENT = re.compile(
    r"No module named|command not found|KeyError|ImportError|connection refused|permission denied"
    r"|\benviron|address already in use|externally-managed|no such option|not installed"
    r"|could not connect|unable to (?:find|locate|import|open)|timed? ?out|daemon|is locked",
    re.IGNORECASE,
)
_SELF_EVIDENT = re.compile(
    r"imported and not used|declared and not used|has no field or method|undefined: "
    r"|undeclared name|cannot find symbol|syntax error|SyntaxError|IndentationError"
    r"|unexpected token|is not defined\b|missing return$|too many arguments in call"
    r"|not enough arguments in call|redeclared in this block|cannot use .* as .* value"
    r"|^\(eval\):\d+: (?:parse error|unmatched)",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:exit code \d+|command failed(?: with exit (?:code|status) \d+)?|error:?|failed"
    r"|exit status \d+|make: \*\*\* .*|npm ERR! (?:code|errno|Test failed).*"
    r"|.*\bERROR task failed\b.*"
    r"|\d{4}[/-]\d\d[/-]\d\d.*|diff --git .*|(?:<hash>|[0-9a-f]{7,40}) .*|connected)?\W*",
    re.IGNORECASE,
)
_SCRIPT = re.compile(
    r"\b(?:python[\d.]*|node|ruby|perl|php|deno run)\s+(?:-\S+\s+)*[\w./~-]+\.\w+\b"
)
INLINE = re.compile(r"\b(?:python3?|node|bash|sh|zsh|ruby|perl)\s+-[ce]\b|<<")
_USAGE = re.compile(
    r"unknown (?:flag|option|argument|shorthand|command|subcommand)"
    r"|unrecogni[sz]ed (?:argument|option)"
    r"|illegal option|invalid option|must be provided|is required|already used by|no such option"
    r"|ambiguous argument|unexpected argument|accepts \d+ arg|flag needs an argument|parse error"
    r"|externally-managed-environment|requires? (?:an? )?(?:argument|value)",
    re.IGNORECASE,
)
_LACKS = re.compile(
    r"must be (?:provided|given|specified)|is required|required (?:flag|option|argument)"
    r"|(?:requires?|needs) (?:an? )?(?:argument|value)",
    re.IGNORECASE,
)
_DIRECTS = re.compile(
    r"(?<!in )(?<!to )(?<!not )\b(?:use|rewrite|replace|remove|omit)\b|\bexpected (?:an?|number)\b"
    r"|\b(?:only one|should (?:either )?be|must (?:not )?be|could be replaced|did you mean)\b",
    re.IGNORECASE,
)
_DESTROYS = re.compile(
    r"\bgit (?:stash (?:drop|clear)|reset --hard|clean|checkout (?:--|\.)|restore|branch -D"
    r"|push .*(?:--force|-f)\b|update-ref|reflog|read-tree"
    r"|checkout --(?:ours|theirs))|\brm -|--no-verify|--force\b|\bdrop (?:table"
    r"|database)|\bkill(?:all)?\b|\btruncate\b|\bsudo\b|\bchmod -R",
    re.IGNORECASE,
)


def teaches(line: str, action: str, target: str) -> bool:
    """Tell whether an error may become a lesson; `line` is its complaint."""
    if is_client_tool(action) or _PROTOCOL.search(line):
        return False
    if rule(line):
        return True
    noise = (_CONFLICT.search, _RED_TEST.search, _SELF_EVIDENT.search, _NOTHING.fullmatch)
    if any(is_noise(line) for is_noise in noise):
        return False
    if _TESTS.search(target) and not (_ENVIRONMENT.search(line) or is_usage(line)):
        return False
    return not (_MISSING.search(line) or INLINE.search(target)) if action else True


def is_of_own_script(line: str, target: str) -> bool:
    """Tell whether an error ended a script that was run to see what the code does.

    It belongs to the work of the moment and teaches only where another command got over it.

    >>> is_of_own_script("No module named 'shop'", "python3 reproduce.py")
    False
    >>> is_of_own_script("AttributeError: 'Cart' object has no attribute 'item'", "python3 try.py")
    True
    """
    return bool(_SCRIPT.search(target)) and not (is_environment(line) or is_usage(line))


def is_client_tool(name: str) -> bool:
    """Tell whether a name is that of a tool of the client itself, such as Edit."""
    return _CLIENT_TOOLS.fullmatch(name) is not None


def is_usage(line: str) -> bool:
    """Tell whether a command was called in a way that it does not know."""
    return _USAGE.search(line) is not None


def is_self_explaining(line: str) -> bool:
    """Tell whether an error says itself what to do."""
    return is_usage(line) or _DIRECTS.search(line) is not None


def names_what_lacks(line: str) -> bool:
    """Tell whether an error names what a command was not given."""
    return _LACKS.search(line) is not None


def is_environment(line: str) -> bool:
    """Tell whether what is wrong is the place in which a command runs, and not what it works on."""
    return _ENVIRONMENT.search(line) is not None


def destroys(command: str) -> bool:
    """Tell whether a command may destroy work: no remedy, whatever it mended once."""
    return _DESTROYS.search(command) is not None
