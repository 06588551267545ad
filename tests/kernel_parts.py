"""Parts of scores as the core takes them, from a name and their fields, as the twins read them."""

from banbury import _core

CLASSES = {
    "normal": _core.NormalPart,
    "student": _core.NormalPart,
    "table": _core.TablePart,
    "flags": _core.FlagsPart,
    "histogram": _core.HistogramPart,
    "kernel": _core.KernelPart,
    "linear": _core.LinearPart,
    "words": _core.WordsPart,
}


def kernel_part(part):
    name, *fields = part
    if name == "normal":
        fields.append(None)
    if name == "words" and len(fields) == 8:
        fields.append(None)
    return CLASSES[name](*fields)


def score(n_rows, log_prior, parts, want, threads):
    return _core.score(n_rows, log_prior, [kernel_part(part) for part in parts], want, threads)
