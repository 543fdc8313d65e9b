"""Queries in other languages become English words; everything else stays as it is."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.search import SearchIndex, dictionary
from pegboard.core.search.dictionary import PLAIN_ENGLISH, load_dictionary
from pegboard.core.search.translation import translate
from pegboard.core.tools import Catalog, Tool

MakeTool = Callable[..., Tool]
TABLE = Path(dictionary.__file__).with_name("dictionary.txt")


def in_english(query: str) -> str:
    translation = translate(query)
    assert translation is not None
    return translation.text


@pytest.mark.parametrize(
    ("query", "language", "english"),
    [
        ("Lösch diesen Kommentar", "de", "delete this comment"),
        ("supprime ce commentaire", "fr", "delete this comment"),
        ("borra este comentario", "es", "delete this comment"),
        ("elimina questo commento", "it", "delete this comment"),
        ("apague este comentário", "pt", "delete this comment"),
        ("verwijder deze opmerking", "nl", "delete this comment"),
        ("удали этот комментарий", "ru", "delete this comment"),
        ("usuń ten komentarz", "pl", "delete this comment"),
        ("删除这个评论", "zh", "delete this comment"),
        ("このコメントを削除", "ja", "delete this comment"),
    ],
)
def test_a_request_is_translated_word_by_word(query: str, language: str, english: str) -> None:
    assert translate(query) == (english, language)


@pytest.mark.parametrize("query", ["Aufgabe löschen", "löschen", "Aufgaben", "wetter Berlin"])
def test_one_word_is_enough_in_a_short_query(query: str) -> None:
    assert translate(query) is not None


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("loesche die Aufgabe", "delete the task"),
        ("losche die Aufgabe", "delete the task"),
        ("creer une tache", "create a task"),
        ("muestrame las reuniones", "show the meeting"),
        ("apague a reuniao", "delete the meeting"),
    ],
)
def test_accents_are_optional(query: str, english: str) -> None:
    assert in_english(query) == english


def test_an_accent_that_is_typed_tells_words_apart() -> None:
    assert in_english("qual é o prazo") == "what is the deadline due date"
    assert in_english("o prazo e o projeto") == "the deadline due date and the project"


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("die Rechnungen der Kunden", "the invoice the customer"),
        ("les factures des clients", "the invoice of customer"),
        ("покажи задачи и проекты", "show issue and project"),
    ],
)
def test_inflected_words_are_found(query: str, english: str) -> None:
    assert in_english(query) == english


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("Zeig die Rechnungsnummer", "show the invoice number"),
        ("Projektmitglieder auflisten", "list project member"),
        ("toon de projectleden", "show the project member"),
        ("Zeig den Zahnarzttermin", "show the appointment event"),
    ],
)
def test_compounds_are_taken_apart(query: str, english: str) -> None:
    assert in_english(query) == english


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("Lade das Bild hoch", "upload the picture image"),
        ("Lade Ben ein", "invite Ben"),
        ("Lade ein Bild", "load a picture image"),
        ("Voeg een taak toe aan het project", "add a task on the project"),
    ],
)
def test_a_verb_and_its_particle_are_one(query: str, english: str) -> None:
    assert in_english(query) == english


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("mostrami le scadenze", "show the deadline due date"),
        ("envíale un mensaje", "send a message"),
        ("remarque a reunião", "reschedule postpone the meeting"),
    ],
)
def test_pronouns_and_spelling_changes_at_the_end_of_verbs_are_undone(
    query: str, english: str
) -> None:
    assert in_english(query) == english


def test_phrases_are_one_entry() -> None:
    assert in_english("correo electrónico de la base de datos") == "mail email of the database"


def test_the_verb_comes_first() -> None:
    assert in_english("die Aufgabe im Projekt löschen") == "delete the task in project"


@pytest.mark.parametrize(
    ("query", "english"),
    [
        (
            "Lösch die Aufgabe. Schick Anna eine Nachricht!",
            "delete the task. send Anna a message!",
        ),
        ("Aufgabe löschen, Datei hochladen", "delete task, upload file"),
        ("删除任务，上传文件。", "delete task, upload file."),
    ],
)
def test_sentences_and_lists_keep_their_punctuation(query: str, english: str) -> None:
    assert in_english(unicodedata.normalize("NFKC", query)) == english


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ('Such nach "offene Rechnungen" im Projekt', '"offene Rechnungen"'),
        ("Nutze list_issues und zeig die Aufgaben", "list_issues"),
        ("Öffne die Datei /home/anna/meine_datei.txt", "/home/anna/meine_datei.txt"),
        ("Schick die Rechnung an chef@firma.de", "chef@firma.de"),
        ("Ordne WEB-3 dem Projekt zu", "WEB-3"),
        ("Assegna il problema a Sara", "Sara"),
        ("Asigna la tarea a Marta", "Marta"),
        ("搜索“发票”的文件", "“发票”"),
    ],
)
def test_quotes_identifiers_and_names_stay(query: str, kept: str) -> None:
    assert kept in in_english(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "...",
        "42",
        "Berlin",
        "create_issue",
        "createIssue",
        "jira.getIssue",
        "delete this comment",
        "weather tomorrow",
        "status report",
        "information",
        "details info",
        "client service details",
        "list files on the server de la Cruz",
        "message the team about the Der Spiegel article",
        'create an issue titled "Fehler beim Löschen der Datei"',
        "create an issue 修复登录",
        "translate Guten Morgen to English",
        "book a table at La Casa de las Flores",
        "play Les Champs-Élysées",
        "Los Angeles weather",
        "schema definition in APISIX",
        "naïve café résumé",
    ],
)
def test_english_names_and_mixed_queries_stay_as_they_are(query: str) -> None:
    assert translate(query) is None


def test_a_text_that_is_mostly_unknown_characters_stays_as_it_is() -> None:
    assert translate("双鱼座本月运势") is None


def test_function_words_alone_are_not_worth_translating() -> None:
    assert translate("und der die das mit") is None


@given(st.text(max_size=200))
def test_any_text_is_accepted(text: str) -> None:
    translation = translate(text)
    assert translation is None or translation.text


@pytest.mark.parametrize("piece", ["„", '"', "!", "ß", "der ", "löschen", "削", "a.", "_", "-1"])
def test_long_input_costs_little(piece: str) -> None:
    load_dictionary()
    start = process_time()
    translate("Lösche die Datei " + piece * 4_000)
    assert process_time() - start < 0.1


def test_no_other_language_has_the_words_that_prove_english() -> None:
    assert PLAIN_ENGLISH.isdisjoint(load_dictionary().languages_of)


def test_every_row_of_the_table_fits_its_section() -> None:
    width = 0
    lines = TABLE.read_text("utf-8").splitlines()
    for line in (line for line in lines if not line.startswith("#")):
        cells = line.split("|")
        if line.startswith("= "):
            width = len(cells)
            assert cells[0].split()[1] in {"function", "verb", "noun"}
        assert len(cells) == width, line
        assert cells[0].isascii(), line
        assert any(cells[1:]), line
        assert cells[0].strip(), line


def test_the_table_stays_small_and_every_language_has_hundreds_of_words() -> None:
    assert TABLE.stat().st_size <= 200_000
    languages = load_dictionary().languages
    assert set(languages) == {"de", "fr", "es", "it", "pt", "nl", "ru", "pl", "zh", "ja"}
    assert all(len(language.words) >= 600 for language in languages.values())


def test_the_table_is_not_loaded_for_queries_that_are_plainly_english() -> None:
    program = """
from pegboard.core.search.dictionary import load_dictionary
from pegboard.core.search.translation import translate
assert translate("list the open issues of my project") is None
assert translate("search issues") is None
assert load_dictionary.cache_info().currsize == 0
assert translate("Aufgaben suchen") is not None
assert load_dictionary.cache_info().currsize == 1
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def office(make_tool: MakeTool) -> SearchIndex:
    return SearchIndex.build(
        Catalog(
            [
                make_tool("create_issue", description="File a new bug or task."),
                make_tool("delete_comment", description="Delete a comment from an issue."),
                make_tool("send_mail", description="Send a mail to a person.", category="mail"),
                make_tool("read_mail", description="Read a message.", category="mail"),
            ]
        )
    )


def test_a_tool_is_found_by_a_request_in_another_language(office: SearchIndex) -> None:
    best = office.search("Lösch diesen Kommentar")[0]
    assert best.tool.name == "delete_comment"
    assert best.why == ("name: delete, comment", "description: delete, comment")


def test_a_tool_that_is_named_in_such_a_request_comes_first(office: SearchIndex) -> None:
    best = office.search("Lösch den Kommentar mit send_mail")[0]
    assert (best.tool.name, best.score) == ("send_mail", 1.0)


def test_a_whole_group_can_be_requested(office: SearchIndex) -> None:
    found = office.search("alles über E-Mail")
    assert {match.tool.name for match in found} == {"send_mail", "read_mail"}


def test_every_need_in_a_list_is_covered(office: SearchIndex) -> None:
    found = office.search("Kommentar löschen, E-Mail senden", limit=2)
    assert {match.tool.name for match in found} == {"delete_comment", "send_mail"}


def test_tools_in_the_language_of_the_query_are_searched_in_it(make_tool: MakeTool) -> None:
    index = SearchIndex.build(
        Catalog(
            [
                make_tool("vorgang_anlegen", description="Legt einen neuen Vorgang an."),
                make_tool("kommentar_weg", description="Löscht einen Kommentar vom Vorgang."),
                make_tool("delete_remark", description="Delete a comment."),
            ]
        )
    )
    found = index.search("Löscht den Kommentar vom Vorgang")
    assert found[0].tool.name == "kommentar_weg"


def test_tools_that_are_not_visible_do_not_decide_how_a_query_is_read(
    make_tool: MakeTool,
) -> None:
    hidden = make_tool("geheim", description="Lösch diesen Kommentar")
    shown = make_tool("delete_comment", description="Delete a comment.")
    index = SearchIndex.build(Catalog([hidden, shown]))
    found = index.search("Lösch diesen Kommentar", allowed=lambda tool: tool is shown)
    assert [match.tool.name for match in found] == ["delete_comment"]
