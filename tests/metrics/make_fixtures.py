#!/usr/bin/env python3
"""Writes expected.json: scikit-learn's values for the data of data.py. Needs scikit-learn; the tests do not."""
import json
import math
import pathlib
import warnings

import sklearn
from sklearn.feature_selection import r_regression
from sklearn.metrics import (accuracy_score, confusion_matrix, f1_score, jaccard_score, log_loss, matthews_corrcoef,
                             r2_score, roc_auc_score, root_mean_squared_error, top_k_accuracy_score)

from data import axis_of_classes, binary_data, classes_data, pixels_data, ranked_data


def scores(y, p, averages):
    found = {f"f1_{a}": f1_score(y, p, average=a, zero_division=0) for a in averages}
    found.update({f"iou_{a}": jaccard_score(y, p, average=a, zero_division=0) for a in averages})
    found |= {"matthews": matthews_corrcoef(y, p), "accuracy": accuracy_score(y, p)}
    return {k: float(v) for k, v in found.items()}


def softmax(row):
    top = max(row)
    e = [math.exp(v - top) for v in row]
    return [v / sum(e) for v in e]


def perplexity(y, rows):
    return math.exp(log_loss(y, [softmax(r) for r in rows], labels=range(len(rows[0]))))


def ranks(y, rows):
    return {"accuracy_2": float(top_k_accuracy_score(y, rows, k=2, labels=range(len(rows[0]))))}


def spread(targets, found):
    """Of all elements; of the columns."""
    flat = [[v for row in rows for v in row] for rows in (targets, found)]
    return {"rmse": float(root_mean_squared_error(*flat)), "r2": float(r2_score(targets, found))}


def main():
    warnings.simplefilter("ignore")
    many = ("macro", "micro", "weighted")
    out = {"made_by": f"scikit-learn {sklearn.__version__}"}

    x, y = classes_data()
    rows = axis_of_classes(x, 53, 5, 1)
    p = [r.index(max(r)) for r in rows]
    out["classes"] = scores(y, p, many) | ranks(y, rows) | {"perplexity": perplexity(y, rows),
                                           "confusion": confusion_matrix(y, p, labels=range(5)).tolist()}
    out["columns"] = spread([[0.5 * b - a + 3.0 for a, b in zip(r, r[::-1])] for r in rows], rows)
    x, y = binary_data()
    out["far"] = spread([[2.0 * v + t + 100.0] for v, t in zip(x, y)], [[v] for v in x])
    p = [int(v > 0) for v in x]
    out["binary"] = scores(y, p, ("binary",) + many) | {"confusion": confusion_matrix(y, p).tolist()}
    for name, (x, y) in {"scores": binary_data(), "ranked": ranked_data()}.items():
        out[name] = {"auc": float(roc_auc_score(y, x)), "pearson": float(r_regression([[v] for v in x], y)[0])}

    x, y = pixels_data()
    rows = axis_of_classes(x, 7, 3, 30)
    kept = [i for i in range(len(y)) if y[i] != 255]
    p = [rows[i].index(max(rows[i])) for i in kept]
    y = [y[i] for i in kept]
    rows = [rows[i] for i in kept]
    out["pixels"] = scores(y, p, many) | ranks(y, rows) | {"perplexity": perplexity(y, rows),
                                                           "confusion": confusion_matrix(y, p, labels=range(3)).tolist()}
    path = pathlib.Path(__file__).with_name("expected.json")
    path.write_text(json.dumps(out, indent=1) + "\n")


main()
