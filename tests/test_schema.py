"""Damaged files are refused in one sentence that names the file, the place, and what to do."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from bridgetrack.errors import InputError, ModelError
from bridgetrack.schema import Count, FileFormat, FilePart, JsonObject, Share, json_text, made_by


class Size(FilePart):
    width: int

    def positive(self):
        if self.width < 1:
            raise InputError(f"a width of {self.width} is none")
        return self.width


class Item(FilePart):
    id: str
    share: Share
    sizes: list[Annotated[int, made_by(Size, Size.positive)]]
    count: Count = 0


class Content(FilePart):
    items: list[Item] = Field(min_length=1)
    notes: JsonObject = Field(default_factory=dict)


FORMAT = FileFormat("test", 1, "a test file", Content, lambda c: c.items[0].sizes, ModelError)


def valid():
    return {**FORMAT.head, "items": [{"id": "a", "share": 1, "sizes": [{"width": 2}]}]}


def test_a_file_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json_text(valid(), "it"))
    assert FORMAT.read(path) == [2]


@pytest.mark.parametrize(
    ("keys", "value", "place"),
    [
        (["format"], "other", "format"),
        (["version"], 2, "version 2"),
        (["extra"], 1, "extra:"),
        (["items"], [], "items:"),
        (["items", 0], {"id": "a", "share": 0}, "items.0"),
        (["items", 0, "share"], 1.5, "items.0.share:"),
        (["items", 0, "share"], 10**400, "share:"),
        (["items", 0, "count"], True, "count:"),
        (["items", 0, "sizes", 0, "width"], 0, "sizes.0:"),
        (["notes"], [], "notes:"),
    ],
)
def test_the_file_and_the_place_are_named(keys, value, place):
    content: Any = valid()
    part = content
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    with pytest.raises(ModelError) as caught:
        FORMAT.check(content, "a.json")
    assert str(caught.value).startswith("a.json: ")
    assert place in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"x": NaN}'])
def test_what_is_no_such_file_is_refused(text):
    with pytest.raises(ModelError, match=r"^a\.json: "):
        FORMAT.parse(text, "a.json")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    for name in ("none", "b"):
        with pytest.raises(ModelError, match=f"{name}.json"):
            FORMAT.read(tmp_path / f"{name}.json")


@pytest.mark.parametrize("value", [float("nan"), {1}, "\ud800"])
def test_what_json_cannot_say_is_not_written(value):
    with pytest.raises(InputError, match="the notes"):
        json_text({"a": value}, "the notes", ascii_only=False)
