"""Files that hold credentials by their nature: what an agent reads or writes there is not captured.

Redaction knows formats; a file of credentials holds some that nobody knows. So a call on one of
these files keeps its place in the session and loses its text, and so does its answer. A command
counts unless it only names the file: `source .env` prints nothing, `cat .env` prints all of it. A
command whose answer is credentials, such as `printenv` or `gh auth token`, counts without a file.
"""

from __future__ import annotations

import re

from loki_memory.ingest.steps import COMMANDS
from loki_memory.ingest.turns import CALL, RESULT, Turn
from loki_memory.models.error_signature import is_shell

WITHHELD = "[a file with credentials]"
_FILE = re.compile(
    r"""(?xi)(?<![\w.-])(?:
        \.env(?!\.(?:example|sample|template|dist|defaults|schema|test)\b)(?:rc|\.[\w.-]+)?
      | (?!(?:process|meta|import|deno)\.)[\w-]+\.env
      | id_(?:rsa|dsa|ecdsa|ed25519)(?:_\w+)?(?!\.pub)
      | \.(?:netrc|pgpass|npmrc|pypirc|git-credentials|htpasswd|vault-token|s3cfg|boto
        |my(?:login)?\.cnf|databrickscfg|dev\.vars)
      | \.dockercfg
      | _netrc
      | [\w.-]*\.(?:pem|p12|pfx|jks|keystore|kdbx|ppk|tfstate|tfvars)
      | (?:private|server|client|tls|ssl)[\w.-]*\.key
      | (?:application_default_credentials|service[_-]?account[\w-]*|client_secrets?[\w.-]*
        |credentials|secrets?)\.(?:json|ya?ml|toml|ini|env|xml|properties)
      | \.(?:aws|config/gcloud|azure|kube|docker|gnupg|ssh|oci)/(?!known_hosts)[\w./-]+
      | \.(?:cargo|gem)/credentials(?:\.toml)?
      | master\.key | deploy_key
      | \.(?:claude/\.credentials|codex/auth|netlify/config)\.json
      | \.config/(?:gh/hosts\.yml|op/config|hub|rclone/rclone\.conf|sops/age/keys\.txt
        |doctl/config\.ya?ml)
      | \.(?:fly/config\.yml|terraform\.d/[\w.-]+\.json|composer/auth\.json|snowsql/config)
      | \.(?:password-store|subversion/auth|local/share/keyrings)/[\w./-]+
      | /proc/(?:self|\d+)/environ
      | local\.settings\.json | wallet\.dat | (?:gcp|gcloud|google)[\w-]*key[\w-]*\.json
      | \.m2/settings\.xml | \.terraformrc | \.yarnrc\.yml | wp-config\.php
      | /etc/g?shadow | /run/secrets/[\w./-]+ | secrets/[\w.-]+\.(?:json|ya?ml|toml|env|txt)
      | kubeconfig(?:\.ya?ml)? | \.(?:ba|z|fi)?sh_history
    )(?![\w-])"""
)
# Commands that only name a file, or take its values into an environment.
_NAMES_ONLY = re.compile(
    r"(?:source|\.|ls|ll|stat|test|\[+|chmod|chown|rm|touch|mv|mkdir|cd|find|git\s+(?:add|rm|mv|status"
    r"|check-ignore|update-index|ls-files)|export|set|docker|docker-compose|podman|npm|npx|pnpm|yarn"
    r"|node|python3?|uv|make|ssh|scp|rsync|dotenv|env|ssh-add|kubectl|terraform|go|cargo|pytest)(?=\s|$)"
)
# Programs that print credentials without the name of a file.
_PRINTS = re.compile(
    r"(?:printenv|env|set|export(?:\s+-p)?|declare\s+-[xp]+)\s*(?:>.*)?$|printenv\s"
    r"|gh\s+auth\s+token|(?:gh|glab)\s+auth\s+status\s.*(?:-t|--show-token)"
    r"|(?:age|gpg)\s(?:.*\s)?(?:-d|--decrypt)\b|ansible-vault\s+view|lpass\s+show|systemctl\s+show-env"
    r"|docker[ -]compose\s+config(?!.*(?:-q|--quiet|--services))|chamber\s+(?:list|read|export)"
    r"|terraform\s+output\s.*-(?:json|raw)|pulumi\s+config\s.*--show-secrets|supabase\s+status"
    r"|(?:npm|yarn|pnpm)\s+config\s+get\s.*[aA]uth|(?:bin/)?rails\s+credentials:"
    r"|(?:node|deno|bun|python3?|ruby)\s.*(?:process\.env|os\.environ|ENV)\s*\)"
    r"|aws\s+ecr\s+get-login-password|aws\s+configure\s+(?:get|export-credentials)"
    r"|aws\s+(?:secretsmanager\s+get-secret-value|ssm\s+get-parameter|sts\s+(?:get-session|assume))"
    r"|gcloud\s+(?:auth\s+(?:\S+\s+)?print-|secrets\s+versions\s+access)|az\s+(?:account\s+get-access-token"
    r"|keyvault\s+secret\s+show)|kubectl\s+(?:\S+\s+)*get\s+secrets?\b|kubectl\s+config\s+view\s.*--raw"
    r"|vault\s+(?:kv\s+get|read|token)\b|op\s+(?:read|item\s+get)\b|pass\s+(?:show\s)?\S|bw\s+get\b"
    r"|security\s+find-\w+-password|secret-tool\s+lookup|heroku\s+config(?:\s|$)|doppler\s+secrets"
    r"|fly(?:ctl)?\s+auth\s+token|npm\s+token\s+(?:list|create)|git\s+credential\b"
)
# What runs code, or a program elsewhere: given text, it may print what it names.
_RUNS = re.compile(
    r"(?:node|python3?|ruby|perl|php|deno|bun)(?:\s.*)?\s-[ecp]\b"
    r"|(?:ssh|docker|podman|kubectl|docker-compose)\s.*\s(?:cat|head|tail|less|more|grep|sed|awk|base64)\s"
)
_WRITES_INTO = re.compile(r">{1,2}\s*[\"']?[^\s\"']*$")


def is_sensitive(path: str) -> bool:
    """Check whether a path names a file of credentials."""
    return _FILE.search(path.replace("\\", "/")) is not None


def reads_sensitive(command: str) -> bool:
    """Check whether a command line prints or writes the content of a file of credentials."""
    return any(map(_shows, COMMANDS.split(command)))


def _shows(command: str) -> bool:
    found = _FILE.search(command)
    program = re.sub(r"^(?:\s|\(|\w+=\S*\s|sudo\s|time\s)*", "", command)
    if found is None:
        return _PRINTS.match(program) is not None
    if _WRITES_INTO.search(command[: found.start()]) or _RUNS.match(program):
        return True
    return _NAMES_ONLY.match(program) is None


def withheld(turn: Turn, calls: set[str]) -> Turn:
    """A turn as it may be staged; `calls` are the session's calls whose answers are withheld.

    A call on a file of credentials is added to them.
    """
    if turn.kind == CALL and _is_on_sensitive_file(turn):
        calls.add(turn.call)
        return turn._replace(text=WITHHELD, files=(), written="", hunks=())
    if turn.kind == CALL and turn.text == WITHHELD:
        calls.add(turn.call)
    if turn.kind == RESULT and turn.call in calls:
        return turn._replace(text="", failed=False, hunks=())
    return turn


def _is_on_sensitive_file(turn: Turn) -> bool:
    paths = (*turn.files, *(hunk.path for hunk in turn.hunks))
    if any(map(is_sensitive, paths)):
        return True
    if is_shell(turn.tool):
        return reads_sensitive(turn.text)
    return " " not in turn.text and is_sensitive(turn.text)
