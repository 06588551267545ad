"""Rows: labelled rows in memory or read again for each pass, the folds they are dealt to, and their scores when left out."""
