"""Messages, docstrings, comments and docs use plain English: no words and constructions that need a second reading."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("statecfg", "resources", "script", "tests/lab", "docs")
MADE = (  # `script/docs.py` makes these pages from the code, which is checked
    "docs/reference/", "docs/errors.md", "docs/coverage.md",
)  # fmt: skip


class Rule(NamedTuple):
    """A construction that readers stumble over. A space in `found` matches any white space, also a line break."""

    found: str
    instead: str


RULES = (
    Rule(r"\b([Nn]o|[Ss]ome|[Ee]very|[Aa]ny)body\b", "name the subject: no user, all users, another process"),
    Rule(r"\b([Ww]ho|[Ww]hat|[Ww]hich)ever\b", "name the subject, or write: regardless of …"),
    Rule(r"\b(is|are|was) to (be|do)\b", "write who does it: statecfg removes …; … must be …"),
    Rule(r"\bmend(s|ed|ing)?\b", "fix"),
    Rule(r"\bin so many words\b", "explicitly"),
    Rule(r"\bwhat is none\b", "name what is missing"),
    Rule(
        r"\b[Tt]here (is|are) no (option|setting|command|event|fact|operator|capability|curve)\b(?! of\b)",
        "unknown option; … is not a setting; … does not exist",
    ),
    Rule(r"\b(?!there\b|There\b)\w+[`)\"]* (is|are) no (?!longer\b|more\b|such\b)\w+", "is not a …; has no …"),
    Rule(r"\b[Aa] text\b(?! (file|block|operation|field|line|editor))", "a string; the text of …"),
    Rule(r"\bstands? for\b", "means; matches; is replaced by"),
    Rule(
        r"\bof (its|their|our|your) own\b(?= ?$|[.,;:)]| (in|on|at|for|from|with|that|which|and|or|to|is|are)\b)",
        "its own …; a separate …",
    ),
    Rule(r"\bat all\b", "omit it"),
    Rule(r"\bas much as (?!possible)", "up to …; what …"),
    Rule(r"\b([Ii]t|what (it|they|the \w+)) says?\b(?! that\b)", "name what is reported, recorded or defined"),
    Rule(r"\bsays? so\b", "reports this; shows this"),
    Rule(r"\bany more(?=$|\n|[.,;:)\"])|\banymore\b", "no longer"),
    Rule(r"\ball the same\b(?! \w)", "anyway"),
    Rule(r"\bbelongs? into\b", "belongs in"),
    Rule(r"\band the like\b", "and similar; and so on"),
    Rule(r"\bno way back\b", "can't be undone"),
    Rule(r"\bshall\b", "must; or the plain present"),
    Rule(r"\bas such\b", "name it"),
    Rule(r"\bby itself\b", "automatically"),
)

EXCEPTIONS = {  # part of a file's path, part of the text: why the words stay
    ("docs/contributing.md", "| "): "the table of bad and good examples",
    ("docs/contributing.md", "Avoid inversions"): "names the words",
    ("resources/services/systemd_unit.py", "User: nobody"): "the user `nobody`",
    ("docs/node-types.md", "User: nobody"): "the user `nobody`",
}

# A space in a rule: white space, the start of the next line of a comment, or the end of a string before another one.
SPACE = r"(?:\s|\n *#|[\"'] *\n *[rf]*[\"'])+"
PATTERNS = {rule: re.compile(rule.found.replace(" ", SPACE)) for rule in RULES}
ANY = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in PATTERNS.values()))


class Passage(NamedTuple):
    """Prose in a file, and the line in which it starts."""

    file: Path
    line: int
    text: str


def prose(file: Path) -> Iterator[Passage]:
    """Yield the comments of a Python file and its strings that contain a space; the whole text of other files.

    Comments in consecutive lines, and consecutive strings, are one passage.
    """
    text = file.read_text(encoding="utf-8")
    if not ANY.search(text):
        return
    if file.suffix != ".py":
        yield Passage(file, 1, text)
        return
    parts: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NL:
            continue
        if parts and (token.type != parts[-1].type or token.start[0] > parts[-1].end[0] + 1):
            yield passage(file, parts)
            parts = []
        if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            parts.append(token)
    if parts:
        yield passage(file, parts)


def passage(file: Path, parts: list[tokenize.TokenInfo]) -> Passage:
    """Return comments or strings as a passage with the line breaks between them."""
    text, line = parts[0].string, parts[0].end[0]
    for token in parts[1:]:
        text += "\n" * (token.start[0] - line) + token.string
        line = token.end[0]
    return Passage(file, parts[0].start[0], text)


def wrong(found: Passage) -> Iterator[str]:
    """Yield `FILE:LINE: words: replacement` for each construction in a passage that has no exception."""
    name = found.file.relative_to(ROOT).as_posix()
    lines = found.text.split("\n")
    for rule, pattern in PATTERNS.items():
        for match in pattern.finditer(found.text):
            at = found.text.count("\n", 0, match.start())
            if not any(part in name and words in lines[at] for part, words in EXCEPTIONS):
                yield f"{name}:{found.line + at}: {' '.join(match[0].split())!r}: {rule.instead}"


def files() -> Iterator[Path]:
    """Yield the files with messages, docstrings, comments and docs."""
    yield ROOT / "README.md"
    yield ROOT / "CHANGELOG.md"
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            name = file.relative_to(ROOT).as_posix()
            if file.is_symlink() or not file.is_file() or name.startswith(MADE) or "statecfg/resources/" in name:
                continue
            if file.suffix in (".py", ".md", ".hy", ".js", ".html") or (folder == "script" and not file.suffix):
                yield file


def test_prose_is_plain_english() -> None:
    problems = [text for file in files() for found in prose(file) for text in wrong(found)]
    assert not problems, "\n" + "\n".join(problems)


def test_each_exception_is_needed() -> None:
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files()}
    for part, words in EXCEPTIONS:
        lines = [line for name, text in texts.items() if part in name for line in text.split("\n") if words in line]
        assert any(ANY.search(line) for line in lines), (part, words)


def test_rules_find_bad_sentences_and_accept_good_ones() -> None:
    bad = (
        "Nobody can be asked here.",
        "Whoever runs them has a lease.",
        "a server is to do it",
        "mend the cause",
        "there is no option `x`",
        "The name is no option.",
        "all else is a text",
        "`*` stands\n    for any characters",
        "The rule is in a file of its own.",
        "nothing at all",
        "it says why",
        "what the module says",
        "no resource uses it anymore, so it goes",
    )
    good = (
        "No user can log in.",
        "the service is no longer registered",
        "If there is no such file, the node fails.",
        "Each host has its own ledger.",
        "a text file",
        "It says that the host is locked.",
        "the state of its own units",
    )
    passages = [Passage(ROOT / "README.md", 1, text) for text in (*bad, *good)]
    assert [found.text for found in passages if list(wrong(found))] == list(bad)
