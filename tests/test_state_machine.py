"""Random sequences of everything that happens to a workspace, against a model of its files.

The model is what must stand in each record file. Each change says which files it may touch; all
others, readable or not, must keep their bytes. What is written carries a word of its own, so that
"nothing is lost" is "the word is in some file". After a sync, the index equals a rebuilt one.

LOKI_TEST_LONG=1 runs twenty times as many examples, different ones each time.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from processes import LONG, crash, rebuilt_digest, record_files

from loki_memory import Fact, Workspace
from loki_memory.errors import InvalidRecord, NotFound, RejectedValue
from loki_memory.files import transaction
from loki_memory.files.codec import decode, encode
from loki_memory.files.layout import place
from loki_memory.models import KINDS, MODELS, RELATIONS, Kind, parse

PICKS = st.integers(0, 1000)  # which of the records or files there are
TEXTS = st.sampled_from(["We deploy on Fridays", "we  deploy on fridays.", "Größe zählt 🎉", "x"])
INVALID = st.sampled_from(
    [b"", b"{", b"[]", b'{"statement": 5}', b"<<<<<<< ours\n", b"\xff\xfe", b'{"id": "../x"}']
)
VIEWS = st.sampled_from(["facts", "patterns"])
FIELD = {"facts": "statement", "patterns": "pattern"}
HAND_FOLDERS = ("semantic/facts/", "semantic/patterns/", "episodic/", "skills/", "semantic/links/")


class Memories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.ws = Workspace.init(self.root)
        self.files: dict[str, bytes] = {}  # the model
        self.decided: dict[str, bytes | None] = {}  # of crashed changes, not yet carried out
        self.in_views: dict[str, str] = {}  # words that were written into views, and the view
        self.away: list[tuple[str, str]] = []  # ids that were taken out, and where they are kept
        self.number = 0

    @initialize()
    def begin(self) -> None:
        """One record always stays, because all of them gone is refused as an accident.

        A person said it: it does not go with what it is linked to.
        """
        Workspace.open(self.root, origin="owner").remember("The anchor")
        self.files = record_files(self.ws)
        self.ws.sync()

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:
            self.sync()
        self.ws.close()
        shutil.rmtree(self.root)

    # -- the model ---------------------------------------------------------------------------

    def word(self) -> str:
        self.number += 1
        return f"word{self.number}end"

    def ids(self, *kinds: str) -> list[str]:
        found = [m.id for m in self.ws.list(status="all") if m.kind in kinds]
        self.settle()  # a reader finishes what was decided
        return sorted(found)

    def hand_files(self) -> list[str]:
        """The files that somebody may edit by hand."""
        return [
            p
            for p, d in sorted(self.files.items())
            if p.startswith(HAND_FOLDERS) and b"anchor" not in d
        ]

    def changed_by(self, change: Callable[[], object], may: Callable[[str], bool]) -> bool:
        """Make a change through the library: it may touch some files, and finishes what waited.

        Returns whether it was made; a change that is refused must touch nothing.
        """
        refused = False
        try:
            change()
        except RejectedValue:
            assert any("semantic/rejected/" in path for path in record_files(self.ws))
            refused = True
        except InvalidRecord as error:  # its place is taken by a file that cannot be read
            with pytest.raises(InvalidRecord):
                decode(error.path, self.files[error.path])
            refused = True
        self.settle(may if not refused else lambda _: False)
        self.assert_views_taken_over()
        return not refused

    def settle(self, may: Callable[[str], bool] = lambda _: False) -> None:
        """Compare files and model, and accept the changes that were allowed."""
        there = record_files(self.ws)
        words = [word.encode() for word in self.in_views]
        free = {path for path, data in there.items() if any(word in data for word in words)}
        all_paths = there.keys() | self.files.keys() | self.decided.keys()
        free |= {path for path in all_paths if may(path)}
        for path in all_paths - free:
            was, now = self.files.get(path), there.get(path)
            carried_out = path in self.decided and now == self.decided[path]
            assert was == now or carried_out, f"{path} was {was!r} and is {now!r}"
        if not transaction.waiting(self.ws.layout):
            late = {p for p, data in self.decided.items() if p not in free and there.get(p) != data}
            assert not late
            self.decided = {}
        self.files = there

    def assert_views_taken_over(self) -> None:
        """What was written into a view is in a record, was forgotten, or is still there."""
        for word, view in self.in_views.items():
            written = word.encode()
            forgotten = self.ws.layout.local.rglob(".forgotten/*")
            assert (
                any(written in data for data in self.files.values())
                or written in self.view(view).read_bytes()
                or any(written in path.read_bytes() for path in forgotten if path.is_file())
            ), f"{word} is lost"
        self.in_views = {}

    def view(self, name: str) -> Path:
        return self.ws.layout.memory / "semantic" / f"{name}.json"

    # -- through the library -------------------------------------------------------------------

    @rule(text=TEXTS, scope=st.sampled_from(["project", "local"]))
    def remember(self, text: str, scope: str) -> None:
        self.written_by(lambda word: self.ws.remember(text, category=word, scope=scope))

    @rule()
    def record(self) -> None:
        self.written_by(lambda word: self.ws.record({"goal": word}))

    @rule(pick=PICKS)
    def correct(self, pick: int) -> None:
        ids = self.ids("fact", "pattern")
        self.written_by(lambda word: self.ws.correct(ids[pick % len(ids)], category=word))

    def written_by(self, write: Callable[[str], object]) -> None:
        """Write a new word: once that is acknowledged, the word is in a file."""
        word = self.word()
        if self.changed_by(lambda: write(word), self._holds(word)):
            assert any(word.encode() in data for data in self.files.values())

    def _holds(self, word: str) -> Callable[[str], bool]:
        """Only files that hold the new word may have changed."""
        return lambda path: word.encode() in record_files(self.ws).get(path, b"")

    @rule(pick=PICKS, pinned=st.booleans())
    def pin(self, pick: int, pinned: bool) -> None:
        ids = self.ids("fact", "pattern", "episode")
        memory_id = ids[pick % len(ids)]
        if self.changed_by(lambda: self.ws.pin(memory_id, pinned), self._names(memory_id)):
            assert self.ws.get(memory_id).document()["pinned"] == pinned

    def _names(self, *ids: str) -> Callable[[str], bool]:
        """Only files that name one of these, or did, may have changed."""
        before = dict(self.files)
        where = {str(self.ws.browse.where(memory_id)) for memory_id in ids}

        def may(path: str) -> bool:
            data = before.get(path, b"") + record_files(self.ws).get(path, b"")
            return str(self.ws.layout.resolve(path)) in where or any(
                memory_id.encode() in data for memory_id in ids
            )

        return may

    @rule(a=PICKS, b=PICKS, relation=st.sampled_from(RELATIONS[:2]))
    def link(self, a: int, b: int, relation: str) -> None:
        ids = self.ids("fact", "pattern", "episode")
        one, other = ids[a % len(ids)], ids[b % len(ids)]
        if one == other:
            return
        if self.changed_by(lambda: self.ws.link(one, relation, other), lambda p: "links/" in p):
            assert (relation, other) in self.ws.browse.edges(one)[0]

    def removable(self, *kinds: str) -> list[str]:
        return [i for i in self.ids(*kinds) if self.ws.get(i).title() != "The anchor"]

    @precondition(lambda self: self.removable("fact", "pattern"))
    @rule(pick=PICKS)
    def reject(self, pick: int) -> None:
        ids = self.removable("fact", "pattern")
        memory_id = ids[pick % len(ids)]
        names = self._names(memory_id)
        if self.changed_by(
            lambda: self.ws.reject(memory_id, "no"),
            lambda path: "semantic/rejected/" in path or names(path),
        ):
            assert memory_id not in [memory.id for memory in self.ws.list()]
            self.away.append((memory_id, ""))

    @precondition(lambda self: self.removable("fact", "pattern", "episode"))
    @rule(pick=PICKS, way=st.sampled_from(["forget", "archive"]))
    def take_out(self, pick: int, way: str) -> None:
        ids = self.removable("fact", "pattern", "episode")
        memory_id = ids[pick % len(ids)]
        names, before = self._names(memory_id), dict(self.files)
        gone, kept = [memory_id], []

        def act() -> None:
            if way == "archive":
                kept.append(self.ws.archive(memory_id))
            else:
                gone.extend(self.ws.forget(memory_id).removed)
                kept.append(f"local/.forgotten/{memory_id}.json")

        def may(path: str) -> bool:
            return names(path) or any(i.encode() in before.get(path, b"") for i in gone)

        if self.changed_by(act, may):
            assert self.ws.layout.resolve(kept[0]).exists()
            self.away.append((memory_id, kept[0]))

    @precondition(lambda self: self.away)
    @rule(pick=PICKS)
    def restore(self, pick: int) -> None:
        """Undo one of these: what is there meanwhile keeps its place."""
        memory_id, kept = self.away.pop(pick % len(self.away))
        known, before = self.ids(*KINDS), record_files(self.ws)
        gone = not kept or not self.ws.layout.resolve(kept).exists()
        try:
            self.ws.restore(memory_id)
        except NotFound:
            assert gone or memory_id in known  # somebody deleted it, or it came back by itself
        there = record_files(self.ws)
        self.settle(
            lambda path: (
                path not in before
                or "semantic/rejected/" in path
                or memory_id.encode() in there.get(path, b"")
            )
        )
        self.assert_views_taken_over()
        for path in before.keys() & there.keys():
            assert _id_in(path, before[path]) == _id_in(path, there[path])
        assert all("semantic/rejected/" in path for path in before.keys() - there.keys())

    # -- by hand -------------------------------------------------------------------------------

    def write_by_hand(self, path: str, data: bytes) -> None:
        where = self.ws.layout.resolve(path)
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(data)
        self.files[path] = data
        self.decided.pop(path, None)

    @rule(given_id=st.sampled_from(["", "fact-hand1", "fact-hand2"]), style=st.booleans())
    def create_file(self, given_id: str, style: bool) -> None:
        word = self.word()
        document = {"statement": f"By hand {word}", "unknown": {"b": 1, "a": [word]}}
        if given_id:
            document["id"] = given_id
        data = json.dumps(document, indent=3 if style else None).encode()
        self.write_by_hand(f"semantic/facts/{word}.json", data)

    @rule()
    def create_skill(self) -> None:
        word = self.word()
        self.write_by_hand(f"skills/{word}.md", f"# How to {word}\n".encode())

    @rule(pick=PICKS, valid=st.booleans(), data=INVALID)
    def overwrite(self, pick: int, valid: bool, data: bytes) -> None:
        files = self.hand_files()
        if files:
            path = files[pick % len(files)]
            good = json.dumps({"statement": self.word(), "pattern": self.word(), "goal": "x"})
            self.write_by_hand(path, good.encode() if valid else data)

    @rule(pick=PICKS)
    def rename(self, pick: int) -> None:
        files = self.hand_files()
        if files:
            path = files[pick % len(files)]
            self._copy(path)
            self._delete(path)

    @rule(pick=PICKS)
    def copy(self, pick: int) -> None:
        files = self.hand_files()
        if files:
            self._copy(files[pick % len(files)])

    @rule(pick=PICKS)
    def delete(self, pick: int) -> None:
        files = self.hand_files()
        if files:
            self._delete(files[pick % len(files)])

    def _copy(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        # Before and after the first name in order: either may come to hold the id.
        new = f"{folder}/{'0' if self.number % 2 else 'z'}{self.word()}{Path(name).suffix}"
        self.write_by_hand(new, self.files[path])

    def _delete(self, path: str) -> None:
        self.ws.layout.resolve(path).unlink()
        del self.files[path]
        self.decided.pop(path, None)

    # -- views -----------------------------------------------------------------------------------

    def edit_view(self, name: str, edit: Callable[[list[dict[str, Any]]], object]) -> None:
        view = self.view(name)
        document: dict[str, Any] = {name: []}
        with suppress(FileNotFoundError, ValueError):
            document = json.loads(view.read_bytes())
        edit(document[name])
        self._replace_view(view, json.dumps(document).encode())

    def _replace_view(self, view: Path, data: bytes) -> None:
        """Beside and renamed, as careful editors do."""
        beside = view.with_name(".edited")
        beside.write_bytes(data)
        os.replace(beside, view)

    @rule(name=VIEWS)
    def add_to_view(self, name: str) -> None:
        word = self.word()
        self.edit_view(name, lambda entries: entries.append({FIELD[name]: f"In a view {word}"}))
        self.in_views[word] = name

    @rule(name=VIEWS, pick=PICKS)
    def change_in_view(self, name: str, pick: int) -> None:
        word = self.word()

        def change(entries: list[dict[str, Any]]) -> None:
            if entries:
                entry = entries[pick % len(entries)]
                self.in_views.pop(entry.get("category", ""), None)
                entry["category"] = word
                self.in_views[word] = name

        self.edit_view(name, change)

    @rule(name=VIEWS, pick=PICKS)
    def drop_from_view(self, name: str, pick: int) -> None:
        """Never a deletion; only what was not yet taken over goes with it."""

        def drop(entries: list[dict[str, Any]]) -> None:
            if entries:
                dropped = json.dumps(entries.pop(pick % len(entries)))
                self._forget_words(name, lambda word: word in dropped)

        self.edit_view(name, drop)

    def _forget_words(self, name: str, which: Callable[[str], bool]) -> None:
        gone = [word for word, view in self.in_views.items() if view == name and which(word)]
        for word in gone:
            del self.in_views[word]

    @rule(name=VIEWS)
    def reformat_view(self, name: str) -> None:
        self.edit_view(name, lambda entries: entries.reverse())

    @rule(name=VIEWS, data=st.sampled_from([b"{", b'{"facts": 3, "patterns": 3}', b""]))
    def break_view(self, name: str, data: bytes) -> None:
        self._forget_words(name, lambda _: True)
        self._replace_view(self.view(name), data)
        self.ws.sync()
        self.settle()
        self.assert_views_taken_over()
        assert self.view(name).read_bytes() == data
        assert f"semantic/{name}.json" in [problem.path for problem in self.ws.care.problems()]
        self.view(name).unlink()

    # -- the machine -----------------------------------------------------------------------------

    @rule(renames=st.integers(0, 3))
    def crash_in_a_change(self, renames: int) -> None:
        """Two facts come and a third goes, and the process dies before a rename.

        The first rename decides: before it nothing has happened, after it all of it will.
        """
        with self.ws.store.change():
            pass  # as every writer does, finish or discard what the last one left
        self.settle()
        facts = [parse(Fact, {"statement": f"Crashed {self.word()}"}) for _ in range(2)]
        change: dict[str, bytes | None] = {place(fact): encode(fact) for fact in facts}
        victims = [path for path in self.hand_files() if path.startswith("semantic/facts/")]
        change.update(dict.fromkeys(victims[:1]))
        crash(self.ws, change, renames)
        if renames:
            self.decided = change
            there = record_files(self.ws)
            done = [path for path, data in change.items() if there.get(path) == data]
            for path in done:
                self.files.pop(path, None)
            self.files.update({path: there[path] for path in done if path in there})

    @rule(closed=st.booleans())
    def delete_cache(self, closed: bool) -> None:
        if closed:
            self.ws.close()
        shutil.rmtree(self.ws.layout.cache, ignore_errors=True)

    @rule()
    def open_again(self) -> None:
        self.ws.close()
        self.ws = Workspace.open(self.root)

    @rule()
    def read(self) -> None:
        """Reading changes nothing but what was decided before."""
        self.ws.list()
        self.ws.care.problems()
        self.ws.status()
        in_views, self.in_views = self.in_views, {}
        self.settle()
        self.in_views = in_views

    @rule()
    def sync(self) -> None:
        self.ws.sync()
        self.settle()
        assert not transaction.waiting(self.ws.layout)
        self.assert_views_taken_over()
        assert self.ws.index.digest() == rebuilt_digest(self.ws)
        self.assert_index_holds(self.files.items())

    def assert_index_holds(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Each file is in the index, or a Problem says why not; a private one may be shadowed.

        It is where the shared record has its id, as when a value is rejected in both scopes.
        """
        indexed = {row[0] for row in self.ws.index.ask("SELECT path FROM memories")}
        indexed |= {f"local/{path}" for path in indexed if not path.startswith("local/")}
        told = {problem.path for problem in self.ws.care.problems()}
        for path, data in files:
            try:
                decode(path, data)
            except InvalidRecord:
                assert path in told
                assert path not in indexed
            else:
                assert path in indexed | told


def _id_in(path: str, data: bytes) -> str:
    with suppress(InvalidRecord):
        return decode(path, data).id
    return ""


_ALWAYS = settings(
    deadline=None,
    derandomize=not LONG,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
Memories.TestCase.settings = settings(
    _ALWAYS, max_examples=1200 if LONG else 60, stateful_step_count=20
)
TestMemories = Memories.TestCase


# -- what it found, by itself ----------------------------------------------------------------------


def test_an_entry_that_was_changed_in_file_and_view_is_noted_once(ws: Workspace) -> None:
    memory_id = ws.remember("We deploy on Fridays").id
    ws.sync()
    ws.pin(memory_id)
    view = ws.layout.memory / "semantic" / "facts.json"
    view.write_text(view.read_text().replace('"statement"', '"category": "view", "statement"'))
    for _ in range(3):
        ws.sync()
    conflicts = ws.get(memory_id).document()["conflicts"]
    assert [entry["category"] for entry in conflicts] == ["view"]
    assert json.loads(view.read_bytes())["facts"][0]["pinned"]


def test_an_episode_without_a_time_is_dated_by_its_folder(ws: Workspace) -> None:
    folder = ws.layout.memory / "episodic" / "2026-01-06"
    folder.mkdir()
    (folder / "by-hand.json").write_text('{"id": "ep-1", "goal": "By hand"}')
    ws.sync()
    assert ws.get("ep-1").when() == "2026-01-06T00:00:00Z"


def test_both_of_two_files_with_one_id_are_shown_and_can_be_changed(ws: Workspace) -> None:
    folder = ws.layout.memory / "semantic" / "facts"
    for name in "ab":
        text = json.dumps({"id": "fact-1", "statement": f"Statement {name}"})
        (folder / f"{name}.json").write_text(text)
    assert sorted(memory.title() for memory in ws.list()) == ["Statement a", "Statement b"]
    assert [problem.path for problem in ws.care.problems()] == ["semantic/facts/b.json"]
    for memory in ws.list():
        ws.correct(memory.id, category="changed")
    assert [memory.document()["category"] for memory in ws.list()] == ["changed", "changed"]


def test_a_copy_of_a_file_is_a_problem_and_shown_once(ws: Workspace) -> None:
    path = ws.browse.where(ws.remember("We deploy on Fridays").id)
    path.with_name("copy.json").write_bytes(path.read_bytes())
    assert [memory.title() for memory in ws.list()] == ["We deploy on Fridays"]
    assert len(ws.care.problems()) == 1


# -- bytes and records ---------------------------------------------------------------------------

# Letters, marks that combine with the letter before them, forms that have another normal form,
# emoji with joiners, quotes and line ends of every kind; everything but NUL and lone surrogates.
CHARACTERS = st.one_of(
    st.sampled_from(
        "aé\u0301\u0308\u0338ﬁÅ한ᄀ\u1161\u05d0🎉👩\u200d💻\ufe0f\u2028\x85\r\n\t\"\\:#-'{}[]<>=&*!%@`"
    ),
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
)
ANY_TEXT = st.text(CHARACTERS, min_size=1, max_size=12).filter(str.strip)
NFC_TEXT = ANY_TEXT.map(lambda text: unicodedata.normalize("NFC", text))
MOMENTS = st.datetimes().map(lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0"))


def _unknown(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Fields that no model knows, of any JSON type, nested."""
    names = text.map(lambda name: f"x_{name}")
    whole = st.integers(-(2**53), 2**53)
    plain = st.none() | st.booleans() | whole | st.floats(-1e9, 1e9) | text
    nested = st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
        max_leaves=4,
    )
    return st.dictionaries(names, nested, max_size=2)


def _records(text: st.SearchStrategy[str]) -> dict[str, st.SearchStrategy[dict[str, Any]]]:
    """Documents of every kind; a skill's front matter is text only."""
    texts, score = st.lists(text, max_size=3), st.floats(0, 1)
    belief = {"category": text, "confidence": score, "tags": texts, "by": text, "at": MOMENTS}
    belief |= {"source_episodes": texts, "evidence": st.fixed_dictionaries({"for": texts})}
    belief |= {
        "links": st.lists(st.fixed_dictionaries({"to": text, "strength": score}), max_size=2)
    }
    episode = {"task_id": text, "agent": text, "tags": texts, "files_read": texts}
    error = st.fixed_dictionaries({"message": text, "resolution": text})
    episode |= {"errors_encountered": st.lists(error, max_size=2)}
    own = {
        "episode": ({"timestamp": MOMENTS, "goal": text}, episode),
        "pattern": ({"pattern": text}, {"conditions": texts, **belief}),
        "anti-pattern": ({"what_fails": text}, {"why": text, **belief}),
        "fact": ({"statement": text}, {"subject": text, **belief}),
        "link": ({"from": text, "to": text}, {"strength": score, "note": text}),
        "ledger": ({"agent_id": text}, {"current_task": text, "last_checkpoint": MOMENTS}),
        "handoff": ({"timestamp": MOMENTS}, {"from_agent": text, "note": text}),
        "learning": ({"timestamp": MOMENTS, "lesson": text}, {"error": text, "tags": texts}),
        "tombstone": ({"value": text}, {"why": text, "at": MOMENTS}),
    }
    kinds = {
        kind: st.builds(
            lambda known, rest: {**rest, **known},
            st.fixed_dictionaries(needed, optional=optional),
            _unknown(text),
        )
        for kind, (needed, optional) in own.items()
    }
    front = {
        "description": text,
        "license": text,
        "metadata": st.dictionaries(text, text, max_size=2),
    }
    start = st.sampled_from(["", "# ", "    ", "```\n"])
    body = st.builds(lambda mark, words: f"{mark}{words}".lstrip("\n").rstrip() + "\n", start, text)
    kinds["skill"] = st.fixed_dictionaries(
        {"name": st.just("a-skill"), "body": body}, optional=front
    )
    return kinds


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_read_as_it_was_written(kind: Kind) -> None:
    @settings(_ALWAYS, max_examples=5000 if LONG else 100)
    @given(_records(NFC_TEXT)[kind])
    def check(document: dict[str, Any]) -> None:
        if kind == "skill":
            document["body"] = document["body"].replace("\r", "\n").lstrip("\n")
        record = parse(MODELS[kind], document)
        assert decode(place(record), encode(record)) == record

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_canonical_bytes_stay_as_they_are(kind: Kind) -> None:
    """Whatever normal form or style it came in: written once, it is written the same for ever."""

    @settings(_ALWAYS, max_examples=5000 if LONG else 100)
    @given(_records(ANY_TEXT)[kind])
    def check(document: dict[str, Any]) -> None:
        record = parse(MODELS[kind], document)
        data = encode(record)
        again = decode(place(record), data)
        assert encode(again) == data
        assert data == unicodedata.normalize("NFC", data.decode()).encode()
        assert data.endswith(b"\n")

    check()
