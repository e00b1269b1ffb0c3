"""The usage journal: nothing is lost, nothing is fatal, and strength is what the uses say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loki_memory import journal as module
from loki_memory.files.lock import locked
from loki_memory.journal import Journal, Uses
from loki_memory.journal.tally import Sent

NOW = "2026-01-06T10:30:00Z"
START = datetime(2026, 1, 6, 10, 30, tzinfo=UTC)
NONE = Uses(0, "", 0, 0)


def at(**later: float) -> str:
    return f"{START + timedelta(**later):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".loki" / "local" / "journal"


@pytest.fixture
def journal(folder: Path) -> Journal:
    return Journal(folder)


def _open(journal: Journal, memory_id: str = "sem-1", session: str = "", now: str = NOW) -> bool:
    return journal.opened(memory_id, 10, session=session or None, now=now)


def _show(journal: Journal, tokens: int = 40, available: int = 1000, **given: str) -> bool:
    said = {"surface": "recall", "query": "return types", "session": "s", "now": NOW, **given}
    return journal.shown([("sem-1", tokens)], available=available, **said)


def _say(journal: Journal, *, helpful: bool, session: str = "", now: str = NOW) -> bool:
    return journal.feedback("sem-1", helpful, episode=None, session=session or None, now=now)


# -- what counts as a use ------------------------------------------------------------------------


def test_a_journal_that_is_not_there_says_nothing_and_is_not_made_by_asking(
    journal: Journal, folder: Path
) -> None:
    assert journal.strengths(NOW) == {}
    assert journal.uses("sem-1") == NONE
    assert journal.economics().recalls == 0
    assert not folder.parent.exists()


def test_an_opened_memory_has_the_strength_of_one_use(journal: Journal) -> None:
    assert _open(journal)
    assert journal.strengths(NOW) == {"sem-1": pytest.approx(1)}
    assert journal.uses("sem-1") == Uses(1, NOW, 0, 0)


def test_being_shown_is_not_a_use(journal: Journal) -> None:
    assert _show(journal)
    assert journal.strengths(NOW) == {}
    assert journal.uses("sem-1") == NONE


def test_unhelpful_is_no_use_but_is_counted(journal: Journal) -> None:
    _say(journal, helpful=False)
    assert journal.strengths(NOW) == {}
    assert journal.uses("sem-1") == Uses(0, "", 0, 1)


def test_the_last_word_on_a_memory_counts(journal: Journal) -> None:
    assert journal.unhelpful() == set()
    _say(journal, helpful=True)
    _say(journal, helpful=False)
    assert journal.unhelpful() == {"sem-1"}
    _open(journal)
    assert journal.unhelpful() == {"sem-1"}
    _say(journal, helpful=True)
    assert journal.unhelpful() == set()


def test_a_session_uses_a_memory_once_however_often_it_says_so(journal: Journal) -> None:
    for _ in range(5):
        _open(journal, session="a")
        _say(journal, helpful=True, session="a")
    assert journal.uses("sem-1") == Uses(1, NOW, 1, 0)
    _open(journal, session="b")
    assert journal.uses("sem-1").times == 2


def test_without_a_session_a_day_counts_once(journal: Journal) -> None:
    for hours in (0, 1, 24, 25, 48):
        _open(journal, now=at(hours=hours))
    assert journal.uses("sem-1") == Uses(3, at(hours=48), 0, 0)


def test_a_session_that_goes_on_for_more_than_a_week_uses_a_memory_anew(journal: Journal) -> None:
    for days in (0, 6, 8):
        _open(journal, session="a", now=at(days=days))
    assert journal.uses("sem-1") == Uses(2, at(days=8), 0, 0)


# -- strength ------------------------------------------------------------------------------------


def test_strength_is_halved_every_thirty_days(journal: Journal) -> None:
    _open(journal)
    assert journal.strengths(at(days=30))["sem-1"] == pytest.approx(0.5)
    assert journal.strengths(at(days=60))["sem-1"] == pytest.approx(0.25)


def test_strengths_of_some_memories_only(journal: Journal) -> None:
    _open(journal, "sem-1")
    _open(journal, "sem-2")
    assert list(journal.strengths(NOW, ["sem-2", "sem-3"])) == ["sem-2"]


@given(st.lists(st.floats(0, 4000), max_size=12), st.floats(4000, 8000))
def test_strength_is_the_sum_of_faded_uses(days: list[float], asked: float) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder, "journal"))
        for number, day in enumerate(days):
            _open(journal, session=f"s{number}", now=at(days=day))
        found = journal.strengths(at(days=asked)).get("sem-1", 0.0)
    assert found == pytest.approx(sum(0.5 ** ((asked - day) / 30) for day in days), rel=1e-4)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 900)), min_size=1, max_size=20))
def test_the_order_of_memories_does_not_depend_on_when_one_asks(
    uses: list[tuple[str, float]],
) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder, "journal"))
        for number, (name, day) in enumerate(uses):
            _open(journal, name, session=f"s{number}", now=at(days=day))
        soon, late = (journal.strengths(at(days=days)) for days in (900, 2000))
    order = sorted(soon, key=soon.__getitem__)
    assert all(late[a] <= late[b] * (1 + 1e-9) for a, b in pairwise(order))


def test_no_date_overflows(journal: Journal) -> None:
    _open(journal, "sem-1", now="9999-12-31T23:59:59Z")
    _open(journal, "sem-2", now="0001-01-01T00:00:00Z")
    assert journal.strengths(NOW) == {"sem-1": 2.0**64, "sem-2": 0.0}


# -- folding -------------------------------------------------------------------------------------

ACTS = st.lists(
    st.tuples(
        st.sampled_from(["opened", "helpful", "unhelpful", "outcome"]),
        st.sampled_from(["sem-1", "sem-2", "ep-2026-01-06-001"]),
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 5 * 86_400),  # seconds since the act before
        st.integers(0, 43_200),  # how far this clock is behind
        st.booleans(),  # whether the journal is folded then
    ),
    max_size=30,
)


@given(ACTS)
@settings(deadline=None)
def test_a_folded_journal_says_exactly_what_it_said_before(acts: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as folder:
        plain, folded = (Journal(Path(folder, name)) for name in ("plain", "folded"))
        clock = 0
        for act, memory_id, session, later, behind, fold in acts:
            clock += int(str(later))
            now = at(seconds=clock - int(str(behind)))
            for journal in (plain, folded):
                _act(journal, str(act), str(memory_id), str(session), now)
            if fold:
                module._replace(folded._uses, module._folded_uses, now)
            folded.strengths(now)  # it reads on, the other reads all at once in the end
        end = at(seconds=clock)
        assert folded.strengths(end) == plain.strengths(end)
        assert folded.economics() == plain.economics()
        for memory_id in ("sem-1", "sem-2", "ep-2026-01-06-001"):
            assert folded.uses(memory_id) == plain.uses(memory_id)


def _act(journal: Journal, act: str, memory_id: str, session: str, now: str) -> None:
    if act == "opened":
        assert journal.opened(memory_id, 7, session=session, now=now)
    elif act == "outcome":
        assert journal.outcome(session or memory_id, "success", now=now)
    else:
        helpful = act == "helpful"
        assert journal.feedback(memory_id, helpful, episode=None, session=session, now=now)


@pytest.mark.parametrize(("folded", "after"), [(150, 160), (180, 167)])  # hours
def test_a_folded_journal_knows_the_sessions_of_the_week_even_by_a_slow_clock(
    journal: Journal, folded: int, after: int
) -> None:
    _open(journal, session="a")
    module._replace(journal._uses, module._folded_uses, at(hours=folded))
    _open(journal, session="a", now=at(hours=after))
    assert journal.uses("sem-1").times == 1


def test_a_folded_journal_forgets_the_sessions_of_last_month(
    journal: Journal, folder: Path
) -> None:
    _open(journal, session="a long name")
    module._replace(journal._uses, module._folded_uses, at(days=31))
    assert b"a long name" not in (folder / "uses.jsonl").read_bytes()


def test_a_long_journal_is_folded_by_itself_and_not_at_every_line(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_USES_BYTES", 5_000)
    foldings = set()
    for number in range(400):
        _open(journal, f"sem-{number % 100}", session=f"s{number}")
        inode = (folder / "uses.jsonl").stat().st_ino
        first = (folder / "uses.jsonl").read_bytes().partition(b"\n")[0]
        foldings.add((inode, first))
    assert b"folded" in first
    assert 3 <= len(foldings) <= 8  # a hundred records take more than the limit by themselves
    assert sum(journal.uses(f"sem-{n}").times for n in range(100)) == 400
    assert journal.economics().opens == 400


def test_folding_what_was_shown_changes_no_sum(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Journal(folder.parent / "other")
    for number in range(60):
        _show(other, tokens=number, available=1000 + number, now=at(hours=number))
    monkeypatch.setattr(module, "_SHOWN_BYTES", 2_000)
    for number in range(60):
        _show(journal, tokens=number, available=1000 + number, now=at(hours=number))
    assert (folder / "shown.jsonl").stat().st_size < 3_000
    assert journal.economics() == other.economics()
    assert journal.economics(at(days=1)) == other.economics(at(days=1))


OPENER = """
import sys
from pathlib import Path
from loki_memory import journal as module
module._USES_BYTES, module._WAIT_SECONDS = 4_000, 60.0
mine = module.Journal(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
said = [
    mine.opened(f"sem-{n % 7}", 3, session=f"{sys.argv[2]}-{n}", now="2026-01-06T10:30:00Z")
    for n in range(int(sys.argv[3]))
]
print(sum(said), flush=True)
"""


def test_no_line_of_six_processes_is_lost_while_the_file_is_folded_again_and_again(
    journal: Journal, folder: Path
) -> None:
    def start(number: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", OPENER, str(folder), str(number), "120"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    openers = [start(number) for number in range(6)]
    try:
        for opener in openers:
            assert opener.stdout is not None
            assert opener.stdout.readline() == "ready\n"
        said = []
        for opener in openers:
            assert opener.stdin is not None
            opener.stdin.write("go\n")
            opener.stdin.flush()
        said = [opener.communicate() for opener in openers]
    finally:
        for opener in openers:
            opener.kill()
            opener.wait()
    assert said == [("120\n", "")] * 6
    assert b'"folded"' in (folder / "uses.jsonl").read_bytes()[:100]
    assert journal.economics().opens == 720
    assert sum(journal.uses(f"sem-{n}").times for n in range(7)) == 720
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "uses.jsonl"]


# -- the last lines ------------------------------------------------------------------------------


def test_the_last_lines_are_what_was_shown_then_what_was_used(journal: Journal) -> None:
    assert journal.recent() == []
    _open(journal, session="s")
    _show(journal)
    assert [line["act"] for line in journal.recent()] == ["shown", "opened"]


def test_of_a_long_journal_only_whole_lines_of_its_end_are_read(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        _open(journal, f"sem-{number}")
    monkeypatch.setattr(module, "_TAIL_BYTES", 250)
    names = [line["id"] for line in journal.recent()]
    assert names == ["sem-48", "sem-49"]


def test_a_journal_that_cannot_be_read_is_not_taken_for_an_empty_one(
    journal: Journal, folder: Path, tmp_path: Path
) -> None:
    _open(journal)
    os.symlink(tmp_path / "elsewhere", folder / "shown.jsonl")
    with pytest.raises(OSError, match=r"shown\.jsonl"):
        journal.recent()


# -- mishaps -------------------------------------------------------------------------------------


def test_a_torn_line_costs_only_itself(journal: Journal, folder: Path) -> None:
    _open(journal, "sem-1")
    with (folder / "uses.jsonl").open("ab") as file:
        file.write(b'{"act":"opened","id":"sem-2","at":"2026-')
    assert list(journal.strengths(NOW)) == ["sem-1"]
    _open(journal, "sem-3")
    assert list(journal.strengths(NOW)) == ["sem-1", "sem-3"]
    assert list(Journal(folder).strengths(NOW)) == ["sem-1", "sem-3"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"\xff\xfe\x00",
        b"[1, 2]",
        b"{}",
        b'{"act":"dance"}',
        b'{"act":["opened"]}',
        b'{"act":"opened","id":"sem-2","at":"yesterday","tokens":1,"session":""}',
        b'{"act":"opened","id":"sem-2","at":5,"tokens":1,"session":""}',
        b'{"act":"opened","id":"sem-2","at":"2026-01-06T10:30:00Z","tokens":"x","session":""}',
        b'{"act":"used","id":"sem-2","n":1,"log2w":"nan","last":"","helpful":0,"unhelpful":0}',
        b'{"act":"used","id":"a-2","n":1,"log2w":"nan","last":"","helpful":0,"unhelpful":0,"seen":{}}',
        b'{"act":"day","at":"2026-01-06","opens":[],"tokens":0,"outcomes":{}}',
        b'{"act":"shown","at":"2026-01-06","surface":"recall","offered":"many","available":1}',
        b'{"act":"folded","bytes":"many"}',
    ],
)
def test_foreign_lines_are_passed_over(journal: Journal, folder: Path, line: bytes) -> None:
    folder.mkdir(parents=True)
    for name in ("uses.jsonl", "shown.jsonl"):
        (folder / name).write_bytes(line + b"\n")
    assert _open(journal)
    assert _show(journal)
    assert list(journal.strengths(NOW)) == ["sem-1"]
    assert journal.economics()[:4] == (1, 1, 40, 10)


def test_where_nothing_can_be_written_every_verb_says_no(tmp_path: Path) -> None:
    (tmp_path / "local").write_text("a file in place of the folder")
    journal = Journal(tmp_path / "local" / "journal")
    assert not _open(journal)
    assert not _show(journal)
    assert not _say(journal, helpful=True)
    assert not journal.outcome("s", "success", now=NOW)
    assert journal.strengths(NOW) == {}
    assert journal.economics().recalls == 0


FULL = """
import resource, sys
from pathlib import Path
from loki_memory.journal import Journal
mine = Journal(Path(sys.argv[1]))
size = Path(sys.argv[1], "uses.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, size + 20))
print(mine.opened("sem-2", 5, session=None, now="2026-01-06T10:30:00Z"))
"""


def test_on_a_full_disk_no_half_line_stays_behind(journal: Journal, folder: Path) -> None:
    _open(journal)
    before = (folder / "uses.jsonl").read_bytes()
    command = [sys.executable, "-c", FULL, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert (folder / "uses.jsonl").read_bytes() == before


def test_a_lock_that_nobody_gives_up_is_not_waited_for(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _open(journal, "sem-1")
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0)
    with locked(folder / "lock", 0):
        assert not _open(journal, "sem-2")
        assert list(journal.strengths(NOW)) == ["sem-1"]
    assert _open(journal, "sem-2")


@pytest.mark.parametrize("name", ["journal", "journal/uses.jsonl"])
def test_links_are_not_followed(journal: Journal, folder: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "elsewhere"
    if name == "journal":
        target.mkdir()
        folder.parent.mkdir(parents=True)
    else:
        target.write_text("precious\n")
        folder.mkdir(parents=True)
    os.symlink(target, folder.parent / name)
    assert not _open(journal)
    assert list(target.iterdir()) == [] if target.is_dir() else target.read_text() == "precious\n"


def test_a_journal_that_is_deleted_or_replaced_is_read_anew(journal: Journal, folder: Path) -> None:
    _open(journal, "sem-1")
    assert list(journal.strengths(NOW)) == ["sem-1"]
    (folder / "uses.jsonl").unlink()
    assert journal.strengths(NOW) == {}
    _open(journal, "sem-2")
    assert list(journal.strengths(NOW)) == ["sem-2"]


# -- what is written -----------------------------------------------------------------------------


def test_secrets_do_not_reach_the_journal_and_queries_are_cut(
    journal: Journal, folder: Path
) -> None:
    secret = "ghp_" + "a1B2" * 10
    _show(journal, query="x" * 190 + " " + secret, session=secret)
    journal.feedback("sem-1", helpful=True, episode=secret, session=secret, now=NOW)
    journal.outcome(secret, "success", now=NOW)
    written = (folder / "shown.jsonl").read_text() + (folder / "uses.jsonl").read_text()
    assert "ghp_" not in written
    assert len(json.loads(written.splitlines()[0])["query"]) == 200


def test_text_that_is_no_unicode_is_written_all_the_same(journal: Journal) -> None:
    assert _show(journal, query="half a pair \ud83d")


# -- economics -----------------------------------------------------------------------------------


def test_economics_count_what_was_sent_on_each_occasion(journal: Journal) -> None:
    _show(journal, tokens=40)
    _show(journal, tokens=60)
    _show(journal, tokens=300, surface="hook:SessionStart")
    _open(journal)
    found = journal.economics()
    assert found[:4] == (3, 1, 400, 10)
    assert found.sent == [Sent("hook:SessionStart", 1, 300), Sent("recall", 2, 100)]
    assert (found.ratio, found.advice) == (0.025, [])


def test_economics_since_a_day(journal: Journal) -> None:
    for days in (0, 1, 2):
        _show(journal, now=at(days=days))
        _open(journal, now=at(days=days))
        journal.outcome("s", "failure", now=at(days=days))
    found = journal.economics("2026-01-07")
    assert (found.recalls, found.opens, found.outcomes) == (2, 2, {"failure": 2})
    assert journal.economics().outcomes == {"failure": 3}


@pytest.mark.parametrize(
    ("tokens", "bodies", "surface", "words"),
    [
        (10, [], "recall", []),
        (10, [1, 1, 1, 1], "recall", ["More than 3"]),
        (300, [], "recall", ["over 200 tokens"]),
        (300, [], "continuity", []),
    ],
)
def test_advice_is_given_where_the_numbers_support_it(
    journal: Journal, tokens: int, bodies: list[int], surface: str, words: list[str]
) -> None:
    for _ in range(10):
        assert journal.economics().advice == []  # nine recalls are no habit
        _show(journal, tokens=tokens, surface=surface)
        for body in bodies:
            journal.opened("sem-1", body, session=None, now=NOW)
    advice = journal.economics().advice
    assert len(advice) == len(words)
    assert all(word in sentence for word, sentence in zip(words, advice, strict=True))


def test_a_recall_that_reads_the_journal_imports_nothing_heavy() -> None:
    script = "import sys, loki_memory.journal; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"pydantic", "numpy", "jinja2", "click", "loki_memory.files.redaction"}
    assert not heavy & set(loaded)
