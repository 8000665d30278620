"""Build the site: lessons, explorers and texts as static files.

    python site/build.py build/site

Nothing is executed, because the notebooks hold their outputs and the explorers compute in the page.
"""

import argparse
import hashlib
import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import jupyter_server_mathjax
import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

HERE = Path(__file__).parent
ROOT = HERE.parent
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"

# The pages from Markdown, each with the word for it in the navigation; a text that does not exist has no page.
TEXTS = {
    "docs/course.md": ("course.html", "Course"),
    "docs/glossary.md": ("glossary.html", "Glossary"),
    "docs/teaching.md": ("teaching.html", "Teach"),
    "docs/findings.md": ("findings.html", "Findings"),
    "results/README.md": ("results.html", "Results"),
    "docs/models.md": ("models.html", "Models"),
    "docs/research.md": ("research.html", "Research"),
    "docs/runs.md": ("runs.html", "Training"),
    "docs/own-data.md": ("own-data.html", "Your data"),
    "docs/full-size.md": ("full-size.html", "Full size"),
    "docs/speed.md": ("speed.html", "Speed"),
    "benchmarks/README.md": ("benchmarks.html", "Benchmarks"),
    "docs/original-code.md": ("original-code.html", "Original code"),
    "CONTRIBUTING.md": ("contributing.html", "Contributing"),
    "CHANGELOG.md": ("changelog.html", "Changelog"),
}
# Explorers for the landing page: the first one that exists is alive there, the next ones have a card.
SHOWPIECES = ["depends", "sentence", "bach", "lookup", "bach_or_machine", "window", "attention", "channels"]
CARDS = 4


def coloured(code: str, language: str, _: str = "") -> str:
    """Code as HTML, with a class for each kind of word."""
    return highlight(code, get_lexer_by_name(language or "text"), HtmlFormatter(nowrap=True))


def mathematics(tex: str, options: dict[str, bool]) -> str:
    """An equation as MathJax finds it in a page."""
    return escape(rf"\[{tex}\]" if options["display_mode"] else rf"\({tex}\)")


MARKDOWN = MarkdownIt("commonmark", {"html": True, "highlight": coloured}).enable("table")
MARKDOWN.use(dollarmath_plugin, allow_labels=False, double_inline=True, renderer=mathematics)
PAPERS: dict[str, str] = tomllib.loads((HERE / "papers.toml").read_text(encoding="utf-8"))


@dataclass
class Text:
    """The Markdown of one page as HTML. Its links lead to pages of the site, or are plain words.

    Args:
        source: the file that it comes from.
        address: where its page is in the site.
        addresses: the pages of the site, by the file that each one comes from.
    """

    source: Path
    address: str
    addresses: dict[Path, str]
    title: str = ""
    outline: list[tuple[int, str, str]] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)
    cited: set[str] = field(default_factory=set)

    @property
    def root(self) -> str:
        """The way from this page to the folder of the site."""
        return "../" * self.address.count("/")

    def html(self, markdown: str) -> str:
        """Return a piece of the page; a heading of level 1 becomes the title and is left out."""
        tokens = MARKDOWN.parse(self.cite(markdown))
        if tokens and tokens[0].tag == "h1":
            self.title = words(tokens[1])
            del tokens[:3]
        for i, token in enumerate(tokens):
            if token.type == "heading_open":
                token.attrs["id"] = self.name_heading(int(token.tag[1]), words(tokens[i + 1]))
            if token.type == "inline":
                token.children = self.with_living_links(token.children or [])
        html = MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})
        return html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")

    def cite(self, markdown: str) -> str:
        """Link the first place of this page where a paper is named, as in "Wang et al. (2019)"."""
        for paper, address in PAPERS.items():
            *authors, year = map(re.escape, paper.split())
            name = r"\s+".join(authors) + rf",?\s+(\({year}\)|\(?{year})"
            if paper not in self.cited and (found := re.search(name, markdown)):
                self.cited.add(paper)
                markdown = f"{markdown[: found.start()]}[{found[0]}]({address}){markdown[found.end() :]}"
        return markdown

    def name_heading(self, level: int, heading: str) -> str:
        """Add a heading to the outline, and return a name of its own for the address."""
        slug = re.sub(r"[^\w-]+", "-", heading.lower()).strip("-")
        taken = [name for _, name, _ in self.outline]
        name = slug if slug not in taken else f"{slug}-{len(taken)}"
        self.outline.append((level, name, heading))
        return name

    def with_living_links(self, children: list[Token]) -> list[Token]:
        """Change addresses into those of the site; of a link to what it does not hold, only the words stay."""
        kept, alive = [], True
        for token in children:
            if token.type == "image":
                self.pictures.append((self.source.parent / str(token.attrs["src"])).resolve())
                token.attrs["src"] = self.root + self.pictures[-1].relative_to(ROOT).as_posix()
            if token.type == "link_open":
                token.attrs["href"] = self.follow(str(token.attrs["href"]))
                alive = token.attrs["href"] != ""
            if alive or token.type not in ("link_open", "link_close"):
                kept.append(token)
            alive = alive or token.type == "link_close"
        return kept

    def follow(self, target: str) -> str:
        """Return where a link of the source leads in the site, or "" if the site does not hold it."""
        path, mark, place = target.partition("#")
        if not path:
            return target.lower()  # Jupyter keeps the capitals of a heading in its address, and `name_heading` does not
        if re.match("[a-z]+:", target):
            return target
        page = self.addresses.get((self.source.parent / path).resolve())
        return f"{self.root}{page}{mark}{place}" if page else ""


def words(inline: Token) -> str:
    """Return what a heading or a paragraph says, without its markup."""
    return " ".join(
        "".join(child.content or " " * (child.type == "softbreak") for child in inline.children or []).split()
    )


@dataclass
class Explorer:
    """A living page: its name in the address, its title, what to try there, its HTML, and its lesson."""

    name: str
    title: str
    caption: str
    html: str
    lesson: "Lesson"

    @property
    def address(self) -> str:
        """Where its page is in the site."""
        return f"explore/{self.name}.html"


class Lesson:
    """A notebook as a page."""

    def __init__(self, source: Path, text: Text, site: "Site") -> None:
        notebook = nbformat.read(source, as_version=4)
        self.text, self.site = text, site
        self.address, self.number = text.address, source.stem[:2]
        self.states = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
        self.html = "\n".join(map(self.cell, notebook.cells))

    def cell(self, cell: NotebookNode) -> str:
        """Return a cell with its outputs."""
        if cell.cell_type == "markdown":
            return self.text.html(cell.source)
        code = f'<pre class="code"><code>{coloured(cell.source, "python")}</code></pre>'
        return "\n".join([code, *(self.output(one, cell.source) for one in cell.outputs)])

    def output(self, output: NotebookNode, code: str) -> str:
        """Return one output of a cell."""
        if output.output_type == "stream":
            return f'<pre class="output">{escape(output.text)}</pre>'
        data = output.data
        if VIEW in data:
            return self.widget(data, self.states[data[VIEW]["model_id"]], code)
        if "text/html" in data:
            return f'<div class="output scroll">{data["text/html"]}</div>'
        if "image/png" in data:
            return f"<figure>{picture(data, output.metadata.get('image/png', {}).get('alt', ''))}</figure>"
        return f'<pre class="output">{escape(data["text/plain"])}</pre>'

    def widget(self, data: dict[str, Any], model: dict[str, Any], code: str) -> str:
        """Return an explorer, alive. It also gets a page of its own."""
        state, still = model["state"], picture(data, data["text/plain"])
        called = re.search(r"explore\.(\w+)\(", code)  # the name of a recording would be that of all recordings
        name = called[1] if called else state.get("name", "")
        page = self.site.explorer_page(name) if name and "caption" in state else ""
        html = living(model, self.site.module(state["_esm"]), page, still)
        if page:
            title = (state.get("title") or name) + (f" (lesson {self.number})" if page != name else "")
            self.site.explorers.append(Explorer(page, title[0].upper() + title[1:], state["caption"], html, self))
            html += (
                f'\n<p class="aside"><a href="../explore/{page}.html">Open this explorer on a page of its own</a></p>'
            )
        return html


def picture(data: dict[str, str], alt: str) -> str:
    """An image that is stored in a notebook."""
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{data["image/png"].strip()}">'


def living(model: dict[str, Any], module: str, page: str, still: str) -> str:
    """A place for living.js: the module, the traits, the name of the page of its own, and the picture to replace."""
    traits = {name: value for name, value in model["state"].items() if not name.startswith("_")}
    data = {"module": module, "page": page, "traits": traits}
    data["bytes"] = {one["path"][0]: one["data"] for one in model.get("buffers", [])}
    text = json.dumps(data).replace("<", "\\u003c")  # a "<" could end the element
    return f'<div class="living"><script type="application/json">{text}</script>\n{still}\n</div>'


class Site:
    """The site in a folder, from the project's notebooks and texts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.explorers: list[Explorer] = []
        self.notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
        self.texts = {ROOT / path: page for path, (page, _) in TEXTS.items() if (ROOT / path).is_file()}
        lessons = {path: f"notebooks/{path.stem}.html" for path in self.notebooks}
        self.addresses = {ROOT / "README.md": "index.html"} | self.texts | lessons
        self.templates = Environment(loader=FileSystemLoader(HERE / "templates"), undefined=StrictUndefined)
        written = self.texts.values()
        self.templates.globals["texts"] = {page: word for page, word in TEXTS.values() if page in written}

    def build(self) -> None:
        """Write all files."""
        shutil.copytree(HERE / "static", self.folder, dirs_exist_ok=True)
        unused = shutil.ignore_patterns("localization", "a11y", "SVG")
        mathjax = Path(jupyter_server_mathjax.__file__).with_name("static")
        shutil.copytree(mathjax, self.folder / "mathjax", ignore=unused, dirs_exist_ok=True)
        self.write_texts()
        self.write_lessons([Lesson(path, self.text(path), self) for path in self.notebooks])

    def text(self, source: Path) -> Text:
        """The page of a file, still empty."""
        return Text(source, self.addresses[source], self.addresses)

    def module(self, script: str) -> str:
        """Store the script of an explorer, once, and return the name of its file."""
        name = f"{hashlib.sha256(script.encode()).hexdigest()[:12]}.js"
        self.write(f"living/{name}", script)
        return name

    def explorer_page(self, name: str) -> str:
        """Return the name of an explorer's page, with a number if an earlier lesson has the same explorer."""
        earlier = sum(re.fullmatch(rf"{name}(-\d+)?", one.name) is not None for one in self.explorers)
        return f"{name}-{earlier + 1}" if earlier else name

    def write(self, address: str, content: str) -> None:
        """Write a file of the site."""
        path = self.folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    def page(self, template: str, address: str, body: str = "", **facts: Any) -> None:
        """Write a page."""
        root, math = "../" * address.count("/"), 'class="math' in body
        body = re.sub(r"(<td>[^<]*?) ± ", r"\1&nbsp;±&nbsp;", body)  # a score and its deviation stay in one line
        page = self.templates.get_template(template)
        self.write(address, page.render(address=address, root=root, body=body, math=math, **facts))

    def write_texts(self) -> None:
        """Write the pages from Markdown, with their pictures."""
        for source, address in self.texts.items():
            text = self.text(source)
            body = text.html(source.read_text(encoding="utf-8"))
            self.page("text.html", address, body, title=text.title, outline=text.outline)
            self.copy_pictures(text.pictures)

    def copy_pictures(self, pictures: list[Path]) -> None:
        """Copy the pictures that a text shows."""
        for path in pictures:
            target = self.folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)

    def write_lessons(self, lessons: list[Lesson]) -> None:
        """Write the lessons, the explorers that they hold, and the pages that list both."""
        around = [None, *lessons, None]
        for before, lesson, after in zip(around, lessons, around[2:], strict=False):
            text = lesson.text
            facts = {"title": text.title, "outline": text.outline, "before": before, "after": after}
            self.page("lesson.html", lesson.address, lesson.html, number=lesson.number, **facts)
            self.copy_pictures(text.pictures)
        for one in self.explorers:
            self.page("explorer.html", one.address, one.html, title=one.title, explorer=one)
        self.page("explorers.html", "explore/index.html", title="Explorers", explorers=self.explorers)
        by_name = {one.name: one for one in self.explorers}
        first, *cards = [by_name[name] for name in SHOWPIECES if name in by_name][: CARDS + 1]
        self.page("index.html", "index.html", title="rtx", first=first, cards=cards, lessons=lessons)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the site into the folder that is named."""
    parser = argparse.ArgumentParser(description="Build lessons, explorers and texts as a static site.")
    parser.add_argument("folder", type=Path, help="where to write it; files of another build stay there")
    Site(parser.parse_args(arguments).folder).build()


if __name__ == "__main__":
    main()
