"""Numbers of things in sentences."""


def counted(number: int, thing: str) -> str:
    """So many of a thing, as one says it: "1 pixel", "4 pixels"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
