"""Queries in other languages, translated into English word by word.

Most tools are described in English, and the models of the package read nothing else. So "Lösch
diesen Kommentar" becomes "delete this comment" before the search. This is a lookup in a dictionary
of words that requests use: it knows no grammar, and a word that is not in it stays as it is.

    query -> plainly English? ---------------------------> None, the dictionary is not even loaded
          -> tokens -> more foreign words than English? -> None
                    -> the language that knows most -----> English words, in the same order

Quoted text, identifiers, paths and addresses are not translated, and do not count as words of any
language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal, NamedTuple, cast

from pegboard.core.search.dictionary import PLAIN_ENGLISH, Language, fold, load_dictionary

_MAX_LENGTH = 1_000
_MAX_TOKENS = 64
_MAX_LANGUAGES = 3
_CJK = "\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(
    rf"""
    (?P<verbatim>
        "[^"]{{0,200}}" | `[^`]{{0,200}}` | «[^»]{{0,200}}» | „[^“”"]{{0,200}}[“”"]
        | “[^”]{{0,200}}” | 「[^」]{{0,200}}」 | 『[^』]{{0,200}}』
        | [^\s{_CJK}]{{0,100}}[@/\\][^\s{_CJK}]*         # addresses and paths
        | [^\W_{_CJK}]{{0,100}}(?:[._][A-Za-z0-9]+)+      # snake_case, names with dots
        | [a-z]+[A-Z][A-Za-z0-9]*                         # camelCase
        | [A-Za-z]+-\d+                                   # keys such as WEB-3
    )
    | (?P<unspaced>[{_CJK}]+)
    | (?P<word>[^\W_{_CJK}]+)
    | (?P<mark>[,;.!?、。])
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W_]+")
_KANA = re.compile("[\u3040-\u30ff]")
_HIRAGANA = re.compile("[\u3040-\u309f]")
_MARKS = {"、": ",", "。": "."}
_SPACE_BEFORE_MARK = re.compile(r" (?=[,;.!?])")
_NOUNS_CAPITALIZED = frozenset({"de"})
_VERB_LAST = frozenset({"de", "nl", "ja"})
_CLAUSE_STARTS = frozenset({"and", "or", "but", "then", "please", "for"})


class Translation(NamedTuple):
    """A query in English, and the code of the language that it was in."""

    text: str
    language: str


def translate(query: str) -> Translation | None:
    """The query in English; `None` when it is English already, or in no known language."""
    query = query[:_MAX_LENGTH]
    words = query.lower().split()
    # At least a quarter of the words are English and of no other language.
    if 4 * sum(word in PLAIN_ENGLISH for word in words) >= len(words):
        return None
    # A quick check that ends here for most other English queries: no word is foreign.
    if query.isascii():
        dictionary = load_dictionary()
        if not any(
            word in dictionary.languages_of and word not in dictionary.english
            for word in _WORD.findall(query.lower())
        ):
            return None
    tokens = _tokenize(query)
    best, most = None, 0
    for language in _find_languages(tokens):
        text, known = _gloss(tokens, language)
        if known > most:
            best, most = Translation(text, language.code), known
    return best


_TokenKind = Literal["verbatim", "unspaced", "word", "mark"]


class _Token(NamedTuple):
    text: str
    key: str
    """The text as the dictionary spells it."""
    kind: _TokenKind
    is_capitalized: bool
    """Whether it has a capital letter although it does not begin a sentence."""


def _tokenize(query: str) -> list[_Token]:
    tokens: list[_Token] = []
    begins = True
    for match in islice(_TOKEN.finditer(query), _MAX_TOKENS):
        text, kind = match[0], cast(_TokenKind, match.lastgroup)
        tokens.append(_Token(text, fold(text), kind, text.istitle() and not begins))
        begins = kind == "mark" and text not in ",;"
    return tokens


def _find_languages(tokens: Sequence[_Token]) -> list[Language]:
    """The languages that the query may be in, the likeliest first."""
    words = [token.key for token in tokens if token.kind == "word"]
    names = {token.key for token in tokens if token.is_capitalized}
    unspaced = "".join(token.text for token in tokens if token.kind == "unspaced")
    if unspaced:
        language = load_dictionary().languages["ja" if _KANA.search(unspaced) else "zh"]
        return [language] if _is_mostly_known(unspaced, words, language) else []
    dictionary = load_dictionary()
    english = {word for word in words if dictionary.is_english(word)}
    ranked: list[tuple[int, int, str]] = []
    for code in {code for word in words for code in dictionary.languages_of.get(word, ())}:
        known = [word for word in words if word in dictionary.languages[code].words]
        ignored = english if code in _NOUNS_CAPITALIZED else english | names
        foreign = sum(word not in ignored for word in known)
        others = len(words) - len(known)
        # In a longer query, a single word may be a name, or a word that we do not know is English.
        is_enough = others <= 1 if foreign == 1 else others <= 2 * foreign
        if is_enough and foreign > len(english.difference(known)):
            function_words = dictionary.languages[code].function_words.intersection(known)
            ranked.append((foreign + len(function_words), len(known), code))
    ranked.sort(reverse=True)
    return [dictionary.languages[code] for *_, code in ranked[:_MAX_LANGUAGES]]


def _is_mostly_known(unspaced: str, words: Sequence[str], language: Language) -> bool:
    """Whether a translation of Chinese or Japanese covers at least half of the query.

    Characters that are not in the dictionary are lost, while words between spaces are kept.
    """
    found = language.split_unspaced(unspaced)
    content = [word for word in found if word not in language.function_words]
    # Hiragana is mostly endings and particles.
    size, found_size, content_size = (
        len(_HIRAGANA.sub("", text)) for text in (unspaced, "".join(found), "".join(content))
    )
    english = sum(map(load_dictionary().is_english, words))
    return content_size >= size - found_size and len(found) > english


def _gloss(tokens: Sequence[_Token], language: Language) -> tuple[str, int]:
    """The tokens in English, and how many words are known; 0 when those are function words."""
    clauses: list[list[str]] = [[]]
    used: set[int] = set()
    known, has_content = 0, False
    for at, token in enumerate(tokens):
        if at in used:
            continue
        if token.kind == "mark":  # kept, since a query may be a list or several sentences
            clauses += [[_MARKS.get(token.text, token.text)], []]
        elif token.kind == "unspaced":
            words = language.split_unspaced(token.text)
            clauses[-1] += [language.words[word] for word in words]
            known += len(words)
            has_content |= not language.function_words.issuperset(words)
        elif token.kind == "word" and (found := _look_up(tokens, at, language)) is not None:
            meaning, positions = found
            clauses[-1].append(meaning)
            used.update(positions)
            known += len(positions)
            has_content |= len(positions) > 1 or token.key not in language.function_words
        elif token.kind == "verbatim" or token.key.isascii():
            clauses[-1].append(token.text)
    if language.code in _VERB_LAST:
        for clause in filter(None, clauses):
            if clause[-1] in language.verbs and clause[0] not in language.verbs:
                clause.insert(0, clause.pop())  # "die Aufgabe löschen": English has the verb first
    text = " ".join(" ".join(clause) for clause in clauses if clause)
    return _SPACE_BEFORE_MARK.sub("", text), known if has_content else 0


def _look_up(
    tokens: Sequence[_Token], at: int, language: Language
) -> tuple[str, Sequence[int]] | None:
    """The meaning of the word at a position, and the positions of all words that it takes in."""
    phrase = language.find_phrase([token.key for token in tokens[at : at + 4]])
    if phrase is not None:
        meaning, width = phrase
        return meaning, range(at, at + width)
    token = tokens[at]
    particles = language.find_particles(token.key)
    for later in range(len(tokens) - 1, at, -1) if particles else ():
        meaning = particles.get(tokens[later].key)
        if meaning is None:
            continue
        # A word that may be a preposition must end its clause, as the particle of a verb does.
        after = tokens[later + 1] if later + 1 < len(tokens) else None
        if (
            after is None
            or tokens[later].key not in language.words
            or after.kind == "mark"
            or language.words.get(after.key) in _CLAUSE_STARTS
        ):
            return meaning, (at, later)
    meaning = language.words.get(token.text.lower())  # accents tell words apart: "e" and "é"
    if token.is_capitalized and language.code not in _NOUNS_CAPITALIZED:
        if token.key in language.function_words:
            return None  # a name, such as "Sara"
    elif meaning is None:
        meaning = language.find_meaning(token.key)
    return None if meaning is None else (meaning, (at,))
