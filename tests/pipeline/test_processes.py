"""Scenes and trackings go to other processes and come back as they were."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd

import bridgetrack as bt
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.pipeline.scene import annotate, propose
from bridgetrack.pipeline.tracking import resolve_tracking


def test_a_scene_from_files_is_worked_on_in_another_process() -> None:
    folder = bt.sample_folder()
    labels, image = bt.open_labels(folder / "01_GT" / "TRA"), bt.open_movie(folder / "01")
    tracking = bt.track(labels, image)
    nothing = AnnotationSet(tracking.scene.detections.geometry)
    # A new process knows nothing of this one: all it has comes through a pipe.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        scene = pool.submit(annotate, tracking.scene, nothing).result()
        again = pool.submit(resolve_tracking, tracking, scene).result().tracking
        anew = pool.submit(propose, tracking.scene.evidence, labels).result()
    np.testing.assert_array_equal(again.solution.chosen, tracking.solution.chosen)
    pd.testing.assert_frame_equal(again.tracks.nodes, tracking.tracks.nodes)
    assert scene.matrix.features.keys == tracking.scene.matrix.features.keys
    assert scene.labels is not None
    np.testing.assert_array_equal(scene.labels.channel_frame(1), labels.channel_frame(1))
    for here, there in zip(tracking.scene.matrix.blocks, anew.matrix.blocks, strict=True):
        np.testing.assert_array_equal(here, there)
