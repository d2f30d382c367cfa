"""Files of a store: folder, manifest, locks, checksums, run names, shard files."""
