"""How Sphinx builds these pages: ``sphinx-build -W -b html docs docs/_build/html``.

Links inside the pages, and to their headings, are checked by every build with ``-W``.
Links to other sites are checked for their form by ``tests/docs``, and for an answer by
``nox -s links``, which needs a network and is run by hosted CI each week.
"""

import re

from distbfs import __version__

project = "distbfs"
copyright = "the distbfs authors"  # noqa: A001
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "jupyter_execute", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks show the output that they were committed with

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say types, shapes and dtypes
autosummary_generate = True
numpydoc_show_class_members = False
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!distbfs\.).*")]  # names of other packages

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

smartquotes = False  # an option of a command begins with two hyphens, not with a dash

html_theme = "pydata_sphinx_theme"
html_title = f"distbfs {version}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}


def list_options(_app, what, name, _obj, _options, lines):
    """Show "name: text" lines of a class of options as a list."""
    if what != "class" or not name.endswith("Options"):
        return
    shown = []
    for line in lines:
        entry = re.match(r"([a-z]\w*): (.+)", line)
        if entry:
            shown += [f"``{entry[1]}``", f"    {entry[2]}"]
        else:
            goes_on = line.strip() and shown and shown[-1].startswith(" ")
            shown.append(f"    {line.strip()}" if goes_on else line)
    lines[:] = shown


def setup(app):
    """Connect the functions above."""
    app.connect("autodoc-process-docstring", list_options, priority=400)
