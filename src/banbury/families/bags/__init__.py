"""Bags of words: texts, and matrices of how often something occurs; occurrences and documents of each word and class."""
