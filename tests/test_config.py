"""Settings of every form: numbers, texts, switches; who may name a path; what all must share."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from loki_memory import Workspace
from loki_memory.config import Config, Setting
from loki_memory.config_file import chosen, edited, load
from loki_memory.errors import InvalidConfig
from loki_memory.settings import SETTINGS

MODEL, TRACK, MERGE = "embedding.model", "continuity.track", "consolidation.merge"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read(tmp_path: Path, workspace: str = "", user: str = "", **environment: str) -> Config:
    """The settings of a workspace and a user with these files."""
    ours = written(tmp_path / "workspace.toml", workspace)
    return load(ours, written(tmp_path / "user.toml", user), environment)


def test_defaults_are_in_force_where_nothing_is_set(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert {name: value.value for name, value in config.values.items()} == {
        setting.name: setting.default for setting in SETTINGS
    }
    assert (config.text(MODEL), config.get("recall.floor"), config.get(TRACK)) == ("auto", 8, 0)
    assert config.unknown == config.ignored == []


# -- a path is the user's to name ----------------------------------------------------------------


def test_the_user_and_the_environment_may_name_a_path(tmp_path: Path) -> None:
    mine = '[embedding]\nmodel = "/mine"\n'
    assert read(tmp_path, user=mine).text(MODEL) == "/mine"
    config = read(tmp_path, user=mine, LOKI_EMBEDDING_MODEL="/now")
    assert (config.text(MODEL), config.values[MODEL].source) == ("/now", "environment")
    assert read(tmp_path, user=mine, LOKI_EMBEDDING_MODEL="").text(MODEL) == ""


@pytest.mark.parametrize("value", ['"/theirs"', '""', "3", '["/theirs"]'])
def test_a_path_in_a_workspace_is_ignored_and_said(tmp_path: Path, value: str) -> None:
    config = read(tmp_path, f"embedding.model = {value}\n", '[embedding]\nmodel = "/mine"\n')
    assert (config.text(MODEL), config.values[MODEL].source) == ("/mine", "user")
    (said,) = config.ignored
    assert said.startswith(f"embedding.model in {tmp_path / 'workspace.toml'} is ignored: ")
    assert said.endswith("only the user's config or LOKI_EMBEDDING_MODEL may name a path")
    assert config.unknown == []


def test_the_users_own_workspace_is_no_clone(tmp_path: Path) -> None:
    own = written(tmp_path / "config.toml", '[embedding]\nmodel = "/mine"\nmodle = 1\n')
    config = load(own, own, {})
    assert config.text(MODEL) == "/mine"
    assert config.ignored == []
    assert config.unknown == [f"{own}: embedding.modle"], "said once"


def test_a_path_is_not_set_in_a_workspace(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="LOKI_EMBEDDING_MODEL"):
        chosen(MODEL, "/theirs")
    assert chosen(MODEL, "/mine", by_user=True) == "/mine"


# -- what consolidation comes to is the same in every clone ---------------------------------------


def test_the_workspaces_file_sets_what_all_who_work_in_it_share(tmp_path: Path) -> None:
    config = read(tmp_path, "[consolidation]\nmerge = 60\n")
    assert (config.get(MERGE), config.values[MERGE].source) == (60, "workspace")
    assert config.ignored == []


@pytest.mark.parametrize("value", ["60", "-1", '"high"'])
def test_the_users_file_does_not_set_it_and_that_is_said(tmp_path: Path, value: str) -> None:
    config = read(tmp_path, user=f"consolidation.merge = {value}\n")
    assert (config.get(MERGE), config.values[MERGE].source) == (50, "default")
    (said,) = config.ignored
    assert said.startswith(f"consolidation.merge in {tmp_path / 'user.toml'} is ignored: ")
    assert "only the workspace's config.toml sets it" in said


def test_the_environment_does_not_set_it_and_that_is_said(tmp_path: Path) -> None:
    config = read(tmp_path, "[consolidation]\nmerge = 60\n", LOKI_CONSOLIDATION_MERGE="70")
    assert (config.get(MERGE), config.values[MERGE].source) == (60, "workspace")
    (said,) = config.ignored
    assert said.startswith("LOKI_CONSOLIDATION_MERGE in the environment is ignored: ")


def test_in_the_users_own_workspace_the_users_file_sets_it(tmp_path: Path) -> None:
    own = written(tmp_path / "config.toml", "[consolidation]\nmerge = 60\n")
    config = load(own, own, {})
    assert (config.get(MERGE), config.ignored) == (60, [])


def test_all_settings_of_consolidation_are_shared_and_no_others() -> None:
    shared = [setting.name for setting in SETTINGS if setting.shared]
    assert shared == [one.name for one in SETTINGS if one.name.startswith("consolidation.")]
    assert not any(setting.variable for setting in SETTINGS if setting.shared)
    assert all(setting.variable for setting in SETTINGS if not setting.shared)


def test_every_setting_says_where_its_default_comes_from_and_has_a_sound_one() -> None:
    for setting in SETTINGS:
        assert setting.basis, setting.name
        assert setting.parsed(setting.default) == setting.default, setting.name


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_measurement_that_a_default_comes_from_is_there(setting: Setting) -> None:
    for named in re.findall(r"benchmarks/\S+\.py", setting.basis):
        assert (Path(__file__).parents[1] / named).is_file()


# -- forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "track"), [("true", 1), ("false", 0), ("1", 1), ("0", 0), ('"true"', 1)]
)
def test_a_switch_is_true_or_false_or_a_digit(tmp_path: Path, value: str, track: int) -> None:
    assert read(tmp_path, "", f"continuity.track = {value}\n").get(TRACK) == track
    assert read(tmp_path, LOKI_CONTINUITY_TRACK=value.strip('"')).get(TRACK) == track


@pytest.mark.parametrize("value", ["2", "-1", "1.0", '"yes"', '""', "[true]"])
def test_a_switch_that_is_neither_on_nor_off_is_said(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidConfig, match=r"workspace\.toml.*must be true or false"):
        read(tmp_path, f"continuity.track = {value}\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("consolidation.merge = 101", "must be a whole number, 1 to 100"),
        ("consolidation.merge = 0", "must be a whole number, 1 to 100"),
        ("consolidation.topic_members = 1", "must be a whole number, 2 or more"),
        ("consolidation.links = -1", "must be a whole number, 0 or more"),
        ("consolidation.links = true", "must be a whole number, 0 or more"),
        ("consolidation.links = 2.5", "must be a whole number, 0 or more"),
    ],
)
def test_a_number_out_of_its_bounds_is_said(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"workspace\.toml.*{said}"):
        read(tmp_path, f"{line}\n")


def test_the_bounds_themselves_are_sound(tmp_path: Path) -> None:
    config = read(tmp_path, "[consolidation]\nmerge = 100\ncluster = 1\nlinks = 0\n")
    found = [config.get(f"consolidation.{name}") for name in ("merge", "cluster", "links")]
    assert found == [100, 1, 0]


@pytest.mark.parametrize("value", ["1", "true", '["/a"]'])
def test_a_path_that_is_no_text_is_said(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidConfig, match=r"user\.toml.*must be a text"):
        read(tmp_path, user=f"embedding.model = {value}\n")


@pytest.mark.parametrize(
    ("name", "wrote", "value"),
    [
        ("recall.floor", "90", 90),
        (TRACK, "true", 1),
        (TRACK, "0", 0),
        (MODEL, 'a "quoted"\\ path', 'a "quoted"\\ path'),
    ],
)
def test_what_is_set_is_read_back(tmp_path: Path, name: str, wrote: str, value: int | str) -> None:
    text = edited("# mine\nformat = 1\n", name, chosen(name, wrote, by_user=True))
    assert text.startswith("# mine\nformat = 1\n")
    assert read(tmp_path, user=text).values[name].value == value


def test_a_switch_is_written_as_one() -> None:
    assert "track = true" in edited("", TRACK, 1)
    assert "track = false" in edited("", TRACK, 0)


@pytest.mark.parametrize(
    ("name", "wrote", "said"),
    [
        ("recall.floor", "high", "not a whole number"),
        ("recall.floor", "-1", "not a whole number"),
        (TRACK, "7", "not true or false"),
        ("recall.roof", "1", "not a setting"),
        (MERGE, "101", "not a whole number, 1 to 100"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name: str, wrote: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said) as refused:
        chosen(name, wrote)
    assert name in str(refused.value)


# -- a clone may narrow what its user allows, and never widen it -----------------------------------

# Each setting of privacy or trust: a wide value, a strict one.
NARROWING = [
    ("memory.enabled", True, False),
    ("memory.include_user", True, False),
    ("capture.scope", "project", "local"),
    ("git.mode", "inline", "off"),
    ("git.mode", "inline", "branch"),
    ("git.mode", "branch", "off"),
    ("git.sign", False, True),
    ("trust.require_signature", False, True),
    ("continuity.track", True, False),
    ("gc.keep_days", 60, 7),
    ("publish.sessions", 1, 3),
    ("git.commit", "auto", "ask"),
    ("daemon.autostart", True, False),
    ("capture.ask", "always", "never"),
    ("local.place", "home", "here"),
    ("continuity.budget", 9000, 100),
    ("memory.stale", True, False),
    ("recall.floor", 5, 90),
]
# Of these, what a workspace cannot widen beyond the default by itself.
CONFIRMED = {
    "capture.scope": "local",
    "publish.sessions": 2,
    "git.commit": "ask",
    "capture.ask": "eventful",
    "local.place": "here",
    "continuity.budget": 1000,
    "continuity.track": False,
    "gc.keep_days": 30,
    "memory.stale": False,
    "recall.floor": 8,
}


def line(name: str, value: object) -> str:
    return f"{name} = {json.dumps(value)}\n"


def test_which_settings_are_a_matter_of_privacy_or_trust() -> None:
    narrowed = {name for name, _, _ in NARROWING}
    assert {one.name for one in SETTINGS if one.stricter} == {*narrowed, "trust.branch"}


@pytest.mark.parametrize(("name", "wide", "strict"), NARROWING)
def test_a_workspace_does_not_widen_what_its_user_narrowed(
    tmp_path: Path, name: str, wide: object, strict: object
) -> None:
    config = read(tmp_path, line(name, wide), line(name, strict))
    assert (config.values[name].value, config.values[name].source) == (strict, "user")
    (said,) = config.ignored
    assert said.startswith(f"{name} in {tmp_path / 'workspace.toml'} is ignored: ")
    assert f"the user's config says {_written(strict)}, which is stricter" in said


@pytest.mark.parametrize(("name", "wide", "strict"), NARROWING)
def test_a_workspace_narrows_what_its_user_left_wide(
    tmp_path: Path, name: str, wide: object, strict: object
) -> None:
    for mine in (line(name, wide), line(name, strict), ""):
        config = read(tmp_path, line(name, strict), mine)
        assert (config.values[name].value, config.values[name].source) == (strict, "workspace")
        assert config.ignored == []


@pytest.mark.parametrize(("name", "wide", "strict"), NARROWING)
def test_a_workspace_decides_where_its_user_said_nothing(
    tmp_path: Path, name: str, wide: object, strict: object
) -> None:
    config = read(tmp_path, line(name, wide))
    expected = (CONFIRMED[name], "default") if name in CONFIRMED else (wide, "workspace")
    assert (config.values[name].value, config.values[name].source) == expected


@pytest.mark.parametrize("name", CONFIRMED)
def test_what_a_clone_widens_counts_once_its_user_has_set_it_here(project: Path, name: str) -> None:
    wide = next(wide for known, wide, _ in NARROWING if known == name)
    with Workspace.init(project) as ws:
        config = ws.layout.loki / "config.toml"
        config.write_text(config.read_text() + line(name, wide))
    with Workspace.open(project) as ws:
        assert ws.config.values[name].value == CONFIRMED[name]
        said = f"loki-mem config {name} {_written(wide)}"
        assert any(said in notice for notice in ws.notices)
        ws.home.set_config(name, _written(wide))
    with Workspace.open(project) as ws:
        assert (ws.config.values[name].value, ws.notices) == (wide, [])


@pytest.mark.parametrize("name", CONFIRMED)
def test_what_the_users_config_allows_needs_no_confirmation(tmp_path: Path, name: str) -> None:
    wide = next(wide for known, wide, _ in NARROWING if known == name)
    config = read(tmp_path, line(name, wide), line(name, wide))
    assert (config.values[name].value, config.ignored) == (wide, [])


@pytest.mark.parametrize(("name", "wide", "strict"), NARROWING)
def test_the_environment_is_the_users_and_decides(
    tmp_path: Path, name: str, wide: object, strict: object
) -> None:
    now = {"LOKI_" + name.replace(".", "_").upper(): str(wide)}
    config = read(tmp_path, line(name, wide), line(name, strict), **now)
    assert (config.values[name].value, config.values[name].source) == (wide, "environment")


def _written(value: object) -> str:
    return str(value).lower()


@pytest.mark.parametrize("name", ["capture.scope", "git.mode"])
@pytest.mark.parametrize("value", ["Local", "", " local", "of", "Inline"])
def test_a_word_that_is_none_of_a_settings_values_is_said(
    tmp_path: Path, name: str, value: str
) -> None:
    for files in ({"workspace": line(name, value)}, {"user": line(name, value)}):
        (file,) = files
        with pytest.raises(InvalidConfig, match=rf"{file}\.toml: {name} is '{value}'; it must be"):
            read(tmp_path, **files)
    with pytest.raises(InvalidConfig, match=r"project or local|inline, branch or off"):
        chosen(name, value)


# -- whatever a clone brings is answered in one sentence -------------------------------------------

DEEP = 3000
BROKEN = {
    "dotted keys": ("a." * DEEP + "a = 1\n").encode(),
    "a file of one dotted key": ("a." * 31_900 + "a = 1\n").encode(),
    "tables": ("[" + "a." * DEEP + "a]\nb = 1\n").encode(),
    "arrays": ("a = " + "[" * DEEP + "]" * DEEP + "\n").encode(),
    "inline tables": ("a = " + "{a = " * DEEP + "1" + "}" * DEEP + "\n").encode(),
    "a setting of arrays": ("memory.enabled = " + "[" * 300 + "]" * 300 + "\n").encode(),
    "a long number": b"recall.floor = 1" + b"0" * 5000 + b"\n",
    "a long hexadecimal number": b"recall.floor = 0x" + b"f" * 5000 + b"\n",
    "a long switch": b"memory.enabled = 0x" + b"f" * 5000 + b"\n",
    "a long format": b"format = 1" + b"0" * 5000 + b"\n",
    "a long hexadecimal format": b"format = 0x" + b"f" * 5000 + b"\n",
    "foreign digits": "format = \u0661\n".encode(),
    "no UTF-8": b"format = 1\n# \xff\n",
    "a long file": b"#" * (1 << 20) + b"\n",
    "a long text": b'capture.scope = "' + b"x" * 10_000 + b'"\n',
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("whose", ["workspace", "user"])
def test_what_cannot_be_taken_is_one_sentence_that_names_the_file(
    tmp_path: Path, whose: str, data: bytes
) -> None:
    read(tmp_path)
    (tmp_path / f"{whose}.toml").write_bytes(data)
    with pytest.raises(InvalidConfig, match=rf"\A.*{whose}\.toml: .*\.\Z") as refused:
        load(tmp_path / "workspace.toml", tmp_path / "user.toml", {})
    assert len(str(refused.value)) < 300 + len(str(tmp_path))


def test_a_number_in_the_environment_may_be_of_any_length(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="LOKI_RECALL_FLOOR"):
        read(tmp_path, LOKI_RECALL_FLOOR="1" * 5000)


def test_setting_a_key_in_a_file_that_is_nested_too_deeply_is_said() -> None:
    text = "a = " + "[" * DEEP + "]" * DEEP + "\n"
    with pytest.raises(InvalidConfig, match=r"config\.toml.*nested too deeply"):
        edited(text, "recall.floor", 50)


@pytest.mark.parametrize("whose", ["workspace", "user"])
def test_a_folder_or_a_pipe_in_place_of_the_file_is_said(tmp_path: Path, whose: str) -> None:
    read(tmp_path)
    path = tmp_path / f"{whose}.toml"
    for make in (os.mkdir, os.mkfifo):
        path.unlink(missing_ok=True)
        make(path)
        with pytest.raises(InvalidConfig, match=rf"{whose}\.toml: is not a file"):
            load(tmp_path / "workspace.toml", tmp_path / "user.toml", {})
        if path.is_dir():
            path.rmdir()


def test_a_link_is_followed_for_the_user_and_not_for_a_workspace(tmp_path: Path) -> None:
    mine = written(tmp_path / "dotfiles.toml", "recall.floor = 60\n")
    workspace, user = tmp_path / "workspace.toml", tmp_path / "user.toml"
    user.symlink_to(mine)
    assert load(workspace, user, {}).get("recall.floor") == 60
    assert load(user, user, {}).get("recall.floor") == 60
    user.unlink()
    workspace.symlink_to(mine)
    config = load(workspace, user, {})
    assert config.values["recall.floor"].source == "default"
    assert config.ignored == [
        f"{workspace} is ignored: it is a symbolic link, which is not followed"
    ]


def test_a_branch_is_trusted_once_its_user_set_it_in_this_clone(tmp_path: Path) -> None:
    config = read(tmp_path, line("trust.branch", "develop"), "")
    assert config.text("trust.branch") == ""
    assert "`loki-mem config trust.branch develop`" in config.ignored[0]
    config = read(tmp_path, line("trust.branch", "develop"), line("trust.branch", "main"))
    assert config.text("trust.branch") == "main"


def test_only_the_user_lists_trusted_remotes(tmp_path: Path) -> None:
    config = read(tmp_path, line("trust.remotes", "example.org/*"), "")
    assert config.text("trust.remotes") == ""
    assert "only the user's config or LOKI_TRUST_REMOTES" in config.ignored[0]
    config = read(tmp_path, "", line("trust.remotes", "example.org/*"))
    assert config.text("trust.remotes") == "example.org/*"
