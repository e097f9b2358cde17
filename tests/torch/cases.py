"""Reads cases.def, THE list of layers and functions whose text is ampc and PyTorch at once. Needs no PyTorch."""
import ast
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTION = r"; def (\w+)\(([^)]*)\) { return (.*?) }"  # a member that is a function


def read_cases(path=os.path.join(HERE, "cases.def")):
    """name: (members, output, fill) of each CASE of the file."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    cases = {}
    for match in re.finditer(r'^CASE\((\w+),((?:[^"()]|"(?:[^"\\]|\\.)*")*)\)$', text, re.M):
        members, output, *fill = ast.literal_eval(f"({match[2]},)")
        cases[match[1]] = members, output, fill[0] if fill else ""
    if len(cases) != len(re.findall(r"^CASE\(", text, re.M)):
        sys.exit(f"{os.path.basename(path)} has a CASE that cannot be read")
    return cases
