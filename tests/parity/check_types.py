#!/usr/bin/env python3
"""check_types.py AMPC: compares the types that ampc assigns to the cells of programs.py with PyTorch's, in types.tsv.

A cell with an integer input may be refused instead. All other types are equal, or differences.tsv has the difference with a
reason. A row of differences.tsv that matches no cell is an error."""
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import ours
from programs import DIFFERENCES, GRAPHS, INTEGERS, LOST, REFUSED, Case, Graph, all_cases, chains_for, read_listed, read_table, types_of

AT_ONCE = 250  # graphs in a program


class Difference:
    """A row of differences.tsv; its first five columns are patterns, which must match the whole text."""
    def __init__(self, line):
        case, types, chain, theirs, own, self.reason = line.rstrip("\n").split("\t")
        self.key = f"{case} {types} {chain} {theirs} {own}"
        self.patterns = [re.compile(p) for p in (case, types, chain, theirs, own)]
        self.used = 0

    def fits(self, *cell):
        return all(p.fullmatch(text) for p, text in zip(self.patterns, cell))


def read_differences():
    with open(DIFFERENCES, encoding="utf-8") as f:
        return [Difference(line) for line in f if line.strip() and not line.startswith("#")]


class Comparison:
    def __init__(self):
        self.differences, self.cells, self.wrong, self.refused = read_differences(), 0, [], 0

    def cell(self, name, types, chain, theirs, own):
        if theirs == LOST:
            return  # computed from a value that PyTorch refuses: it has no type
        self.cells += 1
        if theirs == own:
            return
        if own == REFUSED and any(t in INTEGERS for t in types):
            self.refused += 1
            return
        cell = name, " ".join(types), chain, theirs, own
        found = next((d for d in self.differences if d.fits(*cell)), None)
        if found:
            found.used += 1
        else:
            self.wrong.append("\t".join(cell))

    def finish(self):
        for line in self.wrong[:60]:
            print(f"differs: {line}")
        idle = [d.key for d in self.differences if not d.used]
        for key in idle:
            print(f"differences.tsv has a row that matches nothing; delete it: {key}")
        used = sum(d.used for d in self.differences)
        print(f"{self.cells} cells: {len(self.wrong)} differ, {used} differ as differences.tsv says, "
              f"{self.refused} with integers are refused")
        return not self.wrong and not idle


def compare_case(comparison, case, rows, found):
    for name, types, letters in rows:
        types = tuple(types.split())
        for chain, theirs in zip(chains_for(case, types), letters, strict=True):
            comparison.cell(name, types, chain, theirs, found[name, types, chain])


def cases_to_compare(table):
    cases = {name: Case(name, row) for name, row in all_cases().items()}
    names = set(cases) | {f"graph{n}" for n in GRAPHS}
    made = {name for name in table if not name.startswith("net ")}
    if names != made:
        sys.exit("types.tsv and the cases differ: run tests/parity/make_table.py to update it. Only one has "
                 + " ".join(sorted(names ^ made)[:10]))
    listed = read_listed()
    unknown = {case for named in listed.values() for case in named} - set(cases)
    if unknown:
        sys.exit(f"listed.tsv names cases that do not exist: {' '.join(sorted(unknown))}")
    lacks = [op for op, named in listed.items() if not named]
    print(f"of {len(listed)} ops in autocast's lists the language has {len(listed) - len(lacks)}; it lacks {' '.join(lacks)}")
    for name, case in cases.items():
        if [" ".join(t) for t in types_of(case)] != [row[1] for row in table[name]]:
            sys.exit(f"types.tsv has other input types of {name}: run tests/parity/make_table.py {name}")
    return cases


def compare_graphs(comparison, table, ampc, pool):
    batches = [{n: Graph(n) for n in GRAPHS[i:i + AT_ONCE]} for i in range(0, len(GRAPHS), AT_ONCE)]
    for graphs, found in zip(batches, pool.map(lambda g: ours.own_types(ampc, ours.graphs_program(g)), batches)):
        for n, graph in graphs.items():
            (_, types, letters), = table[f"graph{n}"]
            for name, theirs in zip(graph.values_made(), letters, strict=True):
                comparison.cell(f"graph{n}", tuple(types.split()), name, theirs, found[n, name])


def compare_nets(comparison, table, ampc, pool):
    rows = [row for name in table if name.startswith("net ") for row in table[name]]
    for (name, precision, text), found in zip(rows, pool.map(
            lambda row: ours.net_types(ampc, row[0].removeprefix("net "), row[1]), rows)):
        for parameter, letters in (cell.rsplit(":", 1) for cell in text.split()):
            comparison.cell(name, (precision,), parameter, letters, found[parameter])


def main():
    ampc, = sys.argv[1:]
    table, comparison = read_table(), Comparison()
    cases = cases_to_compare(table)
    with ThreadPoolExecutor(2) as pool:
        found = {}
        for types in pool.map(lambda work: ours.case_types(ampc, work), ours.batches(cases.values())):
            found.update(types)
        for name, case in cases.items():
            compare_case(comparison, case, table[name], found)
        compare_graphs(comparison, table, ampc, pool)
        compare_nets(comparison, table, ampc, pool)
    sys.exit(not comparison.finish())


if __name__ == "__main__":
    main()
