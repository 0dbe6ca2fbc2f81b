-- Before the table is filled: its pages are then newer than the checkpoint, and no run
-- pays for full-page images that another one does not.
CHECKPOINT;
