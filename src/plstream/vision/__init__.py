"""Vision: images to features, and features to pairs."""
