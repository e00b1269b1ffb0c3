"""When two texts are one value: spelling does not matter, meaning does."""

from __future__ import annotations

import pytest

from loki_memory.models import tombstone_id
from loki_memory.models.text import nfc, normal, visible

SAME = [
    ("We deploy on Fridays", "we DEPLOY on fridays"),
    ("We deploy on Fridays", "  We\tdeploy\n on   Fridays  "),
    ("We deploy on Fridays", "We deploy on Fridays."),
    ("We deploy on Fridays", "We deploy on Fridays!"),
    ("We deploy on Fridays", "We\u00a0deploy\u2003on\u3000Fridays"),
    ("We deploy on Fridays", "We de\u200bploy on Fri\u00addays"),
    ("We deploy on Fridays", "\ufeffWe deploy on Fridays\u200e"),
    ("We deploy on Fridays", "We deploy\u2060 on\u200d Fridays"),
    ("We deploy on Fridays", "We deploy \u202eon\u202c Fridays"),
    ("We deploy on Fridays", "W\u0435 d\u0435pl\u043ey \u043en Frid\u0430ys"),  # Cyrillic
    ("We deploy on Fridays", "We depl\u03bfy \u03bfn Frid\u03b1ys"),  # Greek
    ("We deploy on Fridays", "Ｗｅ ｄｅｐｌｏｙ ｏｎ Ｆｒｉｄａｙｓ"),  # noqa: RUF001
    ("We deploy on Fridays", "𝐖𝐞 𝐝𝐞𝐩𝐥𝐨𝐲 𝐨𝐧 𝐅𝐫𝐢𝐝𝐚𝐲𝐬"),  # noqa: RUF001
    ("SCOPE", "\u0405\u0421\u041e\u0420\u0415"),  # Cyrillic capitals
    ("fix the file", "\ufb01x the \ufb01le"),  # a ligature
    ("Straße", "STRASSE"),
    ("Café", "Cafe\u0301"),
    ("state-of-the-art", "state\u2013of\u2014the\u2212art"),
    ("don't", "don\u2019t"),
    ('say "no"', "say \u201cno\u201d"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spelling_makes_no_other_value(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_tombstone_keeps_every_spelling_out(one: str, other: str) -> None:
    assert tombstone_id(one) == tombstone_id(other)


@pytest.mark.parametrize("text", [text for pair in SAME for text in pair])
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    assert normal(normal(text)) == normal(text)


DIFFERENT = [
    ("We deploy on Fridays", "We deploy on Mondays"),
    ("We deploy on Fridays", "We deploy on Fridays?"),
    ("Use tabs", "Use no tabs"),
    ("port 80", "port 8080"),
    ("version 1.10", "version 11.0"),
    ("a.b", "ab"),
    ("foo_bar", "foobar"),
    ("timeout -1", "timeout 1"),
    ("x < y", "x > y"),
    ("a+b", "a-b"),
    ("no where", "nowhere"),
    ("使う", "使わない"),
    ("Тесты нужны", "Тесты не нужны"),
    ("שלום", "עולם"),
    ("", "x"),
    ("🎉", "🔥"),
    ("C", "C++"),
    ("C", "C#"),
    (".env is ignored", "env is ignored"),
    ("!important is used", "important is used"),
    ("はか", "はが"),
    ("パン", "ハン"),
    ("ขาว", "ข้าว"),
    ("má", "mà"),
    ("कल", "कुल"),
    ("мой тест", "мои тест"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_values_stay_different(one: str, other: str) -> None:
    assert normal(one) != normal(other)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b", "...", ".!;,"])
def test_nothing_is_the_empty_value(text: str) -> None:
    assert normal(text) == ""


def test_a_long_run_of_marks_is_broken_and_nothing_of_it_is_lost() -> None:
    """Sorting the marks of one letter takes quadratic time: this text would take an hour."""
    text = "a" + "\u0301\u0316" * 300_000 + " and \u00e9\u0301"
    composed = nfc(text)
    assert nfc(composed) == composed
    decomposed = sum(2 if mark == "\u00e1" else 1 for mark in composed if mark != "\u034f")
    assert decomposed == len(text)
    assert normal(text) == normal(composed)
    assert visible("e\u0301" + "\u2500" * 80) == "\u00e9" + "\u2500" * 80
