"""Files that others wrote, read as data: bounded in size, depth and range before anything looks at what they say.

A received folder, feed or table may be damaged or hostile. JSON of any depth would exhaust the stack, numbers of any length the processor,
and a few compressed kilobytes the memory. What is read here is never code: nothing is unpickled, evaluated or imported.
"""

from __future__ import annotations

import gzip
import json
import math
import stat
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cbdp.errors import InputError
from cbdp.machine import memory_bytes

if TYPE_CHECKING:
    from decimal import Decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None  # what `json.loads` makes
MAX_JSON_BYTES = 2**28  # of a manifest or a GeoJSON file: a city's streets take some ten megabytes
MAX_JSON_DEPTH = 50  # levels of lists and objects inside each other; manifests and GeoJSON have about ten
MAX_TOML_CHARACTERS = (
    2**24
)  # of a configuration or a description of tables: those of large cities have some ten thousand
MAX_NUMBER_DIGITS = 400  # of a whole number in JSON; floats end at 10³⁰⁸
MAX_WHOLE_NUMBER = 2**63 - 1  # what columns hold
MAX_TEXT_BYTES = 2**31  # of a file of text once it is unpacked: stop_times.txt of a whole country
MEMORY_SHARE = 0.5  # of this computer that one table may take


def read_json(path: Path) -> JSON:
    """The content of a JSON file, bounded; `InputError` says what is wrong with it, and `OSError` that it cannot be read."""
    content = read_file(path, MAX_JSON_BYTES)
    try:
        return parse_json(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text") from None


def read_file(path: Path, most: int = MAX_TEXT_BYTES) -> bytes:
    """The bytes of a file; `OSError` where there is none.

    What is no file but has a name is refused: a pipe would be waited for, and a device would never end.
    """
    check_file(path)
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"it has more than the {most:,} bytes that are read")
    return content


def check_file(path: Path) -> None:
    """Refuse pipes, devices and sockets, which opening alone may wait for; `OSError` where there is nothing."""
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise InputError(f"{path.name!r} is a pipe or a device, and not a file")


def parse_json(text: str) -> JSON:
    """JSON as data: every name once, numbers finite and not endless (schemas bound them further), at most `MAX_JSON_DEPTH` levels deep.

    >>> parse_json('{"size": [1, 2.5, null]}')
    {'size': [1, 2.5, None]}
    >>> parse_json('{"size": 1, "size": 2}')
    Traceback (most recent call last):
    ...
    cbdp.errors.InputError: it names 'size' twice
    """
    try:
        content: JSON = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_real,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as wrong:
        raise InputError(f"it is not JSON: {wrong}") from None
    except RecursionError:
        raise InputError(f"it is nested more than {MAX_JSON_DEPTH} levels deep") from None
    _check(content)
    return content


def parse_toml(text: str, parse_float: Callable[[str], float | Decimal] = float) -> dict[str, object]:
    """TOML as data, bounded as JSON is; a `tomllib.TOMLDecodeError` says where it is not TOML.

    >>> parse_toml("size = [1, 2]")
    {'size': [1, 2]}
    >>> parse_toml("size = 0x" + "f" * 20)
    Traceback (most recent call last):
    ...
    cbdp.errors.InputError: it holds the number 1208925819614629174…, which is beyond 64 bits
    """
    if len(text) > MAX_TOML_CHARACTERS:
        raise InputError(
            f"it has {len(text):,} characters, more than the {MAX_TOML_CHARACTERS:,} that are read"
        )
    try:
        content = tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise InputError(f"it is nested more than {MAX_JSON_DEPTH} levels deep") from None
    except (ValueError, ArithmeticError):  # a number of thousands of digits
        raise InputError("it holds a number that is too long, or a time that does not exist") from None
    _check(content, MAX_WHOLE_NUMBER)
    return content


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"it names {twice!r} twice")
    for name in content:
        _check_text(name)
    return content


def _whole(digits: str) -> int:
    if len(digits) > MAX_NUMBER_DIGITS:
        raise InputError(f"it holds the number {digits[:20]}…, which has {len(digits):,} digits")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InputError(f"it holds the number {digits[:20]}, which is not finite")
    return number


def _constant(name: str) -> float:
    raise InputError(f"it holds {name}, which is not a number of JSON")


def _check(content: object, largest: int | None = None) -> None:
    """Depth, texts, and whole numbers up to the largest: level by level, for a stack of calls has an end too."""
    level = [content]
    for _ in range(MAX_JSON_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif largest is not None and isinstance(item, int) and abs(item) > largest:
                raise InputError(f"it holds the number {_leading(item)}…, which is beyond 64 bits")
            elif isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise InputError(f"it is nested more than {MAX_JSON_DEPTH} levels deep")


def _leading(number: int) -> str:
    """The first digits of a number that may have more than Python writes."""
    digits = math.ceil(abs(number).bit_length() * math.log10(2))
    return str(number // 10 ** max(0, digits - 19))


def _check_text(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"it holds the text {text[:40]!r}, half of a character") from None


def zip_member(path: Path, name: str, *, suffix: bool = True) -> bytes | None:
    """A file inside a zip (in any folder of it, the one nearest to the top first); None where it has none. Nothing is unpacked to disk."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [n for n in archive.namelist() if n == name or (suffix and n.rpartition("/")[2] == name)]
            if not inside:
                return None
            chosen = min(inside, key=len)
            if archive.getinfo(chosen).file_size > MAX_TEXT_BYTES:
                raise InputError(_too_large(f"{name} in {str(path)!r}"))
            with archive.open(chosen) as member:
                return _bounded(member, f"{name} in {str(path)!r}")
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as wrong:
        # RuntimeError: it has a password; NotImplementedError: a method of packing that Python does not know
        raise InputError(f"{str(path)!r} cannot be read as a zip file: {wrong}") from None


def gzip_content(path: Path) -> bytes:
    """What a .gz file holds."""
    check_file(path)
    try:
        with gzip.open(path) as content:
            return _bounded(content, repr(str(path)))
    except (gzip.BadGzipFile, zlib.error, EOFError) as wrong:
        raise InputError(f"{str(path)!r} cannot be unpacked: {wrong}") from None


def _bounded(content: IO[bytes] | gzip.GzipFile, what: str) -> bytes:
    read = content.read(MAX_TEXT_BYTES + 1)
    if len(read) > MAX_TEXT_BYTES:
        raise InputError(_too_large(what))
    return read


def _too_large(what: str) -> str:
    return f"{what} has more than {MAX_TEXT_BYTES:,} bytes once it is unpacked: that is no table of a city"


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet table, or those of these columns that it has; refused where it would take more memory than this computer can spare.

    A few kilobytes of Parquet can stand for billions of rows, for one long text repeated in all of them, or for one list of billions. What
    a file says of its own size is not relied on: rows are counted by row group, each text is read once, and lists are not read at all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        check_file(path)
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            selected = [n for n in schema.names if columns is None or n in columns]
            if len(set(schema.names)) < len(schema.names):
                raise InputError(f"{path.name!r} has two columns of one name")
            widths = [_width(path, schema.field(name)) for name in selected]
            texts = [n for n in selected if _is_text(schema.field(n).type)]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            return _bounded_table(path, file, selected, max(8, sum(widths)))
    except (pa.ArrowException, OSError) as wrong:
        lines = str(wrong).splitlines() or [type(wrong).__name__]
        raise InputError(f"{path.name!r} cannot be read: {lines[0]}") from None


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    bytes_ = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(is_a(kind) for is_a in (*texts, *bytes_))


def _width(path: Path, field: pa.Field) -> int:
    """Bytes that a value takes when it is read; of a text, its place among the texts."""
    import pyarrow as pa

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if _is_text(kind) or pa.types.is_null(kind):
        return 8
    flat = (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_fixed_size_binary)
    if not any(is_a(kind) for is_a in flat):
        raise InputError(f"{path.name!r} cannot be read: its column {field.name!r} holds {kind} values")
    return max(8, int(kind.bit_width) // 8)


def _bounded_table(path: Path, file: pq.ParquetFile, selected: list[str], width: int) -> pa.Table:
    """A table whose texts are read once each, one row group after another, and repeated only if they all fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not selected:
        return file.read(columns=selected)
    groups = range(file.metadata.num_row_groups)
    limit = int(MEMORY_SHARE * _memory())
    needed = width * sum(max(0, file.metadata.row_group(n).num_rows) for n in groups)
    _check_fits(path, needed, limit)
    parts = []
    for n in groups:
        part = file.read_row_group(n, columns=selected)
        for i, name in enumerate(part.schema.names):
            if not _is_text(part.schema.field(name).type):
                continue
            for chunk in part.column(i).chunks:
                lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
                needed += int(pc.sum(lengths).as_py() or 0)
                needed += int(pc.sum(lengths.take(chunk.indices)).as_py() or 0)
        _check_fits(path, needed, limit)
        parts.append(part)
    table = pa.concat_tables(parts) if parts else file.read(columns=selected)
    plain = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(plain))


def _check_fits(path: Path, needed: int, limit: int) -> None:
    if needed > limit:
        raise InputError(
            f"{path.name!r} has {path.stat().st_size:,} bytes and would take {needed:,} bytes of memory when it is read, "
            f"more than the {limit:,} that one table may take here"
        )


def _memory() -> int:
    return memory_bytes()
