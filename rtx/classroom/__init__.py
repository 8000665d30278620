"""The notebooks in a class: folders for students, and grades for what they hand in."""
