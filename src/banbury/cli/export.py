"""export: a model as SQL, as ONNX or as one page."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import banbury
from banbury.cli import inputs, output


def export(args: Namespace) -> None:
    """Writes the model of a file for use elsewhere."""
    sql_options = {  # None where an option is not given
        "dialect": args.dialect,
        "table": args.source,
        "key": args.key,
        "name": args.name,
        "reasons": args.reasons or None,
    }
    # Those that are given, by the library's names.
    settings = {name: value for name, value in sql_options.items() if value is not None}
    banbury.export(inputs.load_kept(args.model), args.output, min_rows=args.min_rows, **settings)
    size = Path(args.output).stat().st_size  # bytes
    output.result(args, {"file": args.output, "bytes": size}, f"wrote {args.output}, {size:,} bytes")
