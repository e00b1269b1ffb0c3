"""Formats of secrets that their vendors publish: tokens, URLs, Authorization headers."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from loki_memory.files.disguised_text import (
    SHORTEST_HEAD,
    continued,
    first_line,
    last_words,
    unwrapped,
)
from loki_memory.files.secret_names import STAND_IN, Rule, Secret, is_credential, is_random, matches

# A token starts a word, or follows the rest of an escape: \n in JSON text, %3D, ESC[31m.
# In the URLs of Telegram it follows "bot".
_START = r"(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\dm)|(?<=bot)"
_END = r"(?![A-Za-z0-9])"
# A body that is neither a CSS class nor "your-key-goes-right-here".
_BODY = r"(?=[a-z_-]{0,64}[A-Z0-9]|[a-z]{24})[\w-]{20,}+"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}" + _END


def _token(kind: str, prefixes: str, body: str) -> Rule:
    marks = tuple(prefixes.split())
    return Rule(kind, marks, f"(?:{'|'.join(map(re.escape, marks))}){body}")


def _any_of(marks: Iterable[str]) -> bytes:
    """A pattern that branches on the first letter: three times as fast as a flat one."""
    rests: dict[str, list[str]] = {}
    for mark in sorted(marks):
        rests.setdefault(mark[0], []).append(re.escape(mark[1:]))
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in rests.items()).encode()


# Tokens with a published prefix. Each holds, around its mark, a run of at least 20 characters out
# of `_RUN_CHARACTERS`: the first look searches such runs only. Here and below quantifiers are
# possessive or bounded, so that no text takes quadratic time.
TOKENS = (
    _token("github_pat", "ghp_", r"\w{36,}+"),
    _token("github_pat", "github_pat_", r"\w{30,}+"),
    # OAuth, user, server and refresh tokens; a server token may carry a JWT.
    _token("github_token", "gho_ ghu_ ghs_ ghr_", r"\w{36,}+(?:\.[\w-]{10,}+){0,2}"),
    # Personal, project and deploy tokens, of which the routable ones end in .xx.yyyyyyyyy …
    _token("gitlab_token", "glpat- gldt- glrt-", _BODY + r"(?:\.\w{2}\.\w{9})?"),
    # … and those of builds, triggers, SCIM, feeds, mail, agents, OAuth, flags and workspaces.
    _token(
        "gitlab_token", "glcbt- glptt- glsoat- glft- glimt- glagent- gloas- glffct- glwt-", _BODY
    ),
    _token("aws_access_key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}" + _END),
    _token("google_api_key", "AIza", r"[\w-]{35}" + _END),
    _token("google_client_secret", "GOCSPX-", r"[\w-]{20,}+"),
    _token("google_access_token", "ya29.", r"(?:[a-z]\.)?[\w-]{20,}+"),
    # Entra ID, formerly Azure AD: a digit and "Q~" from the fourth place on.
    Rule("azure_client_secret", ("Q~",), r"[\w.~-]{3}\dQ~[\w.~-]{31,34}" + _END),
    _token("slack_token", "xox", r"[abeoprs](?:\.xox[bp])?-" + _BODY),
    _token("slack_token", "xapp-", r"\d-[\w-]{14,}+"),
    _token("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,}+"),
    _token("stripe_webhook_secret", "whsec_", r"[A-Za-z0-9]{20}[A-Za-z0-9+/=]*+"),
    _token("anthropic_key", "sk-ant-", r"(?:[a-z]{2,8}\d\d-)?+" + _BODY),
    _token("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _BODY),
    # The plain form, which OpenRouter, DeepSeek and others share.
    _token("openai_key", "sk- sk-or-v1-", r"(?=[a-z]{0,31}[A-Z0-9]|[a-z]{32})[A-Za-z0-9]{20,}+"),
    # A capital letter distinguishes OpenAI's session key from a hexadecimal session id.
    _token("openai_key", "sess-", r"(?=[a-z0-9]{0,39}[A-Z])[A-Za-z0-9]{40}" + _END),
    _token("npm_token", "npm_", r"[A-Za-z0-9]{36,}+"),
    _token("pypi_token", "pypi-AgE", r"[\w-]{30,}+"),
    _token("huggingface_token", "hf_", r"[A-Za-z0-9]{30,}+"),
    # Three parts of base64url, two of which start with '{"'; the header is short.
    _token("jwt", "eyJ", r"[\w-]{8,2048}+\.eyJ[\w-]{8,}+\.[\w-]{8,}+"),
    _token("sendgrid_key", "SG.", r"[\w-]{16,64}+\.[\w-]{16,}+"),
    # The account id (AC…) beside it is no secret.
    _token("twilio_key", "SK", r"[0-9a-f]{32}" + _END),
    _token("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{40,}+"),
    _token("age_key", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", r"[0-9A-Z]{40,}+"),
    _token("docker_token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}+"),
    _token("linear_key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}+"),
    _token("notion_token", "ntn_", r"[A-Za-z0-9]{40,}+"),
    _token("notion_token", "secret_", r"[A-Za-z0-9]{43}" + _END),
    _token("databricks_token", "dapi", r"[0-9a-f]{32}(?:-\d)?" + _END),
    _token("shopify_token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32,}+"),
    _token("vault_token", "hvs. hvb. hvr.", _BODY),
    # A service token (st) names its environment.
    _token("doppler_token", "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9]{40,}+"),
    _token("doppler_token", "dp.st.", r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}+"),
    _token("supabase_token", "sbp_ sbp_oauth_", r"[0-9a-f]{40,}+"),
    _token("supabase_token", "sb_secret_", r"[\w-]{20,}+"),
    _token("replicate_token", "r8_", r"[A-Za-z0-9]{30,}+"),
    _token("groq_key", "gsk_", r"[A-Za-z0-9]{40,}+"),
    _token("xai_key", "xai-", r"[A-Za-z0-9]{40,}+"),
    _token("perplexity_key", "pplx-", r"[A-Za-z0-9]{40,}+"),
    _token("tailscale_key", "tskey-", _BODY),
    _token("rubygems_key", "rubygems_", r"[0-9a-f]{40,}+"),
    # Organization, user and integration tokens; those of organizations carry base64 of JSON.
    _token("sentry_token", "sntrys_ sntryu_ sntryi_", r"[\w+/=-]{40,}+"),
    _token("planetscale_token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w=-]{32,}+"),
    _token("netlify_token", "nfp_ nfc_ nfu_ nfo_ nfb_", r"[A-Za-z0-9]{36,}+"),
    _token("square_token", "sq0atp- sq0csp- sq0idb-", r"[\w-]{22,}+"),
    # Access tokens of Square and of Meta; base64 of zero bytes is a run of the letter A.
    _token("square_token", "EAAA", r"(?!AAAA)(?=[A-Za-z_-]{0,32}\d)[\w-]{56,}+"),
    _token("facebook_token", "EAAC EAAG EAAB", r"(?=[A-Za-z]{0,32}\d)[A-Za-z0-9]{80,}+"),
    _token("grafana_token", "glsa_ glc_", r"(?=[A-Za-z]{0,31}[0-9_])[\w+/=-]{32,}+"),
    _token("atlassian_token", "ATATT3xFf ATCTT3xFf ATBB", r"[\w=-]{24,}+"),
    _token("newrelic_key", "NRAK- NRAA- NRII-", r"[\w-]{27,}+"),
    _token("postman_key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}" + _END),
    _token("pulumi_token", "pul-", r"[0-9a-f]{40}" + _END),
    _token("easypost_key", "EZAK EZTK", r"(?=[A-Za-z]{0,53}\d)[A-Za-z0-9]{54}" + _END),
    _token("dynatrace_token", "dt0c01. dt0s01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}" + _END),
    _token("figma_token", "figd_", r"[\w-]{36,}+"),
    _token("mailgun_key", "key-", r"[0-9a-f]{32}" + _END),
    _token("hubspot_token", "pat-na1- pat-na2- pat-eu1-", r"[0-9a-f]{8}-[0-9a-f-]{27}" + _END),
    _token("artifactory_key", "AKCp", r"[A-Za-z0-9]{65,}+"),
    _token("cloudflare_key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}" + _END),
    _token("heroku_key", "HRKU-", r"[\w-]{36,}+"),
    _token("render_key", "rnd_", r"(?=[A-Za-z]{0,27}\d)[A-Za-z0-9]{28,}+"),
    _token("vercel_token", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}+"),
    _token("langsmith_key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}(?:_[0-9a-f]{10})?" + _END),
    _token("pinecone_key", "pcsk_", r"[\w-]{40,}+"),
    _token("nvidia_key", "nvapi-", r"[\w-]{40,}+"),
    _token("posthog_key", "phx_", r"[A-Za-z0-9]{40,}+"),
    _token("tavily_key", "tvly-", _BODY),
    _token("resend_key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + _END),
    _token("mailersend_key", "mlsn.", r"[0-9a-f]{64}" + _END),
    _token("buildkite_token", "bkua_", r"[0-9a-f]{40}" + _END),
    _token("circleci_token", "CCIPAT_", r"[A-Za-z0-9]{20,}+_[0-9a-f]{40}" + _END),
    _token("clojars_token", "CLOJARS_", r"[0-9a-z]{60}" + _END),
    _token("sonar_token", "squ_ sqp_ sqa_", r"[0-9a-f]{40}" + _END),
    _token("nuget_key", "oy2", r"(?=[a-z]{0,42}\d)[a-z0-9]{43}" + _END),
    Rule("terraform_token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}+"),
    _token("brevo_key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}" + _END),
    _token("duffel_token", "duffel_test_ duffel_live_", r"[\w=-]{43,}+"),
    _token("shippo_token", "shippo_live_ shippo_test_", r"[0-9a-f]{40}" + _END),
    _token("prefect_key", "pnu_ pnb_", r"(?=[a-z]{0,35}\d)[a-z0-9]{36}" + _END),
    _token("readme_key", "rdme_", r"[a-z0-9]{70}" + _END),
    _token("onepassword_token", "ops_eyJ", r"[\w=-]{200,}+"),
    _token("alibaba_key", "LTAI", r"(?=[A-Za-z]{0,19}\d)[A-Za-z0-9]{16,20}" + _END),
    _token("langfuse_key", "sk-lf-", _UUID),
    _token("plaid_token", "access-production- access-development- access-sandbox-", _UUID),
    _token("launchdarkly_key", "sdk-", _UUID),
    _token("together_key", "tgp_v1_", r"[\w-]{40,}+"),
    _token("cerebras_key", "csk-", r"[a-z0-9]{40,}+"),
    _token("elevenlabs_key", "sk_", r"[0-9a-f]{48}" + _END),
    _token("helicone_key", "sk-helicone-", _BODY),
    _token("gemini_key", "AQ.Ab", r"[\w-]{40,}+"),
    _token("e2b_key", "e2b_", r"[A-Za-z0-9]{40}" + _END),
    _token("wandb_key", "wandb_v1_", r"\w{50,}+"),
    _token("jina_key", "jina_", r"[\w-]{50,}+"),
    _token("apify_token", "apify_api_", r"[A-Za-z0-9]{30,}+"),
    _token("typeform_token", "tfp_", r"[\w-]{40,}+"),
    _token("snyk_token", "snyk_uat. snyk_sat.", r"(?:[\w-]{1,40}\.){0,2}[\w-]{40,}+"),
    _token("neon_key", "napi_", r"[a-z0-9]{50,}+"),
    _token("contentful_token", "CFPAT-", r"[\w-]{43}" + _END),
    _token("sourcegraph_token", "sgp_", r"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}" + _END),
    _token("artifactory_key", "cmVmdGtu", r"[A-Za-z0-9]{56}" + _END),
    _token("confluent_key", "cflt", r"[A-Za-z0-9+/]{60}" + _END),
    _token("dropbox_token", "sl.", r"(?:u\.)?[\w-]{130,}+"),
    _token("lob_key", "live_", r"[0-9a-f]{35}" + _END),
    _token("onepassword_key", "A3-", r"[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}" + _END),
    _token("extended_private_key", "xprv yprv zprv tprv", r"[1-9A-HJ-NP-Za-km-z]{100,}+"),
    # Short prefixes, behind which only a random value counts.
    *(
        _token(f"{vendor}_key", prefixes, body)._replace(accepted=is_random)
        for vendor, prefixes, body in (
            ("fireworks", "fw_", r"[A-Za-z0-9]{22,}+"),
            ("voyage", "pa-", r"[\w-]{40,}+"),
            ("brave", "BSA", r"[\w-]{24,32}" + _END),
            ("firecrawl", "fc-", r"[0-9a-f]{32}" + _END),
            ("adafruit", "aio_", r"[A-Za-z0-9]{28}" + _END),
            ("mem0", "m0-", r"[A-Za-z0-9]{40}" + _END),
            ("stytch", "secret-live- secret-test-", r"[\w=-]{30,}+"),
            ("harness", "pat.", r"[\w-]{20,}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}" + _END),
        )
    ),
    # A secret token of Mapbox; those that begin with pk are public.
    _token("mapbox_token", "sk.eyJ", r"[\w-]{20,}+\.[\w-]{16,}+"),
)
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~"
_RUNS = bytes(ord("a" if byte in _RUN_CHARACTERS else " ") for byte in range(256))
_RUN = b"a" * 20
_TOKEN_MARKS = _any_of({mark for rule in TOKENS for mark in rule.marks})
_HEAD_MARKS = _any_of({mark[:SHORTEST_HEAD] for rule in TOKENS for mark in rule.marks})


def _is_password(value: str) -> bool:
    return not re.match(STAND_IN, value)


def _holds_random(value: str) -> bool:
    """Check for a random part: cookies of preferences are short words."""
    return any(is_random(part) for part in re.split(r"[=;,\s]+", value))


def _is_login(value: str) -> bool:
    """Check for base64 of "user:password": the word after "basic" is usually English."""
    unpadded = value.rstrip("=")
    try:
        login = binascii.a2b_base64(unpadded + "=" * (-len(unpadded) % 4)).decode()
    except ValueError:
        return False
    return ":" in login and login.isprintable()


def _is_token(value: str) -> bool:
    return is_credential(value, "token", quoted=True)


_EXAMPLE_PASSWORDS = r"password|passwd|pass|secret|changeme|postgres|root|admin|test|guest|example"
_EXAMPLE_HOSTS = (
    r"(?:localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0|host\.docker\.internal"
    r"|(?:[\w-]+\.){0,4}(?:example(?:\.(?:com|org|net))?|test|invalid|localhost))"
)


def _is_mixed(value: str) -> bool:
    """Check for a random value that is no hash."""
    return is_random(value) and not re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", value)


def _command(programs: str, option: str) -> Rule:
    """A password on a command line, after an option of some programs."""
    names = programs.split(", ")
    called = "|".join(map(re.escape, names))
    return Rule(
        "password",
        tuple(f"{name} " for name in names),
        rf"\b(?:{called})\s[^\n|;]{{0,300}}?(?<=\s){option}[\"']?([^\s\"'|;]{{4,128}})",
        _is_password,
    )


_USER = r"[ =]?[\"']?[^\s:\"'/$]{1,64}:"
_COMMANDS = (
    _command("curl, wget", rf"(?:-u|--(?:proxy-)?user){_USER}"),
    _command("http, https, xh", rf"(?:-a|--auth){_USER}"),
    _command("sshpass", r"-p\s{0,4}"),
    _command("mysql, mysqldump, mysqladmin, mariadb, mariadb-dump, mariadb-admin", "-p"),
    _command("mongo, mongosh, mongodump, mongorestore, mongoexport, mongoimport", r"-p[ =]"),
    _command("docker login, podman login, registry login, oc login, az login", r"-p[ =]?"),
    _command("redis-cli", r"-a\s{1,4}"),
    _command("ldapsearch, ldapmodify, ldapadd, ldapdelete, ldapwhoami", r"-w\s{1,4}"),
    _command("zip, unzip", r"-P\s{1,4}"),
    _command("7z, 7za, 7zz, rar, unrar", "-p"),
    _command("smbclient, rpcclient", r"(?:-U|--user)[ =]?[\"']?[^\s%\"']{1,64}%"),
    _command("openssl", r"-pass(?:in|out|word)?\s{1,4}pass:"),
    _command("openssl enc", r"-k\s{1,4}"),
    _command("sqlplus", r"[\w$#]{1,30}/"),
    _command("net use", r"/user:\S{1,80}\s{1,4}"),
)


# Formats whose marks are searched in the whole text.
FORMATS = (
    # Only the password: scheme, user and host stay readable. "name:tag@sha256:" is an image, and
    # "user:password@localhost" an example.
    Rule(
        "url_password",
        ("@",),
        r":(?:\\{0,3}/){2}((?:\[REDACTED:\w+\]|[^\s/@:\"'`<>\\\[]){0,128}):"
        rf"(?!(?:\1|{_EXAMPLE_PASSWORDS})@{_EXAMPLE_HOSTS}(?![\w.-]))"
        r"([^\s/\"'`<>\\,;]{3,256})@(?!sha256:)",
        _is_password,
    ),
    *_COMMANDS,
    # What is piped into a program that reads a password.
    Rule(
        "password",
        ("--password-stdin", "chpasswd", "sudo -S"),
        r"\b(?:echo|printf)\s{1,4}(?:-\w{1,3}\s{1,4})?[\"']?(?:[\w.-]{1,32}:)?+([^\s\"'|]{4,128})"
        r"[\"']?\s{0,4}\|[^\n|]{0,200}(?:--password-stdin|chpasswd|sudo\s-S)",
        _is_password,
    ),
    Rule(
        "password",
        ("IDENTIFIED ", "identified "),
        r"(?i)\bidentified\s(?:with\s\w{1,40}\s)?by\s(?:password\s)?'([^'\s]{4,128})'",
        _is_password,
    ),
    Rule(
        "password",
        ("SecureString",),
        r"ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?[\"']([^\"'\s]{4,128})[\"']",
        _is_password,
    ),
    Rule("password", ("oracle:thin:",), r"oracle:thin:\w{1,30}/([^\s@\"']{4,128})@", _is_password),
    Rule("url_password", ("@",), r"://([\w-]{20,255}+)@", _is_mixed),  # a token as the user
    Rule("api_key", ("?key=", "&key="), r"[?&]key=([\w-]{24,}+)", _is_mixed),
    # The login of a registry, in the configuration of docker.
    Rule(
        "basic_auth",
        ("auth",),
        r"(?<![\w.-])auth[\"'\\]{1,4}\s{0,4}:\s{0,4}[\"'\\]{1,4}([A-Za-z0-9+/]{8,}+={0,2})",
        _is_login,
    ),
    # A key in the format of PuTTY.
    Rule(
        "private_key",
        ("Private-Lines:",),
        r"Private-Lines: \d{1,3}((?:(?:\\r|\\n|\s){1,4}[A-Za-z0-9+/=]{16,64}+){1,99})",
    ),
    Rule(
        "seed_phrase",
        ("nemonic", "NEMONIC", "phrase", "PHRASE"),
        r"(?i)\b(?:mnemonic|(?:seed|recovery|secret)[ _-]phrase)(?: is)?[\"'`:= ]{1,6}"
        r"((?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b",
    ),
    Rule(
        "discord_webhook",
        ("/webhooks/",),
        r"discord(?:app)?\.com\\{0,3}/api\\{0,3}/webhooks\\{0,3}/(\d{6,20}\\{0,3}/[\w-]{40,}+)",
    ),
    Rule("teams_webhook", ("webhook.office.com",), r"webhook\.office\.com/(\w+/[\w@/-]{60,}+)"),
    # A signed URL of S3 opens what it names for whoever holds it.
    Rule(
        "aws_signature",
        ("X-Amz-", "x-amz-"),
        r"[Xx]-[Aa]mz-(?:[Ss]ignature|[Ss]ecurity-[Tt]oken)[\"']?(?:=|%3D|: ?[\"']?)"
        r"([A-Za-z0-9%+/=]{32,}+)",
    ),
    # Without a prefix of their own, these count in a text about their vendor only.
    Rule(
        "vault_token",
        ("Vault", "vault", "VAULT"),
        r"(?<![\w.])([sb]\.(?=[A-Za-z]{0,23}\d)(?=[a-z0-9]{0,23}[A-Z])[A-Za-z0-9]{24,}+)",
    ),
    Rule("mailchimp_key", ("ailchimp",), r"\b[0-9a-f]{32}-us\d{1,2}" + _END),
    # The bot's id, a colon and AA….
    Rule("telegram_token", (":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{33}" + _END),
    Rule("airtable_token", ("irtable",), r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}" + _END),
    Rule(
        "slack_webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com\\{0,3}/[a-z]{1,16}\\{0,3}/([A-Z0-9]{6,32}(?:\\{0,3}/\w{6,}+){1,3})",
    ),
    # Without its signature a shared access URL of Azure opens nothing.
    Rule("azure_sas_signature", ("sig=",), r"(?<![A-Za-z0-9])sig=([A-Za-z0-9%+/]{30,}+=?)"),
    _token("fly_token", "fm2_", r"[\w+/=,-]{20,}+"),
    # It has no prefix (the first part is the bot's id), so it counts in a text about Discord only.
    Rule("discord_token", ("iscord",), r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+"),
)
_MARKS = tuple(mark.encode() for rule in FORMATS for mark in rule.marks)

# Headers, searched in the text in lower case.
HEADERS = (
    Rule(
        "cookie",
        ("curl ",),
        r"\bcurl\b[^\n]{0,300}?\s(?:-b|--cookie)[ =]?[\"']?([\w.-]{1,64}=[^\"'\s]{16,4096})",
        _holds_random,
    ),
    Rule(
        "basic_auth",
        ("basic auth",),
        r"\bbasic auth(?:entication)?(?: is| with)?[:=]? {1,4}\W?[\w.@-]{1,64}:([^\s\"'`]{6,128})",
        _is_token,
    ),
    Rule(
        "cookie",
        ("cookie",),
        r"\bcookie[\"'`\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'`\\]{0,4}([\w.-]{1,64}=[^\r\n\"'`<>\\]{16,4096})",
        _holds_random,
    ),
    Rule("basic_auth", ("basic ",), r"\bbasic {1,4}([a-z0-9+/]{6,}+={0,2})", _is_login),
    Rule(
        "bearer_token",
        ("bearer", "authorization"),
        r"\b(?:bearer\s{1,4}|authorization[\"'`\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'`\\]{0,4}"
        r"(?:(?:token|api-?key|key|bot)\s{1,4})?)([a-z0-9._~+/-]{8,}+={0,2})",
        _is_token,
    ),
)
_HEADER_MARKS = tuple(mark.encode() for rule in HEADERS for mark in rule.marks)


def format_secrets(text: str, low: str, data: bytes) -> Iterator[Secret]:
    """Find secrets in published formats, from the most precise rules to the least.

    `low` is the text in lower case, `data` its UTF-8.
    """
    starts_token = re.compile(_START).match
    for token in matches(_likely(data), text, text):
        if starts_token(text, token.start):
            yield token
    yield from matches(FORMATS, text, text)
    yield from matches(HEADERS, low, text)


def _likely(data: bytes) -> list[Rule]:
    """The rules for tokens of which a mark occurs; a text is searched for all marks at once."""
    runs = b" ".join(_long_runs(data))
    if not re.search(_TOKEN_MARKS, runs):
        return []
    marks = tuple({mark.decode() for mark in re.findall(b"(?=(%s))" % _TOKEN_MARKS, runs)})
    return [rule for rule in TOKENS if any(mark.startswith(marks) for mark in rule.marks)]


def wrapped_tokens(text: str, data: bytes) -> Iterator[Secret]:
    """Find tokens that go on over the end of a line."""
    if not may_hold_wrapped_token(data):
        return
    view, starts_token = unwrapped(text), re.compile(_START).match
    line_starts = set(view.places)
    rules = _likely(view.text.encode("utf-8", "surrogatepass"))
    for token in matches(rules, view.text, view.text):
        if token.start in line_starts or starts_token(view.text, token.start):
            has_mark = re.search(_HEAD_MARKS, first_line(view, token).encode())
            ends = continued(view, token) if has_mark else []
            wholes = (token._replace(end=end) for end in ends)
            yield from map(view.secret, islice(filter(partial(_is_whole, view.text), wholes), 1))


def _is_whole(text: str, token: Secret) -> bool:
    rules = (rule for rule in TOKENS if rule.kind == token.kind)
    part = text[token.start : token.end]
    return any(re.match(rule.pattern, part, re.ASCII) for rule in rules)


def may_hold_format(data: bytes, low: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, it holds none of these formats."""
    return (
        any(mark in data for mark in _MARKS)
        or any(mark in low for mark in _HEADER_MARKS)
        or may_hold_token(data)
    )


def may_hold_wrapped_token(data: bytes) -> bool:
    """Look fast at UTF-8 text or JSON: if False, no line ends in the beginning of a token."""
    return re.search(_HEAD_MARKS, last_words(data)) is not None


def may_hold_token(data: bytes) -> bool:
    runs = b" ".join(_long_runs(data))
    return bool(runs) and re.search(_TOKEN_MARKS, runs) is not None


def _long_runs(data: bytes) -> Iterator[bytes]:
    runs = data.translate(_RUNS) + b" "
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.index(b" ", start)
        yield data[start:end]
        start = runs.find(_RUN, end)
