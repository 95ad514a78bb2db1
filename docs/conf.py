"""How Sphinx makes the documentation: `sphinx-build -W docs docs/_build`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from onnxreduce_cli import __version__

project = "onnxreduce"
author = "the authors of onnxreduce"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs.generator.extension",
]
exclude_patterns = ["_build", "generator", "generated"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# The text of CONTRIBUTING.md begins with second headings where a page takes a part of it.
suppress_warnings = ["myst.header"]
nitpicky = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
html_theme = "furo"
html_title = f"onnxreduce {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
