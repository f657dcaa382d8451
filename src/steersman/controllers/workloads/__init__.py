"""What controllers of pods share: references to owners, expectations, pods of templates, hashes, revisions."""
