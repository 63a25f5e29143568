#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Compare what the drivers of several kernels gave the simulated ConnectX.

	traces.py summary DIR
	traces.py rows PAGE NAME=DIR...
	traces.py compare PAGE NAME=DIR...

A DIR is what tools/testing/vm/run --out DIR has after test_mlx5_steps: the adapter's
trace mlx5-1.jsonl and the file steps.  Of each step there is a summary without bus
addresses, key numbers and object numbers, so that one kernel's can be held against
another's.

PAGE is a page of the documentation with a csv-table of all differences that there may
be, a column for each NAME, and in the last column the term that explains it.  compare
prints TAP; rows prints the rows that the table would have to have.
"""

import json
import os
import sys

MASKS = [
    (1 << 0 | 1 << 6, "span"),
    (1 << 1, "page"),
    (1 << 7, "pd"),
    (0x3e << 16 | 1 << 25 | 1 << 47, "rights"),
]
FREE = 1 << 29
FIELDS = ["keys", "room", "requests", "written", "present", "page", "faults", "resumed",
          "errors", "freed"]


def size(log):
    for unit, name in (30, "GiB"), (20, "MiB"), (10, "KiB"):
        if log >= unit:
            return f"{1 << log - unit} {name}"
    return str(1 << log)


def is_present(entry):
    """Pages have rights, entries of memory windows a key that they lead to."""
    return entry.get("read") or entry.get("write") or int(entry.get("to", "0"), 0)


def request_kind(umr, written, key):
    """One UMR work request, with the entries written by it and the key behind it."""
    mask = int(umr["mask"], 0)
    kind = []
    if written:
        kind.append("write" if any(map(is_present, written)) else "zap")
    kind += [name for bits, name in MASKS if mask & bits]
    if mask & FREE:
        kind.append("disable" if key["free"] else "enable")
    return "+".join(kind) or "nothing"


def requests(events):
    """The kinds of all UMR work requests, equal ones in a row counted."""
    kinds = []
    for i, event in enumerate(events):
        if event["event"] != "umr":
            continue
        written, key = [], None
        for later in events[i + 1:]:
            if later["event"] == "xlt":
                written.append(later)
            elif later["event"] in ("mkey", "umr"):
                key = later if later["event"] == "mkey" else None
                break
        kind = request_kind(event, written, key) if key else "failed"
        if kinds and kinds[-1][0] == kind:
            kinds[-1][1] += 1
        else:
            kinds.append([kind, 1])
    return ", ".join(kind if n == 1 else f"{n} x {kind}" for kind, n in kinds)


def summary(events):
    """What the adapter was given in one step; fields where there is nothing are absent."""
    def named(*names):
        return [e for e in events if e["event"] in names]

    made, entries, resumes = named("create_mkey"), named("xlt"), named("resume")
    present = sum(e["count"] for e in filter(is_present, entries))
    live = [e for e in named("mkey") if present and not e["free"]]
    values = {
        "keys": len(made),
        "room": ", ".join(str(2 * e["octwords"]) for e in made),
        "requests": requests(events),
        "written": sum(e["count"] for e in entries),
        "present": present,
        "page": size(live[-1]["log_page_size"]) if live else "",
        "faults": len(named("fault")),
        "resumed": len(resumes),
        "errors": sum(e["error"] for e in resumes),
        "freed": len(named("destroy_mkey", "invalidate")),
    }
    return {name: str(value) for name, value in values.items() if value}


def read_run(folder):
    """The steps of one run, in order: name -> summary."""
    with open(os.path.join(folder, "mlx5-1.jsonl"), "rb") as f:
        trace = f.read()
    with open(os.path.join(folder, "steps"), encoding="ascii") as f:
        marks = [line.rstrip("\n").split(" ", 1) for line in f]
    if not marks:
        sys.exit(f"{folder}: no steps")
    steps, begin = {}, int(marks[0][0])
    for end, name in marks[1:]:
        end = int(end)
        if not begin <= end <= len(trace) or name in steps:
            sys.exit(f"{folder}: step '{name}' does not fit")
        steps[name] = summary([json.loads(line) for line in trace[begin:end].splitlines()])
        begin = end
    return steps


def cells(line):
    return [cell.strip() for cell in line.split("|")]


class Page:
    """The differences that are listed, and the terms that explain them."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        at = next(i for i, line in enumerate(lines) if line.startswith(".. csv-table::"))
        table = []
        for line in lines[at + 1:]:
            if line and not line.startswith(" "):
                break
            if "|" in line:
                table.append(cells(line))
        header = next(line for line in lines[at:] if ":header:" in line)
        header = [cell.strip() for cell in header.split(":header:")[1].split(",")]
        self.columns = header[2:-1]
        self.rows = {}
        for row in table:
            if len(row) != len(header):
                if not row[0].startswith(":"):
                    sys.exit(f"{path}: a row with {len(row)} cells: {row}")
                continue
            if (row[0], row[1]) in self.rows:
                sys.exit(f"{path}: twice: {row[0]}: {row[1]}")
            self.rows[row[0], row[1]] = (dict(zip(self.columns, row[2:-1])), row[-1])
        self.terms = {line for line, below in zip(lines[at:], lines[at + 1:])
                      if line[:1].isalnum() and below.startswith("    ")}


def values_of(runs, step, field):
    return {name: run.get(step, {}).get(field, "-") for name, run in runs.items()}


def print_rows(page, runs):
    for step in next(iter(runs.values())):
        for field in FIELDS:
            values = values_of(runs, step, field)
            if len(set(values.values())) > 1:
                why = page.rows.get((step, field), (None, "?"))[1]
                print("   " + " | ".join([step, field, *values.values(), why]))


class Tap:
    """Counts and prints tests."""

    def __init__(self):
        self.tests = self.failed = 0

    def ok(self, problems, name):
        self.tests += 1
        self.failed += bool(problems)
        print(f"{'not ' if problems else ''}ok {self.tests} - {name}")
        for problem in problems:
            print(f"# {problem}")

    def done(self):
        print(f"1..{self.tests}")
        return 1 if self.failed else 0


def step_problems(page, runs, step):
    problems = []
    for field in FIELDS:
        values = values_of(runs, step, field)
        told = "; ".join(f"{name}: {value}" for name, value in values.items())
        if (step, field) in page.rows:
            listed = page.rows[step, field][0]
            problems += [f"{field}: {name} has {value}, listed is {listed[name]}"
                         for name, value in values.items() if value != listed[name]]
        elif len(set(values.values())) > 1:
            problems.append(f"{field} differs and is not listed: {told}")
    return problems


def compare(page, runs):
    tap = Tap()
    first, *others = runs
    tap.ok([f"{name}: other steps than {first}" for name in others
            if list(runs[name]) != list(runs[first])], "the same steps on all kernels")
    tap.ok([f"{step}: {field}" for (step, field), (listed, _) in page.rows.items()
            if len(set(listed.values())) == 1], "each row of the table is a difference")
    tap.ok([f"{step}: {field}" for step, field in page.rows
            if field not in FIELDS or step not in runs[first]],
           "each row is about something that there is")
    tap.ok([f"{step}: {field}: what is '{why}'?" for (step, field), (_, whys) in page.rows.items()
            for why in whys.split(", ") if why not in page.terms], "each row is explained")
    tap.ok(sorted(page.terms - {why for _, whys in page.rows.values() for why in whys.split(", ")}),
           "each explanation is of a row")
    for step in runs[first]:
        tap.ok(step_problems(page, runs, step), step)
    return tap.done()


def main(args):
    if len(args) == 2 and args[0] == "summary":
        for step, values in read_run(args[1]).items():
            print(f"{step}:", "; ".join(f"{k} {v}" for k, v in values.items()) or "nothing")
        return 0
    if len(args) < 4 or args[0] not in ("rows", "compare") or not all("=" in a for a in args[2:]):
        sys.exit(__doc__)
    page = Page(args[1])
    runs = {name: read_run(folder) for name, folder in (a.split("=", 1) for a in args[2:])}
    if set(runs) - set(page.columns):
        sys.exit(f"{args[1]} has the columns {', '.join(page.columns)}")
    if args[0] == "rows":
        print_rows(page, runs)
        return 0
    return compare(page, runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
