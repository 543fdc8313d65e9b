"""Words of other languages and what they mean in English.

The table (`dictionary.txt`) lists words mostly in one form. Others are found by stemming, by
removing what stemmers leave (a pronoun at the end of a verb, a syllable inside a participle), and
in German and Dutch by splitting compounds: `Rechnungsnummer` is "invoice number". Accents are
optional everywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from pegboard.core.search.terms import STOP_WORDS, stemmer, word_set

_STEMMERS = {
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "ru": "russian",
    "pl": "polish",
}
_ENDINGS = {
    "de": {"t": "en", "st": "en"},
    "es": dict.fromkeys(("melo", "selo", "me", "te", "le", "lo", "la", "nos", "les", "los"), "")
    | {"que": "car", "gue": "gar", "ce": "zar"},
    "it": dict.fromkeys(("melo", "glielo", "mi", "ti", "ci", "lo", "la", "li", "le", "gli"), ""),
    "pt": {"que": "car", "gue": "gar"},
}
"""Endings that the stemmers leave, with their replacements.

Most are pronouns at the end of a verb, as in `mostrami` and `envíale`.
"""
_INFIXES = {"de": ("ge", "zu"), "nl": ("ge", "te")}
"""Syllables of participles and infinitives: `gebucht`, `anzulegen`."""
_COMPOUNDS = frozenset({"de", "nl"})
_LINKS = ("", "s", "n", "en", "es", "er", "e")
"""Letters between the parts of a compound: `Rechnung-s-nummer`."""
_MIN_PART = 3
_MIN_LAST_PART = 5  # of a compound whose first part is unknown
_MIN_FORM = 4
_MAX_WORD = 40
_MAX_PHRASE = 4

PLAIN_ENGLISH = (
    STOP_WORDS
    | word_set(
        """
        access add address already amount analysis analyze another around assign attach
        available average back best board book build button buy calculate call capture chart
        chat city class close company complete content convert copy count country create current
        currently customer daily day days delete deploy detailed directions disable draft draw
        drop edit enable entries entry events everything explain export fetch field fields
        figures files find first flight forecast full game generate get give good group
        historical history home including index invoice issue issues item items job join key
        keyword know last latest leave level library like line list live load look looking
        lookup machine make mark market members memory merge model month move music names near
        network new news next number numbers old online options order overview past path pay
        payment people performance phone picture place planning play post price priority profile
        projects provide put read recommend recommendations record records related remind remote
        remove rename reply report request research reset resource restore results retrieve
        return review right room run running save saved schedule script search second see send
        session set settings share short show single size song sort source space specific step
        still store stored subscribe suggest summarize summary support switch take task tasks
        tell three title today token tomorrow top topic track translate trip turn two upcoming
        update url users value values various view watch weather web whole word work write
        written year yesterday
        """
    )
) - word_set(
    """
    a am an as but do had he i in is m me my no of on over quite so some to use ve via was we
    will
    """
)
"""Frequent words of English queries that none of the other languages has."""

_ALSO_ENGLISH = word_set(
    """
    ab action actual administrator agenda ai al ali alt alter alto analyse app art arts ate auto
    az begin ben bourse brief ca camera cargo categories charge charger chef chi chose ci
    circulation cite client clients co com come commander concept conversion converter creation
    da dai dame dan depot devise diagram die ding dir directory dis divide doe dom door ed
    employer era etiquette etiquettes eu even fa falls fil film films genre grand gross gut ha
    handy hat hole identifier im info inscription instant io ir journal juz lamp land lang lat
    lecture lee leg li lido lie lies limiter llama local logo lot ma mach male mars media mei
    mel meld meme memes met meta meter mets mia midi modification modifications mon na non nova
    op ore os pack pad panel para pas pasta per permanent personas petit photo phrase piano
    plane plus portable pose poster premier prix pro problem publication quest rad range recent
    reduction refuse relate reporter reservation retire reunion revise rot sa sage sara scanner
    schema service sim sin site sol son stand such sui ta taken tempo tire todo todos tus uber
    uno usa va van vento verification vite vol voo war wat yo
    """
)
"""Words of other languages that are common in English text, and so say nothing about a query."""

_WORD = re.compile(r"[^\W_]+")
_MARKS = re.compile("[\u0300-\u036f]")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "œ": "oe", "æ": "ae"})


def fold(text: str) -> str:
    """The text in lower case and without accents, which many people do not type."""
    if text.isascii():
        return text.lower()
    plain = _MARKS.sub("", unicodedata.normalize("NFD", text.casefold().translate(_LETTERS)))
    return unicodedata.normalize("NFC", plain)


class Language:
    """The words of one language."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.words: dict[str, str] = {}
        self.function_words: set[str] = set()
        """Articles, prepositions, pronouns: they tell the language, but nothing about a tool."""
        self.verbs: set[str] = set()
        """Meanings that are verbs."""
        self._phrases: dict[str, str] = {}
        self._particles: dict[str, dict[str, str]] = defaultdict(dict)

    def add(self, entry: str, meaning: str, kind: str) -> None:
        """Add an entry of the table; where a word has several, the first counts."""
        verb, _, particle = entry.partition("~")
        if particle:
            self._particles[self._stem(fold(verb))].setdefault(fold(particle), meaning)
            return
        forms = {entry}
        if not (entry.isascii() and entry.isalpha()):
            # As it is written, without accents, and with `ae` for `ä`.
            spaced = " ".join(_WORD.findall(entry.replace("_", " "))).lower()
            forms = {spaced, fold(spaced), fold(spaced.translate(_UMLAUTS))}
        for form in forms:
            if " " in form:
                self._phrases.setdefault(form, meaning)
                continue
            self.words.setdefault(form, meaning)
            if kind == "function":
                self.function_words.add(form)
        if kind == "verb":
            self.verbs.add(meaning)

    def find_phrase(self, words: Sequence[str]) -> tuple[str, int] | None:
        """The meaning of the longest phrase that the words begin with, and its number of words."""
        for width in range(min(_MAX_PHRASE, len(words)), 1, -1):
            meaning = self._phrases.get(" ".join(words[:width]))
            if meaning is not None:
                return meaning, width
        return None

    def find_particles(self, word: str) -> Mapping[str, str]:
        """The particles of a verb that stand apart from it, with the meaning of both together."""
        return self._particles.get(self._stem(word), {}) if self._particles else {}

    def find_meaning(self, word: str) -> str | None:
        """The meaning of a folded word, inflected or compound."""
        found = self._find_listed(word)
        if found is not None or len(word) > _MAX_WORD:
            return found
        infixes, endings = _INFIXES.get(self.code, ()), _ENDINGS.get(self.code, {})
        forms = [word, *(word.replace(infix, "", 1) for infix in infixes if infix in word)]
        for ending, replacement in endings.items():
            forms += [f.removesuffix(ending) + replacement for f in forms if f.endswith(ending)]
        for form in forms[1:]:
            if len(form) >= _MIN_FORM and (found := self._find_listed(form)) is not None:
                break
        return found or self._find_compound(word)

    def split_unspaced(self, text: str) -> list[str]:
        """The words found in a text without spaces, each the longest possible one."""
        found: list[str] = []
        start = 0
        while start < len(text):
            for width in range(min(self._longest_word, len(text) - start), 0, -1):
                if (word := text[start : start + width]) in self.words:
                    found.append(word)
                    break
            else:
                width = 1
            start += width
        return found

    def _find_listed(self, word: str) -> str | None:
        return self.words.get(word) or self._stems.get(self._stem(word))

    def _find_compound(self, word: str) -> str | None:
        """The meanings of both parts of a compound; of the last one if the first is unknown."""
        if self.code not in _COMPOUNDS:
            return None
        longest_tail = None
        for cut in range(_MIN_PART, len(word) - _MIN_PART + 1):
            start, tail = word[:cut], self._find_part(word[cut:])
            if tail is None:
                continue
            for link in _LINKS:
                if start.endswith(link) and (head := self._find_part(start.removesuffix(link))):
                    return f"{head} {tail}"
            if longest_tail is None and len(word) - cut >= _MIN_LAST_PART:
                longest_tail = tail
        return longest_tail

    def _find_part(self, part: str) -> str | None:
        if len(part) < _MIN_PART or part in self.function_words:
            return None
        return self._find_listed(part)

    @cached_property
    def _stems(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for word, meaning in self.words.items():
            if word not in self.function_words:
                found.setdefault(self._stem(word), meaning)
        return found

    @cached_property
    def _longest_word(self) -> int:
        return max(map(len, self.words))

    def _stem(self, word: str) -> str:
        name = _STEMMERS.get(self.code)
        return word if name is None else stemmer(name).stemWord(word)


@dataclass(frozen=True, slots=True)
class Dictionary:
    """All languages, by their codes."""

    languages: Mapping[str, Language]
    english: frozenset[str]
    languages_of: Mapping[str, Sequence[str]]
    """The codes of the languages that have a word."""

    def is_english(self, word: str) -> bool:
        """Whether a word, or what it is the plural of, is known to be English."""
        return word in self.english or (word[-1:] == "s" and word[:-1] in self.english)


@cache
def load_dictionary() -> Dictionary:
    """The dictionary, read once, with the first query that may not be in English."""
    table = files("pegboard.core.search").joinpath("dictionary.txt").read_text("utf-8")
    languages: dict[str, Language] = {}
    english = {*STOP_WORDS, *PLAIN_ENGLISH, *_ALSO_ENGLISH}
    kind, codes = "", [""]
    for line in table.splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("= "):
            kind, *codes = line.removeprefix("= ").split("|")
            continue
        meaning, *cells = line.split("|")
        english.update(meaning.split())
        for code, cell in zip(codes, cells, strict=True):
            language = languages.setdefault(code, Language(code))
            for entry in cell.split():
                language.add(entry, meaning, kind)
    languages_of: dict[str, list[str]] = {}
    for code, language in languages.items():
        for word in language.words:
            languages_of.setdefault(word, []).append(code)
    return Dictionary(languages, frozenset(english), languages_of)
