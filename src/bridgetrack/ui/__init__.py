"""The napari plugin: panels that show state and controllers that hold it."""
