"""Roles of the columns of tables, by the names that programs give them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bridgetrack.errors import InputError

CELL_COLUMNS: dict[str, tuple[str, ...]] = {
    "frame": (
        "frame", "frame_number", "frame_i", "frame_y", "spot_frame", "timepoint", "time_point",
        "time_index", "timestep", "time_step", "imagenumber", "metadata_t", "metadata_frame",
        "metadata_timepoint", "t", "slice", "slice_n", "time", "position_t", "elapsed_time",
    ),
    "z": (
        "z", "position_z", "pos_z", "posz", "centroid_z", "z_centroid", "center_z",
        "location_center_z", "spot_position_z", "z_pos", "z_position", "z_coordinate",
    ),
    "y": (
        "y", "position_y", "pos_y", "posy", "centroid_y", "y_centroid", "center_y",
        "location_center_y", "areashape_center_y", "spot_position_y", "ym", "bb_top", "y_pos",
        "y_position", "y_coordinate",
    ),
    "x": (
        "x", "position_x", "pos_x", "posx", "centroid_x", "x_centroid", "center_x",
        "location_center_x", "areashape_center_x", "spot_position_x", "xm", "bb_left", "x_pos",
        "x_position", "x_coordinate",
    ),
    "id": ("id", "node_id", "node", "spot_id", "detection_id"),
    "parent": ("parent_id", "parent", "parent_node", "parent_node_id", "parent_spot_id"),
    "track": (
        "track_id", "track", "trackid", "tracklet_id", "particle", "tid", "track_n",
        "spot_track_id", "cell_id", "trackobjects_label",
    ),
    "parent_track": ("parent_track_id", "parenttrackid", "parent_track"),
    "label": (
        "label", "labelimageid", "label_id", "segmentation_id", "seg_id", "mask_id",
        "objectnumber", "object_id", "number_object_number",
    ),
    "area": (
        "area", "volume", "size_in_pixels_0", "size_in_pixels", "size", "areashape_area",
        "cell_area", "nucleus_area",
    ),
    "radius": ("radius", "r", "estimated_radius", "spot_radius"),
    "width": ("bb_width",),
    "height": ("bb_height",),
    "unit": ("unit",),
}  # fmt: skip
"""Names of the columns of a table of cells, by what they hold; the first that is there counts.

They are those of this program, TrackMate, ilastik, CellProfiler, Imaris, napari, ImageJ and its
plugins Manual Tracking and MTrackJ, Mastodon, NIS Elements, QuPath, btrack, LapTrack, trackpy,
Ultrack, Cell-ACDC, scikit-image and of boxes (MOT).
"""

MOVIE_COLUMNS = (
    "image", "image_name", "file", "filename", "file_name", "movie", "position", "well", "field",
    "fov", "scene", "series", "site", "metadata_well", "metadata_site", "metadata_field",
)  # fmt: skip
"""Names of columns that identify movies."""

LINK_COLUMNS: dict[str, tuple[str, ...]] = {
    "source": ("source", "source_id", "spot_source_id", "parent", "from"),
    "target": ("target", "target_id", "spot_target_id", "child", "to"),
}
"""Columns of a table of links between cells, which are given by their ids."""

SCORE_COLUMNS: dict[str, tuple[str, ...]] = {
    "frame": ("frame", "t", "source_frame", "frame_source", "time"),
    "source": ("source", "source_label", "label_source", "source_id", "from"),
    "target": ("target", "target_label", "label_target", "target_id", "to"),
    "score": ("score", "link_score", "probability", "similarity", "weight", "edge_weight", "p"),
    "target_frame": ("target_frame", "frame_target"),
}
"""Columns of a table of link scores, in which cells are given by frame and label."""

_NUMBERED = (
    ("centroid", ("y x", "z y x")),
    ("center_of_the_object", ("x y", "x y z")),
    ("object_center", ("x y", "x y z")),
    ("axis", ("", "frame y x", "frame z y x")),
)
"""Numbered columns of some programs, and their roles by number of columns."""
PLACE = {"frame", "y", "x"}
"""Roles that every cell needs."""
UNIT_OF = re.compile(
    r"[\[({](?P<inside>[^][(){}]*)[\])}]|[ _./]+(?P<length>[µμu]m\^?[23²³]?|microns?|"
    r"micromet(?:er|re)s?|px|pxl|pix|pixels?)\.?$|(?:(?<=time)|(?<=^t))[ _./]+"
    r"(?P<time>s|sec|seconds|min|minutes|h|hr|hours)\.?$",
    re.IGNORECASE,
)
"""The unit in the name of a column; R puts points in place of brackets."""
_SHOWN, _LONGEST = 20, 40
"""Most columns that a message lists, and most letters of each."""


def check_columns(columns: Mapping[str, str], header: Sequence[str], source: str) -> None:
    """Raise an error about columns that are named but absent, or needed but not named."""
    listed = f"the file has the columns {shown(header)}"
    for role, column in columns.items():
        if column not in header:
            raise InputError(f"{source}: there is no column {column!r} (meant as {role}); {listed}")
    missing = [role for role in ("frame", "y", "x") if role not in columns]
    if missing:
        roles = ["t" if role == "frame" else role for role in missing]
        named = ",".join(f"{role}=..." for role in roles)
        said = ", ".join(f"'{role}': '...'" for role in roles)
        raise InputError(
            f"{source}: found no column for {', '.join(missing)}; {listed}. Say which it is: "
            f"--columns {named}, in Python columns={{{said}}}"
        )


def shown(header: Sequence[str]) -> str:
    """Names of columns for a message."""
    names = ", ".join(repr(str(name)[:_LONGEST]) for name in header[:_SHOWN])
    return names + (f" and {len(header) - _SHOWN} more" if len(header) > _SHOWN else "")


def parse_columns(text: str) -> dict[str, str]:
    """Columns by their roles from words such as ``y=Row,x=Col,t=Image no``; ``label=`` for none.

    Raises an `InputError` if a part is none of these.
    """
    parts = [part.partition("=") for part in re.split(r",(?=\s*\w+\s*=)", text)]
    if not all(role.strip() and sign for role, sign, _ in parts):
        raise InputError(f"columns {text!r}: give roles and names, such as y=Row,x=Col,t=Image")
    return {role.strip().lower(): column.strip() for role, _, column in parts}


def guess_columns(header: Sequence[str]) -> dict[str, str]:
    """Guess the roles of the columns of a table from their names: a column by its role.

    Names are understood in any case and with their unit, see `CELL_COLUMNS`. ``parent`` is taken
    for a parent *track* in a table that has tracks but no ids.
    """
    plain, found = plain_names(header), known_columns(header, CELL_COLUMNS)
    for name, orders in _NUMBERED:
        columns = [plain[f"{name}_{k}"] for k in range(4) if f"{name}_{k}" in plain]
        order = orders[len(columns) - 2].split() if 2 <= len(columns) < len(orders) + 2 else []
        if found["x"] is None and order:
            found |= dict(zip(order, columns, strict=True))
    if "position_x" in plain or "spot_position_x" in plain:
        found["label"] = None  # a free text such as "ID4711" in TrackMate and Mastodon
    if {"bb_left", "bb_top"} <= set(plain):
        # In MOT's tables the columns x, y and z beside the box hold nothing.
        found |= {"x": plain["bb_left"], "y": plain["bb_top"], "z": None}
    if "mass" in plain and found["area"] == plain.get("size"):
        found["area"] = None  # a radius of gyration in trackpy
    if found["id"] is None and found["track"] is not None and found["parent"] is not None:
        found["parent_track"] = found["parent_track"] or found["parent"]
        found["parent"] = None
    return {role: column for role, column in found.items() if column is not None}


def columns_of(header: Sequence[str], corrections: Mapping[str, str | None]) -> dict[str, str]:
    """The columns as guessed, some roles set by hand; None or "" for a role means no column."""
    chosen = {"frame" if role == "t" else role: column for role, column in corrections.items()}
    for role, column in chosen.items():
        if role not in CELL_COLUMNS:
            named = next((name for name in header if name.lower() == role), role)
            swapped = column in ("t", *CELL_COLUMNS)
            cure = f"write {column}={named}" if swapped else f"known are {', '.join(CELL_COLUMNS)}"
            raise InputError(f"there is no role {role!r} for a column; {cure}")
    guessed = guess_columns(header)
    if {"x", "y"} & set(chosen):
        guessed = {k: v for k, v in guessed.items() if k not in ("width", "height")}
    return {role: c for role, c in {**guessed, **chosen}.items() if c}


def known_columns(
    header: Sequence[str], names: Mapping[str, Sequence[str]]
) -> dict[str, str | None]:
    """The column of every role, by its possible names; None if there is none.

    Names may also be written in one word, such as ``CentroidX``.
    """
    plain = plain_names(header)
    for name, column in list(plain.items()):
        plain.setdefault(name.replace("_", ""), column)

    def column_of(known: Sequence[str]) -> str | None:
        words = (word for name in known for word in (name, name.replace("_", "")))
        return next((plain[word] for word in words if word in plain), None)

    return {role: column_of(known) for role, known in names.items()}


def plain_names(header: Sequence[str]) -> dict[str, str]:
    """Columns by their plain names: lower case, without unit, words joined by ``_``.

    Of columns with one plain name the first counts.
    """
    plain: dict[str, str] = {}
    for column in header:
        plain.setdefault(plain_name(column), column)
    return plain


def plain_name(column: str) -> str:
    """The name of a column in lower case, without unit, words joined by ``_``."""
    name = re.sub(r"[^a-z0-9]+", "_", UNIT_OF.sub("", column.strip()).lower()).strip("_")
    # CellProfiler adds a distance, and in some tables the name of the objects.
    name = re.sub(r"^(trackobjects_label)_\d+$", r"\1", name)
    return re.sub(r"^[a-z0-9]+_(?=location_center_|areashape_|number_object_)", "", name)
