"""The report: one HTML document made from the JSON of other commands, and the pages of `preview --html` and `ui`.

Pure functions make the documents: `build_report` makes the model from sources, `render_report` makes HTML from a model.
"""
