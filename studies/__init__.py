"""Longer experiments behind the lessons: one script and one stored result each."""
