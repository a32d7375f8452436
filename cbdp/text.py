"""Text that leaves the program: names as data, never as commands to a terminal, a spreadsheet or a reader's eye; and no passwords.

Stops, columns, files and tables are named by others. A name may hold what a terminal obeys (escape sequences), what turns the order of
reading around (bidirectional controls), what looks like further lines, what is markup, or what a spreadsheet computes. `printable` shows
such characters as what they are, `html_text` and `markdown_text` show markup as text, `spreadsheet_cell` guards cells, and `masked` hides
what looks like a password. All errors of this package (`cbdp.errors.CbdpError`), everything that the commands print (`cbdp.commands.program`), pages,
README files and CSV files pass through here; `cbdp.release.export.base` is for XML, and refuses what XML cannot hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from urllib.parse import unquote

INTERNAL_WARNING = (
    "INTERNAL – reveals private data – do not publish"  # on top and at the end of whatever saw the real trips
)
MASK = "***"
MIN_SECRET_LENGTH = 6  # characters: a shorter password would hide ordinary words wherever they stand
MAX_MESSAGE_LENGTH = 10_000  # characters: a value that is repeated in an error may be a whole file
LAYOUT_CHARACTERS = frozenset("\n\t")  # of messages, which may have several lines; in a name they are data
JOINING_CHARACTERS = frozenset("\u200c\u200d")  # without them Persian words and many emoji read wrongly

_known_secrets: set[str] = set()  # passwords of the connection strings that this process was given


def printable(text: str, *, layout: bool = False) -> str:
    r"""A name as a terminal or a page may show it: what is no visible character is written as its number.

    >>> print(printable("Main \x1b[31m St\u202e\n"), printable("Zürich 東京"))
    Main \u001b[31m St\u202e\n Zürich 東京
    >>> print(printable("two\nlines", layout=True))
    two
    lines
    """
    if text.isascii() and text.isprintable():
        return text
    kept = LAYOUT_CHARACTERS if layout else frozenset[str]()
    return "".join(c if c in kept or _visible(c) else _escaped(c) for c in text)


def _visible(character: str) -> bool:
    return (
        character.isprintable() or character in JOINING_CHARACTERS or unicodedata.category(character) == "Zs"
    )


def _escaped(character: str) -> str:
    """As JSON writes it, so that what reads JSON from a terminal still can."""
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


# Passwords

SECRET_KEY = re.compile(
    r"password|passwd|passphrase|passw|pwd|secret|token|credential|(api|access|account|private|shared)[_-]?key|signature"
    r"|authorization|contrase[nñ]a|^u00f1a$|kennwort|passwort|mot_?de_?passe|senha|parola_?d_?ordine|kata_?sandi|^(pass|sig|auth|clave)$",
    re.IGNORECASE,
)
# All lengths are bounded: a text of others is searched in a time that grows with its length, not with its square.
_VALUE = r"""(?:\\+"(?:(?!\\+").){0,4000}\\+"|\\+'(?:(?!\\+').){0,4000}\\+'|'(?:[^'\\]|\\.|''){0,4000}'|"(?:[^"\\]|\\.|""){0,4000}"|\{(?:[^}]|\}\}){0,4000}\}|\\*['"{]?[^\s;&,'")}\]]+)"""
_VALUE_HERE = re.compile(_VALUE)
# In "no column 'token': its first line …" a sentence goes on: plain words after a quoted name that cards and columns may have.
_COLUMN_KEY = re.compile(r"(?:\w{0,60}_)?(?:token|signature|credential)s?(?:_\w{0,60})?", re.IGNORECASE)
MESSAGE_CONTINUATIONS = ("there are ", "it needs ")  # after a quoted name in our own messages
_PROSE_HERE = re.compile(r"[A-Za-z]{1,20}\s[A-Za-z]")
_PAIR = re.compile(
    r"""(?<![\w%.-])((?:[\w.-]|%(?!3[DdBb]|26)[0-9A-Fa-f]{2})++)(\\*['"]?\s{0,20}=\s{0,20}|\\*['"]\s{0,20}:\s{0,20})"""
)  # a key and its sign; backslashes: JSON inside a text
_ENCODED_PAIR = re.compile(
    r"((?:[\w.-]|%(?!3[DdBb]|26|7[BbDd])[0-9A-Fa-f]{2}){1,64})(%3[Dd])"
)  # of a query inside a query
_ENCODED_VALUE_HERE = re.compile(r"""%7[Bb].{0,4000}?%7[Dd]|(?:(?!%3[Bb]|%26|%20)[^\s;&,'")}\]])+""")
_OPTION = re.compile(rf"(?<![\w-])(--?)([A-Za-z][\w-]{{0,60}})(\s{{1,20}})(?!-)({_VALUE})")
_SPOKEN_PAIR = re.compile(rf"\b(password|passwd|pwd)(\s{{0,20}}:\s{{0,20}})({_VALUE})", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)(\s{1,20})([A-Za-z0-9+/=._~-]{6,})")
_ORACLE = re.compile(r"(:thin:[^/\s@]{1,200}/)([^\s@]{1,2000})(?=@)")
_QUOTED_URL = re.compile(
    r"""(['"])([\w+.:-]{0,60}://[^\s/:'"]{0,200}):([^'"\n]{0,2000})@(?=[^'"\n]{0,2000}\1)"""
)
_URL = re.compile(
    r"""((?<![\w+.-])[\w+.-]{1,60}(?:://|%3[Aa]%2[Ff]%2[Ff])[^\s/:'"]{0,200}?)(:|%3[Aa])(?!//)(\S{0,2000})(@|%40)"""
)
# a URL that was mistyped, or that a path has shortened: user:password@host, user/password@host:port
_USER = re.compile(
    rf"""(?<![^\s'"/(\[:=])(?!(?i:mailto|e?-?mail|contact|acct|sips?|xmpp):)([\w.+-]{{1,60}}):([^\s/:@'"]{{{MIN_SECRET_LENGTH},200}})@(?=[\w\[])"""
)
_USER_SLASH = re.compile(
    rf"""(?<![^\s'"(\[=])([\w.+-]{{1,60}})/([^\s/:@'"]{{{MIN_SECRET_LENGTH},200}})@(?=//?[\w\[]|[\w.-]{{1,200}}:\d)"""
)
_URL_TOKEN = re.compile(r"((?<![\w+.-])[\w+.-]{1,60}://)([\w.~-]{20,2000})(?=@)")


def masked(text: str) -> str:
    r"""A text without what looks like a password: in a URL, or as `password=…` in any spelling.

    >>> masked("postgresql://me:s3cret@host/city?sslpassword=x")
    'postgresql://me:***@host/city?sslpassword=***'
    >>> masked("host=db password='it is \\' long' dbname=city")
    'host=db password=*** dbname=city'
    >>> masked("12 passengers = 12 trips, and the password is not there")
    '12 passengers = 12 trips, and the password is not there'
    >>> masked("no column 'token': its first line must name it; {'token': 'abc'}")
    "no column 'token': its first line must name it; {'token': '***'}"
    """
    if "://" in text or "%3A" in text.upper():
        text = _QUOTED_URL.sub(rf"\1\2:{MASK}@", text)
        text = _URL.sub(_masked_userinfo, text)
        text = _URL_TOKEN.sub(rf"\1{MASK}", text)
    if "@" in text:
        text = _USER.sub(rf"\1:{MASK}@", text)
        text = _USER_SLASH.sub(rf"\1/{MASK}@", text)
    if ":thin:" in text:
        text = _ORACLE.sub(rf"\1{MASK}", text)
    if "=" in text or ":" in text:
        text = _without_values(text, _PAIR, _VALUE_HERE)
        text = _SPOKEN_PAIR.sub(rf"\1\2{MASK}", text)
    if "%3D" in text.upper():
        text = _without_values(text, _ENCODED_PAIR, _ENCODED_VALUE_HERE)
    if "-" in text:
        text = _OPTION.sub(_masked_option, text)
    return _BEARER.sub(rf"\1\2{MASK}", text)


def remember_secrets(text: str) -> None:
    """Show the passwords of this connection string in no message: databases repeat them in errors of their own.

    One that is also the user, the database or another open part of the string is no secret, and is left alone.
    """
    secrets = [match[3] for pattern in (_QUOTED_URL, _URL) for match in pattern.finditer(text)]
    for pair, value in ((_PAIR, _VALUE_HERE), (_ENCODED_PAIR, _ENCODED_VALUE_HERE)):
        secrets += [match[0].strip("'\"{}") for _, match in _secret_pairs(text, pair, value)]
    for secret in secrets:
        open_parts = text.replace(f":{secret}@", "").replace(f"={secret}", "")
        forms = {secret, unquote(secret)} - {MASK}
        _known_secrets.update(s for s in forms if len(s) >= MIN_SECRET_LENGTH and s not in open_parts)


def _masked_userinfo(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{MASK}{match[4]}"


def _secret_pairs(
    text: str, pair: re.Pattern[str], value: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Keys that name a secret, each with its value. The values of other keys are searched too: options='-c password=x'."""
    place = 0
    while (key := pair.search(text, place)) is not None:
        match = value.match(text, key.end()) if _is_secret(key[1]) and not _is_prose(text, key) else None
        if match is not None:
            yield key, match
        place = key.end() if match is None else match.end()


def _without_values(text: str, pair: re.Pattern[str], value: re.Pattern[str]) -> str:
    pieces, place = [], 0
    for key, match in _secret_pairs(text, pair, value):
        quoted = match[0][0] if ":" in key[2] and match[0][0] in "'\"" else ""
        pieces.append(f"{text[place : key.end()]}{quoted}{MASK}{quoted}")
        place = match.end()
    return "".join([*pieces, text[place:]])


def _masked_option(match: re.Match[str]) -> str:
    secret = _is_secret(match[2])
    return f"{match[1]}{match[2]}{match[3]}{MASK}" if secret else match[0]


def _is_prose(text: str, key: re.Match[str]) -> bool:
    """Whether a quoted name and a colon are part of a sentence, and no key with its value: values in JSON are quoted."""
    if text.startswith(MESSAGE_CONTINUATIONS, key.end()):
        return True
    return (
        ":" in key[2]
        and _COLUMN_KEY.fullmatch(key[1]) is not None
        and _PROSE_HERE.match(text, key.end()) is not None
    )


def _is_secret(key: str) -> bool:
    for _ in range(3):  # a key may be percent-encoded, also twice
        key = unquote(key)
    return SECRET_KEY.search(key) is not None


def shown(text: str) -> str:
    r"""A text as it may be shown to anybody: no password, no command to a terminal; its lines stay.

    >>> print(shown("no table in postgres://me:s3cret@host/city\x1b[2J"))
    no table in postgres://me:***@host/city\u001b[2J
    """
    for secret in sorted(_known_secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return printable(masked(text), layout=True)


def message(text: str) -> str:
    """As `shown`; of a long text the beginning and the end.

    >>> len(message("a" * 10**6)) < 11_000
    True
    """
    if len(text) > 4 * MAX_MESSAGE_LENGTH:  # passwords are masked before their text may be cut in two
        text = f"{text[: 2 * MAX_MESSAGE_LENGTH]}{text[-2 * MAX_MESSAGE_LENGTH :]}"
    text = shown(text)
    half = MAX_MESSAGE_LENGTH // 2
    return text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[:half]} … {text[-half:]}"


# Markup


def html_text(text: str) -> str:
    r"""Text that a page shows as it is, also as the value of an attribute.

    >>> print(html_text('<b>"A"</b>\x1b'))
    &lt;b&gt;&quot;A&quot;&lt;/b&gt;\u001b
    """
    return escape(printable(masked(text), layout=True))


def shown_data(value: object) -> object:
    r"""Data of JSON whose texts a page may show.

    >>> print(shown_data({"stops": ["A\x1b", 7]}))
    {'stops': ['A\\u001b', 7]}
    """
    if isinstance(value, str):
        return printable(masked(value), layout=True)
    if isinstance(value, Mapping):
        return {shown_data(name): shown_data(inner) for name, inner in value.items()}
    return [shown_data(inner) for inner in value] if isinstance(value, list | tuple) else value


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~]|&(?=#?\w+;))")
_MARKDOWN_START = re.compile(r"^(\s*)(?:([-+=])|(\d+)([.)]))")  # of a list, a line or a heading


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(markdown_text("a|b *c* <d>"), markdown_text("1. first"), markdown_text("- &amp;"))
    a\|b \*c\* \<d\> 1\. first \- \&amp;
    """
    shown = _MARKDOWN.sub(r"\\\1", printable(masked(text)))
    return _MARKDOWN_START.sub(lambda m: f"{m[1]}\\{m[2]}" if m[2] else f"{m[1]}{m[3]}\\{m[4]}", shown)


def markdown_code(text: str) -> str:
    r"""A name as code in a cell of a Markdown table.

    >>> print(markdown_code("origin.zone"), markdown_code("a`|b"))
    `origin.zone` ``a`\|b``
    """
    shown = printable(masked(text)).replace("|", "\\|")
    marks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{marks}{space}{shown}{space}{marks}"


# Spreadsheets

SPREADSHEET_FORMULA = re.compile(
    "['\\s]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]"
)  # what a spreadsheet may compute, also guarded before
PLAIN_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def spreadsheet_cell(text: str) -> str:
    """Text as a cell of a CSV file: what a spreadsheet would compute gets an apostrophe in front; numbers stay as they are.

    Nothing is lost: `from_spreadsheet_cell` gives the text back.

    >>> [spreadsheet_cell(text) for text in ("=1+1", "-5", "@home", "'=1", "North")]
    ["'=1+1", '-5', "'@home", "''=1", 'North']
    """
    return f"'{text}" if SPREADSHEET_FORMULA.match(text) and not PLAIN_NUMBER.fullmatch(text) else text


def cell_of(value: object) -> object:
    """A value as a cell of a CSV file: text is guarded, numbers are numbers.

    >>> cell_of("=1+1"), cell_of(-5)
    ("'=1+1", -5)
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    return spreadsheet_cell(str(value))


def from_spreadsheet_cell(cell: str) -> str:
    """The text that `spreadsheet_cell` wrote.

    >>> [from_spreadsheet_cell(spreadsheet_cell(text)) for text in ("=1+1", "-5", "'=1", "'quoted'")]
    ['=1+1', '-5', "'=1", "'quoted'"]
    """
    return cell[1:] if cell.startswith("'") and SPREADSHEET_FORMULA.match(cell) else cell


# Tables as text, for terminals


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """The lines of a table: every column as wide as its widest cell, those in `right` set to the right. Cells are shown as data.

    >>> for line in aligned([["zone", "trips"], ["north", "7"]], right=[1]):
    ...     print(line)
    zone   trips
    north      7
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(w) if column in right else cell.ljust(w)
            for column, (cell, w) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    ]
