"""Secrets never get past the door, and ordinary sentences get through it unchanged.

Every secret here is put together at run time: the files of this repository contain no string that
looks like one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loki_memory.files import redaction, secret_formats, secret_names
from loki_memory.files.redaction import (
    clip,
    clip_end,
    find_secrets,
    may_hold_secret,
    redact,
    redact_value,
)


def some(length: int, characters: str = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC") -> str:
    return "".join(islice(cycle(characters), length))


def hexadecimal(length: int) -> str:
    return some(length, "0f1e2d3c4b5a69788796a5b4c3d2e1f")


def capitals(length: int) -> str:
    return some(length, "A2B3C4D5E6F7GHIJKLMN")


def digits(length: int) -> str:
    return some(length, "8314159265")


PASSWORD = "hun" + "ter" + "2x"
LOGIN = base64.b64encode(f"ana:{PASSWORD}".encode()).decode()
UUID = hexadecimal(8) + "-" + 3 * "a1b2-" + hexadecimal(12)
JWT = ".".join(("ey" + "J" + some(20), "ey" + "J" + some(40), some(43)))

TOKENS = [
    ("github_pat", "ghp_" + some(36)),
    ("github_pat", "ghp_" + "a" * 36),
    ("github_pat", "github_pat_" + some(22) + "_" + some(59)),
    ("github_token", "gho_" + some(36)),
    ("github_token", "ghu_" + some(36)),
    ("github_token", "ghs_" + some(36)),
    ("github_token", "ghr_" + some(76)),
    ("gitlab_token", "glpat-" + some(20)),
    ("gitlab_token", "glpat-" + some(27) + ".01." + some(9, "0a1b2")),
    ("gitlab_token", "gldt-" + some(20)),
    ("gitlab_token", "glrt-" + some(20)),
    ("gitlab_token", "glcbt-" + "64_" + some(20)),
    ("gitlab_token", "glptt-" + hexadecimal(40)),
    ("gitlab_token", "glsoat-" + some(20)),
    ("aws_access_key", "AK" + "IA" + capitals(16)),
    ("aws_access_key", "AS" + "IA" + capitals(16)),
    ("google_api_key", "AI" + "za" + some(35)),
    ("google_client_secret", "GOC" + "SPX-" + some(28)),
    ("google_access_token", "ya" + "29." + "a0" + some(60)),
    ("azure_client_secret", "abc" + "8Q" + "~" + some(34)),
    ("slack_token", "xo" + "xb-" + digits(12) + "-" + digits(12) + "-" + some(24)),
    ("slack_token", "xo" + "xp-" + digits(12) + "-" + some(32)),
    ("slack_token", "xo" + "xe.xo" + "xp-1-" + some(40)),
    ("slack_token", "xa" + "pp-1-A" + capitals(9) + "-" + digits(12) + "-" + hexadecimal(40)),
    ("stripe_key", "sk_" + "live_" + some(24)),
    ("stripe_key", "sk_" + "test_" + some(99)),
    ("stripe_key", "rk_" + "live_" + some(24)),
    ("stripe_webhook_secret", "whs" + "ec_" + some(32)),
    ("anthropic_key", "sk-" + "ant-api03-" + some(93) + "-" + some(8)),
    ("anthropic_key", "sk-" + "ant-" + some(32)),
    ("openai_key", "sk-" + some(48)),
    ("openai_key", "sk-" + "a" * 48),
    ("openai_key", "sk-" + "proj-" + some(40) + "_" + some(30) + "-" + some(20)),
    ("openai_key", "sk-" + "svcacct-" + some(60)),
    ("openai_key", "sk-" + "or-v1-" + hexadecimal(64)),
    ("openai_key", "se" + "ss-" + some(40)),
    ("npm_token", "np" + "m_" + some(36)),
    ("pypi_token", "py" + "pi-AgEI" + some(80)),
    ("huggingface_token", "h" + "f_" + some(34)),
    ("jwt", JWT),
    ("sendgrid_key", "S" + "G." + some(22) + "." + some(43)),
    ("twilio_key", "S" + "K" + hexadecimal(32)),
    ("digitalocean_token", "do" + "p_v1_" + hexadecimal(64)),
    ("telegram_token", digits(10) + ":A" + "A" + some(33)),
    ("age_key", "AGE-" + "SECRET-KEY-1" + capitals(58)),
    ("docker_token", "dck" + "r_pat_" + some(27)),
    ("linear_key", "lin" + "_api_" + some(40)),
    ("notion_token", "nt" + "n_" + some(46)),
    ("notion_token", "sec" + "ret_" + some(43)),
    ("databricks_token", "da" + "pi" + hexadecimal(32)),
    ("databricks_token", "da" + "pi" + hexadecimal(32) + "-2"),
    ("shopify_token", "shp" + "at_" + hexadecimal(32)),
    ("shopify_token", "shp" + "ss_" + hexadecimal(32)),
    ("vault_token", "hv" + "s." + some(90)),
    ("doppler_token", "dp." + "pt." + some(43)),
    ("doppler_token", "dp." + "st.prd." + some(43)),
    ("fly_token", "fm" + "2_" + some(30) + "/+" + some(20) + "=="),
    ("supabase_token", "sb" + "p_" + hexadecimal(40)),
    ("supabase_token", "sb" + "_secret_" + some(31)),
    ("replicate_token", "r" + "8_" + some(37)),
    ("groq_key", "gs" + "k_" + some(52)),
    ("xai_key", "xa" + "i-" + some(80)),
    ("perplexity_key", "pp" + "lx-" + some(48)),
    ("tailscale_key", "ts" + "key-auth-" + some(12) + "-" + some(32)),
    ("rubygems_key", "ruby" + "gems_" + hexadecimal(48)),
    ("sentry_token", "sn" + "trys_" + "ey" + "J" + some(80) + "_" + some(43)),
    ("sentry_token", "sn" + "tryu_" + hexadecimal(64)),
    ("planetscale_token", "pscale" + "_tkn_" + some(43)),
    ("planetscale_token", "pscale" + "_pw_" + some(43)),
    ("netlify_token", "nf" + "p_" + some(36)),
    ("square_token", "sq0" + "atp-" + some(22)),
    ("square_token", "sq0" + "csp-" + some(43)),
    ("square_token", "EA" + "AA" + some(60)),
    ("facebook_token", "EA" + "AC" + some(120)),
    ("grafana_token", "gl" + "sa_" + some(32) + "_" + hexadecimal(8)),
    ("atlassian_token", "ATAT" + "T3xFfGF0" + some(180)),
    ("newrelic_key", "NR" + "AK-" + capitals(27)),
    ("postman_key", "PM" + "AK-" + hexadecimal(24) + "-" + hexadecimal(34)),
    ("pulumi_token", "pu" + "l-" + hexadecimal(40)),
    ("easypost_key", "EZ" + "AK" + some(54)),
    ("dynatrace_token", "dt0" + "c01." + capitals(24) + "." + capitals(64)),
    ("figma_token", "fi" + "gd_" + some(40)),
    ("mailgun_key", "ke" + "y-" + hexadecimal(32)),
    ("hubspot_token", "pat-" + "na1-" + hexadecimal(8) + "-a1b2-c3d4-e5f6-" + hexadecimal(12)),
    ("artifactory_key", "AK" + "Cp" + some(69)),
    ("cloudflare_key", "v1.0" + "-" + hexadecimal(24) + "-" + hexadecimal(146)),
    ("heroku_key", "HR" + "KU-" + some(60)),
    ("render_key", "rn" + "d_" + some(32)),
    ("vercel_token", "vc" + "p_" + some(56)),
    ("langsmith_key", "lsv2" + "_pt_" + hexadecimal(32) + "_" + hexadecimal(10)),
    ("tavily_key", "tv" + "ly-dev-" + some(32)),
    ("pinecone_key", "pc" + "sk_" + some(64)),
    ("nvidia_key", "nv" + "api-" + some(64)),
    ("posthog_key", "ph" + "x_" + some(43)),
    ("resend_key", "r" + "e_" + some(8) + "_" + some(24)),
    ("mailersend_key", "ml" + "sn." + hexadecimal(64)),
    ("buildkite_token", "bk" + "ua_" + hexadecimal(40)),
    ("circleci_token", "CCI" + "PAT_" + some(22) + "_" + hexadecimal(40)),
    ("clojars_token", "CLO" + "JARS_" + some(60, "a1b2c3d4e5f6g7")),
    ("sonar_token", "sq" + "u_" + hexadecimal(40)),
    ("nuget_key", "oy" + "2" + some(43, "a1b2c3d4e5f6g7")),
    ("terraform_token", some(14) + ".atl" + "asv1." + some(67)),
    ("brevo_key", "xkey" + "sib-" + hexadecimal(64) + "-" + some(16)),
    ("duffel_token", "duffel" + "_live_" + some(43)),
    ("shippo_token", "shippo" + "_live_" + hexadecimal(40)),
    ("prefect_key", "pn" + "u_" + some(36, "a1b2c3d4e5f6g7")),
    ("readme_key", "rd" + "me_" + some(70, "a1b2c3d4e5f6g7")),
    ("onepassword_token", "ops" + "_ey" + "J" + some(300)),
    ("alibaba_key", "LT" + "AI" + some(20)),
    ("mapbox_token", "sk." + "ey" + "J" + some(60) + "." + some(22)),
    ("langfuse_key", "sk-" + "lf-" + UUID),
    ("plaid_token", "access-" + "production-" + UUID),
    ("launchdarkly_key", "sd" + "k-" + UUID),
    ("together_key", "tgp" + "_v1_" + some(43)),
    ("cerebras_key", "cs" + "k-" + some(48, "a1b2c3d4e5f6g7")),
    ("elevenlabs_key", "sk" + "_" + hexadecimal(48)),
    ("helicone_key", "sk-" + "helicone-" + some(30)),
    ("gemini_key", "AQ" + ".Ab8" + some(46)),
    ("e2b_key", "e2" + "b_" + hexadecimal(40)),
    ("wandb_key", "wandb" + "_v1_" + some(60)),
    ("jina_key", "ji" + "na_" + some(60)),
    ("apify_token", "apify" + "_api_" + some(36)),
    ("typeform_token", "tf" + "p_" + some(44)),
    ("snyk_token", "snyk" + "_uat." + hexadecimal(8) + "." + some(40)),
    ("neon_key", "na" + "pi_" + some(64, "a1b2c3d4e5f6g7")),
    ("contentful_token", "CF" + "PAT-" + some(43)),
    ("sourcegraph_token", "sg" + "p_" + hexadecimal(16) + "_" + hexadecimal(40)),
    ("artifactory_key", "cmVm" + "dGtu" + some(56)),
    ("confluent_key", "cf" + "lt" + some(60)),
    ("dropbox_token", "sl" + ".u." + some(140)),
    ("lob_key", "li" + "ve_" + hexadecimal(35)),
    ("onepassword_key", "A3" + "-" + capitals(6) + ("-" + capitals(6)) + 4 * ("-" + capitals(5))),
    ("extended_private_key", "xp" + "rv9s21ZrQH143K" + some(94, "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY")),
    ("age_key", "AGE-" + "SECRET-KEY-PQ-1" + capitals(70)),
    ("fireworks_key", "f" + "w_" + some(24)),
    ("voyage_key", "p" + "a-" + some(43)),
    ("brave_key", "BS" + "A" + some(28)),
    ("firecrawl_key", "f" + "c-" + hexadecimal(32)),
    ("adafruit_key", "ai" + "o_" + some(28)),
    ("mem0_key", "m" + "0-" + some(40)),
    ("stytch_key", "secret" + "-live-" + some(36) + "="),
    ("harness_key", "pa" + "t." + some(22) + "." + hexadecimal(24) + "." + some(20)),
]

# Where tokens turn up in memories; {} is the token.
PLACES = {
    "bare": "{}",
    "sentence": "The deploy used {} until March.",
    "end of a sentence": "Do not commit {}.",
    "code span": "Set it to `{}` first",
    "JSON": '{"note": "{}", "n": 1}',
    "JSON inside JSON": r"{\"note\": \"{}\"}",
    "shell": "curl -H 'X-Auth: {}' https://api.example.com/v1",
    "shell variable": "export CI_VALUE={} && make",
    "query": "https://example.com/a?x=1&v={}&y=2",
    "lines": "first line\n{}\nlast line\n",
    "escaped lines": r"first line\n{}\nlast line",
    "percent": "callback%3D{}",
    "colour": "\x1b[31m{}\x1b[0m",
    "parentheses": "({})",
    "assignment": "value = {};",
}


def unlike(wanted: Mapping[str, str]) -> dict[str, str]:
    """Redact texts, and return those that do not become what is wanted."""
    return {text: clean for text, want in wanted.items() if (clean := redact(text)) != want}


@pytest.mark.parametrize("place", PLACES)
def test_a_token_of_each_kind_is_replaced_wherever_it_stands(place: str) -> None:
    text = PLACES[place]
    filled = {token: f"[REDACTED:{kind}]" for kind, token in TOKENS}
    assert unlike({text.replace("{}", a): text.replace("{}", b) for a, b in filled.items()}) == {}


def test_a_secret_is_located_exactly() -> None:
    found = [(token, find_secrets(f"see {token} here")) for _, token in TOKENS]
    assert found == [(token, [(kind, 4, 4 + len(token))]) for kind, token in TOKENS]


def test_a_format_goes_before_the_name_beside_it() -> None:
    named = {f'password = "{token}"': f'password = "[REDACTED:{kind}]"' for kind, token in TOKENS}
    assert unlike(named) == {}


# {} is the secret, which the kind replaces.
FORMATS = [
    ("url_password", "postgres://ana:{}@db.example.com:5432/app", PASSWORD),
    ("url_password", "postgres://user:{}@host", "pa" + "ss"),
    ("url_password", "redis://:{}@cache:6379/0", PASSWORD),
    ("url_password", "mongodb+srv://ana:{}@cluster0.example.net/?w=1", "p%40" + "ss"),
    ("url_password", "amqp://ana:{}@mq", "p@" + "ss"),
    ("url_password", r"https:\/\/ana:{}@example.com\/git", PASSWORD),
    ("github_pat", "git clone https://x-access-token:{}@github.com/a/b.git", "ghp_" + some(36)),
    (
        "slack_webhook",
        "https://hooks.slack.com/services/{}",
        "T0" + "AB1CD2E/B0" + "AB1CD2E/" + some(24),
    ),
    (
        "azure_sas_signature",
        "https://a.blob.core.windows.net/c/f?sv=2024&sig={}&se=2025",
        some(43) + "%3D",
    ),
    ("azure_key", "AccountName=a;AccountKey={};EndpointSuffix=core.windows.net", some(86) + "=="),
    ("azure_key", "Endpoint=sb://a/;SharedAccessKeyName=x;SharedAccessKey={}", some(43) + "="),
    ("aws_secret_key", "aws_secret_access_key = {}", some(20) + "/" + some(19)),
    ("aws_secret_key", "aws_secret_access_key = {}", "/" + some(39)),
    ("aws_secret_key", '"SecretAccessKey": "{}",', some(20) + "+" + some(19)),
    ("aws_secret_key", "AWS_SECRET_ACCESS_KEY={} terraform plan", some(40)),
    ("bearer_token", "Authorization: Bearer {}", some(20)),
    ("bearer_token", "curl -H 'authorization: bearer {}' https://example.com", some(20) + "=="),
    ("bearer_token", '"Authorization": "Bearer {}"', hexadecimal(32)),
    ("bearer_token", "Authorization: token {}", hexadecimal(40)),
    ("bearer_token", "sent Bearer {} and got 401", some(24)),
    ("jwt", "Authorization: Bearer {}", JWT),
    ("basic_auth", "Authorization: Basic {}", LOGIN),
    ("basic_auth", "curl -H 'Authorization: Basic {}'", LOGIN.rstrip("=")),
    ("fly_token", "FlyV1 {}", "fm" + "2_" + some(40)),
    ("telegram_token", "https://api.telegram.org/bot{}/getMe", digits(9) + ":A" + "A" + some(33)),
    ("discord_webhook", "https://discord.com/api/webhooks/{}", digits(18) + "/" + some(68)),
    ("teams_webhook", "https://acme.webhook.office.com/{}", "webhookb2/" + some(90)),
    ("aws_signature", "https://b.s3.amazonaws.com/k?X-Amz-Signature={}", hexadecimal(64)),
    ("vault_token", "Vault answered with {} here", "s" + "." + some(24)),
    ("airtable_token", "Airtable wants {} here", "pa" + "t" + some(14) + "." + hexadecimal(64)),
    ("mailchimp_key", "Mailchimp wants {} here", hexadecimal(32) + "-us12"),
    ("password", "curl -s -u ana:{} https://example.org", PASSWORD),
    ("password", "curl https://example.org --user 'ana:{}'", PASSWORD),
    ("password", "sshpass -p {} ssh ana@db", PASSWORD),
    ("password", "mysql -u root -p{} shop", PASSWORD),
    ("password", "http -a ana:{} GET https://example.org", PASSWORD),
    ("password", "mongosh --host db -u ana -p {} shop", PASSWORD),
    ("password", "docker login -u ana -p {} ghcr.io", PASSWORD),
    ("password", "redis-cli -h db -a {} ping", PASSWORD),
    ("password", "ldapsearch -x -D cn=admin -w {} -b dc=shop", PASSWORD),
    ("password", "zip -P {} all.zip all", PASSWORD),
    ("password", "7z a -p{} all.7z all", PASSWORD),
    ("password", "smbclient //nas/all -U ana%{}", PASSWORD),
    ("password", "openssl rsa -in a.pem -passin pass:{}", PASSWORD),
    ("password", "openssl enc -aes-256-cbc -k {} -in a", PASSWORD),
    ("password", "sqlplus scott/{}", PASSWORD + "@db"),
    ("password", r"net use Z: \\nas\all /user:ana {}", PASSWORD),
    ("password", "echo {} | docker login -u ana --password-stdin", PASSWORD),
    ("password", "echo 'root:{}' | chpasswd", PASSWORD),
    ("password", "jdbc:oracle:thin:scott/{}@//db:1521/x", PASSWORD),
    ("password", "jdbc:sqlserver://db;user=sa;password={};", PASSWORD),
    ("password", "CREATE USER 'ana'@'%' IDENTIFIED BY '{}';", PASSWORD),
    ("password", 'ConvertTo-SecureString "{}" -AsPlainText -Force', PASSWORD),
    ("password", '<password encrypted="false">{}</password>', PASSWORD),
    ("password", 'variable "db_password" {\n  type = string\n  default = "{}"\n}', PASSWORD),
    ("password", "das Passwort ist {}", PASSWORD),
    ("password", "Kennwort: {}", PASSWORD),
    ("password", "la contraseña es {}", PASSWORD),
    ("password", "le mot de passe est {}", PASSWORD),
    ("basic_auth", '{"auths": {"ghcr.io": {"auth": "{}"}}}', LOGIN),
    ("basic_auth", "staging has basic auth: ana:{}", PASSWORD),
    ("url_password", "git clone https://{}@github.com/a/b.git", some(40)),
    ("api_key", "https://maps.example.org/api?key={}", some(32)),
    ("private_key", "Private-Lines: 1{}\nPrivate-MAC: 0", "\n" + some(60)),
    ("seed_phrase", 'MNEMONIC="{}"', " ".join(["abandon"] * 11 + ["about"])),
    ("cookie", "curl -b '{}' https://example.org", "sid=" + some(32)),
    ("cookie", "Cookie: {}", "theme=dark; sid=" + some(32)),
    ("key", "DEPLOY_KEY={}", some(32)),
    ("key", "Ocp-Apim-Subscription-Key: {}", hexadecimal(32)),
    ("key", '"storageKey": "{}"', some(40)),
    ("auth", "auth_code: {}", some(24)),
    ("api_key", "the API key {} expired", some(32)),
    ("password", "| DB_PASSWORD | {} |", PASSWORD),
    ("token", "| token | `{}` | rotate |", some(32)),
    ("password", "password: >-\n  {}\n", PASSWORD),
    (
        "discord_token",
        "The Discord bot runs with {}",
        "M" + some(23) + "." + some(6) + "." + some(38),
    ),
]


def test_what_surrounds_a_secret_stays_readable() -> None:
    wanted = {
        text.replace("{}", secret, 1): text.replace("{}", f"[REDACTED:{kind}]", 1)
        for kind, text, secret in FORMATS
    }
    assert unlike(wanted) == {}


def test_a_secret_in_the_column_of_its_name_is_replaced() -> None:
    tables = [
        ("password", "| user | password |\n|---|---|\n| ben | none |\n| ana | {} |\n", PASSWORD),
        ("password", "user,password,host\nben,none,db\nana,{},db\n", PASSWORD),
        ("aws_secret_key", "Access key ID,Secret access key\nan id,{}", some(40)),
        ("token", "name\ttoken\nci\t{}\n", some(32)),
    ]
    wanted = {
        text.replace("{}", secret): text.replace("{}", f"[REDACTED:{kind}]")
        for kind, text, secret in tables
    }
    assert unlike(wanted) == {}
    apart = f"| user | password |\n\n| ana | {PASSWORD} |\n"
    assert redact(apart) == apart


# {} is a password or a key.
ANNOUNCED = [
    ("password", 'password = "{}"'),
    ("password", "password='{}'"),
    ("password", "password: {}"),
    ("password", "Password: {}."),
    ("password", "**Password:** {}"),
    ("password", "- **password**: `{}`"),
    ("password", "DB_PASSWORD={}"),
    ("password", "PGPASSWORD={} psql -h db"),
    ("password", "docker run -e POSTGRES_PASSWORD={} postgres:16"),
    ("password", "MYSQL_PWD={}"),
    ("password", "DB_PASS={}"),
    ("password", "ADMIN_PASSWORD_PROD={}"),
    ("password", "dbPassword: '{}',"),
    ("password", "mysql --password={} -u root"),
    ("password", "mysql --password {} -u root"),
    ("password", "tool --db-password {}"),
    ("password", "machine example.com login ana password {}"),
    ("password", "the password is {}"),
    ("password", "The password for the admin account is {}, change it."),
    ("password", "the password was `{}` until May"),
    ("password", "set the password to {}"),
    ("password", "passwd: {}"),
    ("password", "passphrase = '{}'"),
    ("password", '{"user": "ana", "password": "{}"}'),
    ("password", '{"user": "ana", "pass": "{}"}'),
    ("password", r"{\"password\": \"{}\"}"),
    ("password", r"{\\\"password\\\": \\\"{}\\\"}"),
    ("password", r"line\npassword: {}\nline"),
    ("password", "CREATE USER ana WITH PASSWORD '{}';"),
    ("password", "Server=db;User Id=sa;Password={};Encrypt=yes"),
    ("password", "jdbc:postgresql://db/app?user=ana&password={}&ssl=true"),
    ("password", "<password>{}</password>"),
    ("password", '<add key="Password" value="{}"/>'),
    ("password", "- name: DB_PASSWORD\n  value: {}\n"),
    ("password", "'password' => '{}',"),
    ("password", 'password := "{}"'),
    ("password", 'if password == "{}":'),
    ("password", 'os.environ["DB_PASSWORD"] = "{}"'),
    ("password", 'os.getenv("DB_PASSWORD", "{}")'),
    ("password", 'password: str = "{}"'),
    ("password", 'password = SecretStr("{}")'),
    ("password", 'password = b"{}"'),
    ("password", "user: ana\npassword: {}\nhost: db\n"),
    ("password", 'the end is cut off: {"password": "{}'),
    ("api_key", '"api_key": "{}"'),
    ("api_key", "apiKey: '{}'"),
    ("api_key", "X-API-Key: {}"),
    ("api_key", "my API key is {}"),
    ("api_key", "--api-key {}"),
    ("api_key", "OPENWEATHER_API_KEY={}"),
    ("secret", "secret_key: {}"),
    ("secret", "client_secret={}&grant_type=client_credentials"),
    ("secret", 'SECRET_KEY = "{}"'),
    ("secret", "SECRET_KEY_BASE={}"),
    ("secret", "JWT_SECRET={}"),
    ("token", "export TOKEN={}"),
    ("token", '"access_token":"{}"'),
    ("token", "auth_token: {}"),
    ("token", "refreshToken = '{}'"),
    ("token", "deploy --token {} --prod"),
    ("token", "the token is {}"),
    ("private_key", "PRIVATE_KEY={}"),
    ("private_key", '"private_key": "{}"'),
    ("credentials", "credentials: {}"),
]
VALUES = [
    PASSWORD,
    "hunter2" + "!x",
    "P@ss" + "w0rd",
    hexadecimal(32),
    some(24),
    "a1b2" + "-c3d4-e5f6",
]


@pytest.mark.parametrize("value", VALUES)
def test_a_credential_after_the_name_of_a_secret_is_replaced(value: str) -> None:
    clean = [redact(text.replace("{}", value)) for _, text in ANNOUNCED]
    assert clean == [text.replace("{}", f"[REDACTED:{kind}]") for kind, text in ANNOUNCED]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('password = "{}"', "correct" + "horse" + "battery" + "staple"),
        ('password = "{}"', "1357" + "2468"),
        ("password: {}", "1357" + "2468"),
        ('password = "{}"', "it's" + "-" + PASSWORD),
        ('password = "{}"', r"hun\"ter2" + "xyz"),
        ("PRIVATE_KEY={}", some(1600)),
        ('private_key = "{}"', some(1600)),
        ("PRIVATE_KEY={}", "0x" + hexadecimal(64)),
        ("TOKEN={}", some(30) + "=="),
        ("API_KEY={}", "3f2b8c1e-" + "9d4a-4c6b-8e7f-" + hexadecimal(12)),
    ],
)
def test_a_value_of_an_unusual_shape_is_replaced_as_a_whole(text: str, value: str) -> None:
    before, after = text.split("{}")
    clean = redact(before + value + after)
    assert clean.startswith(before + "[REDACTED:")
    assert clean.endswith("]" + after)


KEY_HEADER = "-----BEGIN " + "PRIVATE KEY-----"
KEY_FOOTER = "-----END " + "RSA PRIVATE KEY-----"
PEM = (
    "-----BEGIN {0}PRIVATE KEY{1}-----\n"
    + some(64)
    + "\n"
    + some(40)
    + "\n-----END {0}PRIVATE KEY{1}-----"
)


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("", PEM.format("", ""), ""),
        ("key:\n", PEM.format("RSA ", ""), "\nrest"),
        ("", PEM.format("OPENSSH ", ""), " rest"),
        ("", PEM.format("EC ", ""), ""),
        ("", PEM.format("ENCRYPTED ", ""), ""),
        ("", PEM.format("PGP ", " BLOCK"), "\n"),
        ('{"private_key": "', PEM.format("", "").replace("\n", "\\n"), '"}'),
        ('"{\\"private_key\\": \\"', PEM.format("", "").replace("\n", "\\\\n"), '\\"}"'),
        ("one line: ", PEM.format("RSA ", "").replace("\n", " "), " rest"),
        ("cut off: ", PEM.format("RSA ", "")[:90], ""),
        ("cut off: ", PEM.format("RSA ", "")[:-8], ""),
    ],
)
def test_a_private_key_is_replaced_as_a_whole(before: str, key: str, after: str) -> None:
    assert redact(before + key + after).startswith(before + "[REDACTED:private_key]")
    assert redact(before + key + after).endswith(after)
    assert some(16) not in redact(before + key + after)


def test_two_private_keys_are_two_secrets() -> None:
    text = f"{PEM.format('', '')}\nand\n{PEM.format('EC ', '')}"
    assert redact(text) == "[REDACTED:private_key]\nand\n[REDACTED:private_key]"


@pytest.mark.parametrize(
    "join", ["\n", "\\n", "\\\\n", " ", "\n   12\u2192", "\n> ", '\\n"\n"', "\r\n"]
)
@pytest.mark.parametrize("cut", [30, 60, 90, 130, 150])
def test_the_end_of_a_private_key_is_replaced_with_what_stands_before_it(
    join: str, cut: int
) -> None:
    lines = "\n".join(["MII" + some(61), some(64), some(64), "q" + some(31) + "==", KEY_FOOTER])
    text = f"the last lines:\n{lines[cut:]}\nrest".replace("\n", join)
    assert "[REDACTED:private_key]" in redact(text)
    assert not any(some(64)[at : at + 12] in redact(text) for at in range(52))
    assert redact(text).startswith("the last lines:")
    assert redact(text).endswith("rest")


@pytest.mark.parametrize(
    "before", ["it ends with ", "", "A key\nends with\n", "see the certificate "]
)
def test_a_footer_without_a_key_stays(before: str) -> None:
    assert redact(f"{before}{KEY_FOOTER}") == f"{before}{KEY_FOOTER}"


def test_a_text_is_redacted_before_it_is_cut() -> None:
    for kind, token in TOKENS:
        text, whole = f"use {token} here", f"use [REDACTED:{kind}] here"
        for length in (4, 10, 4 + len(token) // 2, len(text) - 6):
            assert whole.startswith(clip(text, length))
            assert whole.endswith(clip_end(text, length))


def test_a_cut_splits_no_placeholder() -> None:
    text = "one " + "ghp_" + some(36) + " two"
    heads = {clip(text, length) for length in range(40)}
    assert heads >= {"one ", "one [REDACTED:github_pat]"}
    assert not any("[" in head and "]" not in head for head in heads)
    tails = {clip_end(text, length) for length in range(1, 40)}
    assert tails >= {" two", "[REDACTED:github_pat] two"}
    assert not any("]" in tail and "[" not in tail for tail in tails)
    assert clip("short", 100) == clip_end("short", 100) == "short"


BENIGN = """\
rotate the token every week
the password field is required
password: required
token = get_token()
password = os.environ['DB_PASSWORD']
password = os.environ["DB_PASSWORD_2"]
secret: string
api_key: str = Field(...)
api_key: str | None = None
password=<your password>
password=$DB_PASSWORD
password="$DB_PASSWORD_1"
password: ${{ secrets.DB }}
password: ${DB_PASSWORD:-postgres}
password=%DB_PASSWORD%
token=***
token: ********
token: null
token: undefined
token = None
token: true
the secret is out
the token is expired
the token is invalid or expired.
the password is wrong
the password is required!
password is too short
password must be at least 12 characters
password: 8-64 characters
Passwords are hashed with argon2id (m=65536, t=3, p=4).
password: argon2id
password hashing: bcrypt, cost 12
password: pbkdf2_sha256
password = hash_password(password1)
password = password2
password = user1_password
password = self.config.db2.password
token = self.oauth2_client.token
token = tokens[i + 1]
token = secrets.token_hex(32)
secret = secrets.token_urlsafe(48)
private_key = ec.generate_private_key(ec.SECP256R1())
userPrivateKey: Uint8Array,
token: Uint8Array
token: bytes32
secret: bytes32
token = uuid4().hex
token: Optional[str] = None
token: string | undefined;
function login(user: string, password: string): Promise<Token>
{"type": "object", "properties": {"password": {"type": "string", "minLength": 8}}}
{"token": "string", "password": "string"}
{"password": "Password", "token": "Token"}
{"password": "Enter your password"}
{"tokens_used": 184213, "max_tokens": 4096, "token_count": 128000}
{"next_page_token": "CAUQAA7x9", "tokens": 12}
nextPageToken: 'CAUQAA7x9'
pad_token = "[PAD]"; eos_token = "</s>"
design token: color-blue-500
token: color.blue.500
token = "access_token"
grant_type=refresh_token
type="password" name="password" id="password1"
<input type="password" autocomplete="current-password">
The secret santa list is in secret_santa.json
secret: my-app-tls
secret: app1-db-credentials
secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-a1b2c3
secret: projects/42/secrets/db/versions/3
secretName: registry-credentials-v2
credentials: include
credentials: ./service-account-2.json
credentials: /run/secrets/gcp1.json
credentials = load_credentials("prod1")
fetch(url, { credentials: "same-origin" })
api_key = config["api_key"]
api_key = settings.OPENAI_API_KEY
apiKey: process.env.API_KEY_2,
api_key: YOUR_API_KEY
api_key = "your-api-key-123"
api_key: xxxxxxxxxxxxxxxx
api_key = "..."
API_KEY=…
export OPENAI_API_KEY=sk-...
export ANTHROPIC_API_KEY=sk-ant-your-key-here
Set ANTHROPIC_API_KEY to sk-ant-xxxxx
Use a key that starts with sk-proj- or sk-ant-.
GitHub tokens start with ghp_, gho_ or github_pat_.
Slack bot tokens start with xoxb- and app tokens with xapp-.
xoxb-your-bot-token-goes-here-please
AWS access keys start with AKIA; temporary ones with ASIA.
AKIA is followed by sixteen characters
Bearer authentication is enabled
Authorization: Bearer <token>
Authorization: Bearer ${TOKEN}
Authorization: Bearer YOUR_ACCESS_TOKEN
Authorization: required
Authorization: Basic <base64>
Basic authentication with a username
A basic understanding of OAuth2 is enough
basic Markdown support
Bearer OAuth2
WWW-Authenticate: Bearer realm="api"
the JWT starts with eyJ and has three parts
eyJhbGciOiJIUzI1NiJ9
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
grep -r "-----BEGIN RSA PRIVATE KEY-----" .
pem.replace("-----BEGIN PRIVATE KEY-----", "").replace("-----END PRIVATE KEY-----", "")
The file starts with -----BEGIN OPENSSH PRIVATE KEY----- and is rejected
https://example.com:8443/path?q=1#frag
https://user@example.com/path
https://github.com/a/b.git@v1.2.3
http://localhost:3000/@scope/package
postgres://user:<password>@host/db
postgres://$USER:$PASSWORD@host/db
postgres://${DB_USER}:${DB_PASSWORD}@host/db
postgres://{user}:{password}@host/db
postgres://user:***@host/db
postgres://your_user:your_password@localhost/db
postgres://user:password@localhost
postgres://postgres:postgres@localhost:5432/app
mysql://root:root@127.0.0.1/test
https://user:password@example.com/path
cache_key: {hash}
primary key: {hash}
| token | description | default |
monkey: a1b2c3
auth: required
Cookie: theme=dark; lang=en-GB; consent=yes-to-all
the author of commit {hash}
curl -u "$USER:$TOKEN" https://example.org
mysql -u root -p shop
the vault holds s.thing and b.other
docker://registry:5000@sha256:0f1e2d3c4b5a
git@github.com:org/repo.git
npm i @types/node@20.11.5
mail ana@example.com or bob2@example.org
commit 3f2b8c1e9d4a4c6b8e7f0a1b2c3d4e5f60718293
see 3f2b8c1e-9d4a-4c6b-8e7f-0a1b2c3d4e5f
sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
sha512-aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zCaB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zCaB3dE5gH==
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk8v0v1cQ2xF3wV4bN5mK6lJ7hG8fD9sA0pO1iU2yT3 ana@laptop
ep-2026-03-21-3f03c773 and sem-d3hebp989h
session sess-{hash}
task-2026-01-21-fix-login-and-password-reset-page
class="sk-folding-cube sk-toggleable__label-arrow"
risk-assessment-for-the-payment-service-2026
SKU-123 SK 32 TASK AC{hash}
hf_hub_download and npm_config_registry and r8_something
pip install pypi-simple; npm_lifecycle_event=test
dapi is a prefix, shpat_ too, and hvs. as well
glpat-xxxxxxxxxxxx
pwd: /home/ana/project
PWD=/home/ana/project1
cd "$(pwd)" && make
C:\\Users\\ana\\token1.txt
token_type: bearer
token_endpoint: https://auth.example.com/oauth2/token
tokenizer: cl100k_base
password_hash: $2b$12$abcdefghijklmnopqrstuv
password_reset_token_expires_at: 2026-01-21T07:20:20Z
token: 2026-01-21T07:20:20Z
token: 128k
token usage: 181292 of 200000
tokens: 1,234,567
token limit = 200000
the token is base64url-encoded
the secret is AES256-encrypted
the password is 8-16 characters long
API keys: see docs/api-keys.md
api key rotation is due in Q3
passphrase: none
compass = "north2north"
The bypass: route53 and ipv6
private key: stored in Vault
the private key is kept offline
sig=abc and sig=def
[REDACTED:github_pat]
password = "[REDACTED:password]"
postgres://user:[REDACTED:url_password]@host/db
Authorization: Bearer [REDACTED:bearer_token]
token: 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48
IERC20 token = IERC20(address); token: ERC20Mock
密码: 请输入密码123abc
Passwort: erforderlich
token: OAuth2Token
private_key: PKCS7PrivateKeyTypes,
Token: "#ddd0c0"
INCOMPLETE_CREDENTIALS = 0x00090320
"AWS::ApiGateway::ApiKey": "{hash}"
"AWS::Config::AggregationAuthorization": "{hash}"
"LockToken": "{hash}"
--idempotency-token 91adc45q
""".replace("{hash}", hexadecimal(40)).splitlines()


def test_an_ordinary_text_stays() -> None:
    assert unlike(dict(zip(BENIGN, BENIGN, strict=True))) == {}


def test_ordinary_texts_stay_together_and_escaped() -> None:
    text = "\n".join(BENIGN)
    assert redact(text) == text
    assert redact(json.dumps(text)) == json.dumps(text)
    assert redact_value(BENIGN) is BENIGN


def test_there_are_enough_of_both() -> None:
    assert len({kind for kind, _ in TOKENS}) >= 20
    assert len(set(BENIGN)) >= 120


MODULES = (redaction, secret_formats, secret_names)


@pytest.mark.parametrize("path", [*(module.__file__ for module in MODULES), __file__])
def test_our_own_files_hold_no_secret(path: str) -> None:
    text = Path(path).read_text(encoding="utf-8")
    assert [text[start:end] for _, start, end in find_secrets(text)] == []


def test_overlapping_secrets_leave_nothing_behind() -> None:
    text = 'password = "' + "ghp_" + some(36) + f'!{PASSWORD}"'
    assert redact(text) == 'password = "[REDACTED:github_pat]"'


def test_a_secret_inside_another_leaves_nothing_behind() -> None:
    text = f'password = "{PASSWORD}-{"ghp_" + some(36)}"'
    assert redact(text) == 'password = "[REDACTED:password]"'


def test_a_secret_glued_to_another_is_found_as_well() -> None:
    text = "AK" + "IA" + capitals(16) + "-" + "ghp_" + some(36) + "." + "np" + "m_" + some(36)
    assert redact(text) == "[REDACTED:aws_access_key]-[REDACTED:github_pat].[REDACTED:npm_token]"


class TestRedactValue:
    @pytest.mark.parametrize(
        ("key", "kind"),
        [
            ("password", "password"),
            ("dbPassword", "password"),
            ("pass", "password"),
            ("api_key", "api_key"),
            ("X-Api-Key", "api_key"),
            ("client_secret", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "aws_secret_key"),
            ("access_token", "token"),
            ("private_key", "private_key"),
            ("credentials", "credentials"),
        ],
    )
    def test_a_key_that_names_a_secret_is_enough(self, key: str, kind: str) -> None:
        assert redact_value({key: PASSWORD}) == {key: f"[REDACTED:{kind}]"}
        assert redact_value([{"a": {key: [PASSWORD]}}]) == [{"a": {key: [f"[REDACTED:{kind}]"]}}]

    def test_a_pair_of_name_and_value(self) -> None:
        pair = {"name": "DB_PASSWORD", "value": PASSWORD}
        assert redact_value(pair) == {"name": "DB_PASSWORD", "value": "[REDACTED:password]"}

    def test_a_known_format_names_the_kind(self) -> None:
        assert redact_value({"token": "ghp_" + some(36)}) == {"token": "[REDACTED:github_pat]"}

    def test_keys_are_redacted_and_no_value_is_lost(self) -> None:
        value = {"ghp_" + some(36): 1, "ghp_" + some(40): 2, "n": 3}
        clean = redact_value(value)
        assert clean == {"[REDACTED:github_pat]": 1, "[REDACTED:github_pat]'": 2, "n": 3}

    @pytest.mark.parametrize(
        "value",
        [
            {"token_count": "184213", "tokens_used": 12, "max_tokens": "4096"},
            {"secret_santa": "ana2bob", "password_hash": "0f1e2d3c"},
            {"password": "required", "token": None, "secret": True, "api_key": 42},
            {"password": "", "token": "see vault", "credentials": {"user": "ana"}},
            {"password": "[REDACTED:password]", "name": "x1y2z3", "value": "a1b2c3d4"},
            {"sha": "3f2b8c1e9d4a4c6b8e7f0a1b2c3d4e5f60718293", "items": [1, 2.5, [], {}]},
            "text",
            7,
            None,
        ],
    )
    def test_without_a_secret_it_is_the_same_object(self, value: object) -> None:
        assert redact_value(value) is value

    def test_the_original_is_not_changed(self) -> None:
        value = {"a": [{"password": PASSWORD}]}
        redact_value(value)
        assert value == {"a": [{"password": PASSWORD}]}


PIECES = st.sampled_from(
    [
        *(token for _, token in TOKENS),
        *(text.replace("{}", PASSWORD) for _, text in ANNOUNCED),
        *(text.replace("{}", secret, 1) for _, text, secret in FORMATS),
        *(rule.marks[0] for rule in secret_formats.TOKENS),
        *(rule.marks[0] for rule in secret_formats.FORMATS),
        *("password", "token", "secret key", "pass", "Bearer ", "Basic ", LOGIN, JWT, PASSWORD),
        *("=", ": ", " is ", '"', "'", "\\", "\\n", "\n", " ", "://", "@", ":", "[", "]", "-", "_"),
        *("[REDACTED:password]", "[REDACTED:", "REDACTED", "-----BEGIN", "-----END", "-----"),
        *(PEM.format("RSA ", ""), KEY_HEADER, KEY_FOOTER, "\u0130", "\u212a", "é", "\ud800"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
VALUES_OF_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def encodings(value: object) -> list[bytes]:
    return [
        json.dumps(value).encode(),
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"),
        json.dumps(value, ensure_ascii=False).replace("/", "\\/").encode("utf-8", "surrogatepass"),
    ]


@given(ANY_TEXT | TEXTS)
def test_secrets_are_in_order_and_apart(text: str) -> None:
    position = 0
    for kind, start, end in find_secrets(text):
        assert kind.isidentifier()
        assert position <= start < end <= len(text)
        position = end


@given(TEXTS)
def test_redaction_is_finished_after_one_call(text: str) -> None:
    clean = redact(text)
    assert find_secrets(clean) == []
    assert redact(clean) is clean


@given(ANY_TEXT | TEXTS)
def test_the_first_look_overlooks_nothing(text: str) -> None:
    if find_secrets(text):
        assert may_hold_secret(text.encode("utf-8", "surrogatepass"))
        assert all(map(may_hold_secret, encodings([{"note": text}])))


@given(VALUES_OF_JSON)
def test_the_first_look_overlooks_no_value(value: object) -> None:
    clean = redact_value(value)
    assert redact_value(clean) is clean
    if clean is not value:
        assert all(map(may_hold_secret, encodings(value)))


@given(st.sampled_from(TOKENS), st.sampled_from(list(PLACES.values())))
def test_the_first_look_sees_through_escapes(sample: tuple[str, str], place: str) -> None:
    text = place.replace("{}", sample[1])
    escaped = '"' + "".join(f"\\u{ord(character):04x}" for character in text) + '"'
    assert json.loads(escaped) == text
    assert may_hold_secret(escaped.encode())


def test_the_first_look_spares_ordinary_records() -> None:
    record = {"id": "ep-2026-03-21-3f03c773", "goal": "Fix the build", "files": ["src/app.py"]}
    assert not may_hold_secret(json.dumps(record).encode())


# Texts that made a backtracking pattern take minutes; a hang here is a failure.
LONG = 60_000
HOSTILE = [
    "a",
    "1",
    "-----BEGIN",
    KEY_HEADER + " ",
    KEY_HEADER + "\n",
    KEY_HEADER + "\n-----END",
    KEY_FOOTER,
    KEY_FOOTER + " ",
    "MII " * 5000 + KEY_FOOTER,
    "password",
    "password=",
    "password1=",
    "password1:",
    "password: ",
    "password for a ",
    'password="',
    "token=" + "a1b2c3 ",
    "token=" + "a1b2c3",
    'token\\"',
    "eyJ",
    "-eyJ",
    ".eyJaaaaaaaa",
    "\\neyJ",
    "sk-",
    "ghp_",
    "SG.aaaaaaaaaaaaaaaa",
    "AK" + "IA" + "A" * 16 + "-",
    "://",
    "://a:b",
    "://a:" + "@@@@",
    "Bearer ",
    "authorization:",
    "basic ",
    "sig=",
    "Discord M",
    "aaa8Q~",
    "12345678:AA",
    "\\u0041",
    "%41",
    "%25",
    "%2525",
    "\x1b[",
    "\x1b[1",
    "\x1b]0;",
    "\u200b",
    "\\u200b",
    "\uff41",
    "gh" + "p_a\n",
    "gh" + "p_aB3\n> ",
    "sk-\n",
    "aB3d\\n",
    "cookie: a=",
    "curl -",
    "curl a -u",
    "mysql -",
    "| token ",
    "password: >\n",
    "a_key=",
    "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
    "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh\n",
    "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh==\\n",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_long_hostile_text_is_read_in_time(unit: str) -> None:
    token = "ghp_" + some(36)
    text = unit * (LONG // len(unit)) + f" {PASSWORD} @ {token}"
    assert find_secrets(text)[-1].end == len(text)


@pytest.mark.parametrize("text", ['password = "{}"', "const passwd = '{}';", '{{"pwd": "{}"}}'])
def test_a_quoted_word_after_password_is_a_password(text: str) -> None:
    word = "open" + "sesame"
    assert word not in redact(text.format(word))


@pytest.mark.parametrize("word", ["required", "string", "incorrect", "bcrypt"])
def test_what_is_said_of_passwords_stays(word: str) -> None:
    text = f'"password": "{word}"'
    assert redact(text) == text


# A secret in disguise: what a terminal, a chat, a narrow window or a manifest makes of it.
DISGUISES = {
    "colours inside": lambda token: f"{token[:9]}\x1b[1;32m{token[9:]}\x1b[0m",
    "escaped colours inside": lambda token: f"{token[:9]}\\u001b[31m{token[9:]}",
    "a zero-width space": lambda token: f"{token[:5]}\u200b{token[5:]}",
    "a soft hyphen": lambda token: f"{token[:12]}\u00ad{token[12:]}",
    "an escaped joiner": lambda token: f"{token[:12]}\\u2060{token[12:]}",
    "wide letters": lambda token: "".join(
        chr(ord(sign) + 0xFEE0) if sign.isalnum() else sign for sign in token
    ),
    "a link of a terminal inside": lambda token: f"{token[:9]}\x1b]8;;http://x\x1b\\{token[9:]}",
    "a blank of Braille": lambda token: f"{token[:9]}\u2800{token[9:]}",
    "a sign of notes": lambda token: f"{token[:9]}\U0001d173{token[9:]}",
    "an annotation": lambda token: f"{token[:9]}\ufff9{token[9:]}",
    "an accent": lambda token: f"{token[:9]}\u0301{token[9:]}",
    "bold letters": lambda token: "".join(
        chr(0x1D5D4 + ord(sign) - 65 if sign.isupper() else 0x1D5EE + ord(sign) - 97)
        if sign.isalpha()
        else sign
        for sign in token
    ),
    "bold digits": lambda token: re.sub(r"\d", lambda sign: chr(0x1D7EC + int(sign[0])), token),
    "a wrapped line": lambda token: f"{token[:14]}\n{token[14:]}",
    "three lines": lambda token: f"{token[:14]}\r\n    {token[14:24]}\r\n    {token[24:]}",
    "a quotation": lambda token: f"{token[:14]}\n> {token[14:]}",
    "a continued command": lambda token: f"{token[:14]}\\\n{token[14:]}",
    "a wrapped line of JSON": lambda token: f"{token[:14]}\\n{token[14:]}",
    "a line of an old Mac": lambda token: f"{token[:14]}\r{token[14:]}",
    "a line separator": lambda token: f"{token[:14]}\u2028{token[14:]}",
    "a next line": lambda token: f"{token[:14]}\x85{token[14:]}",
    "every letter in a URL": lambda token: "".join(f"%{ord(sign):02x}" for sign in token),
    "every letter in JSON": lambda token: "".join(f"\\u{ord(sign):04x}" for sign in token),
    "a letter in JSON": lambda token: f"\\u{ord(token[0]):04X}{token[1:]}",
    "a letter in JSON in JSON": lambda token: f"{token[:7]}\\\\u{ord(token[7]):04x}{token[8:]}",
    "hexadecimal letters": lambda token: "".join(f"\\x{ord(sign):02x}" for sign in token),
    "octal letters": lambda token: "".join(f"\\{ord(sign):03o}" for sign in token),
    "long code points": lambda token: "".join(f"\\U{ord(sign):08x}" for sign in token),
    "code points": lambda token: "".join(f"\\u{{{ord(sign):x}}}" for sign in token),
    "entities": lambda token: "".join(f"&#{ord(sign)};" for sign in token),
    "padded entities": lambda token: "".join(f"&#{ord(sign):05};" for sign in token),
    "hexadecimal entities": lambda token: "".join(f"&#x{ord(sign):X};" for sign in token),
    "entities of entities": lambda token: "".join(f"&amp;#{ord(sign)};" for sign in token),
    "an entity without an end": lambda token: re.sub(
        r"(?<=.....)[A-Za-z](?=\D)", lambda sign: f"&#{ord(sign[0])}", token, count=1
    ),
    "named entities": lambda token: token.replace("_", "&lowbar;").replace("-", "&hyphen;"),
    "Markdown": lambda token: re.sub(r"([_.~-])", r"\\\1", token),
    "a soft line end of a mail": lambda token: f"{token[:14]}=\n{token[14:]}",
    "base64": lambda token: base64.b64encode(token.encode()).decode(),
    "base64 of a line": lambda token: base64.b64encode(f"TOKEN={token}\n".encode()).decode(),
    "base64 of a foreign sentence": lambda token: base64.b64encode(
        f"Der Schlüssel für Zürich 🔑 ist {token}".encode()
    ).decode(),
    "base64 of a command of PowerShell": lambda token: base64.b64encode(
        f"$env:KEY = '{token}'".encode("utf-16-le")
    ).decode(),
    "base64 of base64": lambda token: base64.b64encode(
        b'{"auth": "%s"}' % base64.b64encode(f"robot:{token}".encode())
    ).decode(),
}
LINES = {name for name in DISGUISES if "line" in name} | {"a quotation", "a continued command"}
ON_ONE_LINE = {"fly_token", "telegram_token", "terraform_token"}
WRAPPED = [each for each in TOKENS if len(set(each[1])) > 8]


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_token_in_disguise_is_replaced(disguise: str) -> None:
    """Of every kind whose mark is at its beginning, where a line's end is the disguise."""
    asked = [each for each in WRAPPED if each[0] not in ON_ONE_LINE or disguise not in LINES]
    assert [
        kind for kind, token in asked if not _is_replaced(DISGUISES[disguise](token), token)
    ] == []


def _is_replaced(disguised: str, token: str) -> bool:
    before, after = "It was set to ", " until March, and nobody noticed."
    clean = redact(f"{before}{disguised}{after}")
    parts = (token[at : at + 12] for at in range(8, len(token) - 11))
    is_whole = clean.startswith(f"{before}[REDACTED:") and clean.endswith(after)
    return is_whole and not any(part in clean for part in parts)


@pytest.mark.parametrize("times", [1, 2])
def test_a_secret_is_replaced_where_a_url_spells_its_signs(times: int) -> None:
    for _, text, secret in FORMATS:
        spelled, hidden = text.replace("{}", secret), secret
        for _ in range(times):
            spelled, hidden = quote(spelled, safe=""), quote(hidden, safe="")
        clean = redact(f"GET /go?to={spelled} twice")
        assert "[REDACTED:" in clean, spelled
        assert hidden not in clean or len(secret) <= len("pass"), spelled


def test_a_private_key_in_a_url_is_replaced() -> None:
    clean = redact(f"GET /go?key={quote(PEM.format('RSA ', ''), safe='')}&again=yes")
    assert clean == "GET /go?key=[REDACTED:private_key]&again=yes"


def test_a_url_without_a_secret_stays() -> None:
    url = "https://example.com/find?q=how%20to%20set%20a%20password%3F&page=100%25"
    assert redact(url) == url


@pytest.mark.parametrize(
    "text",
    [
        r"re.sub(r'\x41\x42', '\u0041', text) and \101",
        "&lt;b&gt;bold&lt;/b&gt; &amp;&#39;quoted&#39; &#x2014; R&D&#45;team",
        r"snake\_case\_name and C:\new\_folder\-x",
        r"{\"a\": \"caf\u00e9 \u0026 bar\"}",
        "printf '\\033[1m' and %d of 100%, 50%25",
    ],
)
def test_escapes_without_a_secret_stay(text: str) -> None:
    assert redact(text) == text


def test_the_line_after_a_token_stays() -> None:
    for rest in ("\nand the build works", "\n\nNext steps", "\n12 files changed", "\n- done"):
        assert redact(f"use ghp_{some(36)}{rest}") == f"use [REDACTED:github_pat]{rest}"


@pytest.mark.parametrize("width", [0, 64, 76])
def test_a_private_key_in_base64_is_replaced(width: int) -> None:
    code = base64.b64encode(PEM.format("RSA ", "").encode()).decode()
    lines = "\n    ".join(
        code[at : at + (width or len(code))] for at in range(0, len(code), width or len(code))
    )
    clean = redact(f"tls.key:\n    {lines}\nkind: Secret\n")
    assert clean == "tls.key:\n    [REDACTED:private_key]\nkind: Secret\n"


def test_base64_of_an_ordinary_text_stays() -> None:
    for text in ("An ordinary sentence about nothing at all.", '{"a": 1, "b": [2, 3, 4, 5]}' * 4):
        code = base64.b64encode(text.encode()).decode()
        assert redact(f"it is {code} here") == f"it is {code} here"
